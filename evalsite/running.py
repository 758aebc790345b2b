"""What `manage.py run` does: servers, preparation, web, worker and beat, then a report."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from evalsite.embedded import (
    embedded_urls,
    postgres_plan,
    valkey_plan,
    wait_for_postgres,
    wait_for_valkey,
)
from evalsite.places import PROJECT_DIR, Places, held, prepare
from evalsite.processes import (
    Account,
    CannotStart,
    Process,
    ProcessPlan,
    StopStep,
    end_leftovers,
    marked_with,
    rotate_log,
    stop_together,
)
from evalsite.supervisor import GaveUp, StopRequest, Supervisor
from evalsite.unprivileged import server_account

_MARK = "EVALSITE_SUPERVISED"
_PORTS_TRIED = 20
_WEB_READY_SECONDS = 60.0
_LOOPBACK = "127.0.0.1"
_POSTGRES, _VALKEY, _SITE = 0, 1, 2


class Serving(BaseSettings):
    """How the site is served by `run`; the site's own settings are in settings.py."""

    model_config = SettingsConfigDict(
        env_prefix="EVALSITE_", env_file=PROJECT_DIR / ".env", extra="ignore"
    )

    bind: str = _LOOPBACK
    port: int = Field(default=8000, ge=1, le=65535)
    web_processes: int = Field(default=2, ge=1)
    web_threads: int = Field(default=4, ge=1)
    worker_processes: int = Field(default=2, ge=1)
    replay_processes: int = Field(default=2, ge=0)
    postgres_user: str = ""
    replay_stub_url: str = ""


@dataclass(frozen=True)
class Site:
    """What is to run: where, with which servers, and how it is served.

    An empty URL means that the embedded server is wanted.
    """

    data_dir: Path
    database_url: str
    redis_url: str
    serving: Serving


class _Stopped(Exception):
    """Somebody asked to stop while the site was starting."""


def run_site(site: Site, *, say: Callable[[str], None]) -> int:
    """Run the site in the foreground until a signal asks to stop.

    Returns:
        0 after a clean stop, 1 when something could not be started or kept alive; the
        reason was said.
    """
    stop = StopRequest()
    stop.listen()
    places = Places.at(site.data_dir)
    with ExitStack() as stack:
        try:
            account = server_account(site.serving.postgres_user)
            if site.database_url and site.redis_url:
                account = None
            prepare(places, account=account)
            stack.enter_context(held(places))
            supervisor = Supervisor(say=say)
            stack.callback(lambda: supervisor.stop(hurried=stop.hurried))
            starting = _Starting(site, places, supervisor, stop, say)
            starting.start(account)
            supervisor.keep(stop.wanted)
        except (CannotStart, GaveUp) as error:
            say(str(error))
            return 1
        except _Stopped:
            pass
        say("\nStopping; a second Ctrl-C hurries.")
    say("Stopped. The data is kept.")
    return 0


@dataclass
class _Starting:
    site: Site
    places: Places
    supervisor: Supervisor
    stop: StopRequest
    say: Callable[[str], None]
    address: str = ""

    def start(self, account: Account | None) -> None:
        """Start everything, in the order in which it is needed, and report."""
        self._end_leftovers()
        self._start_servers(account)
        sign_in = self._prepare_site()
        serving = self.site.serving
        port = free_port(serving.bind, serving.port)
        if port != serving.port:
            self.say(f"Port {serving.port} is taken; using {port}.")
        self.address = f"http://{_shown_host(serving.bind)}:{port}"
        for plan in self._site_plans(port):
            self._check()
            self.supervisor.start(plan, rank=_SITE)
        self._wait_for_web(port)
        self._report(sign_in)

    def _check(self) -> None:
        if self.stop.wanted():
            raise _Stopped

    def _end_leftovers(self) -> None:
        end_leftovers(lambda: marked_with(_MARK, str(self.places.data_dir)), patience=2)

    def _start_servers(self, account: Account | None) -> None:
        waits: list[Callable[[], None]] = []
        if not self.site.database_url:
            self.say("Starting PostgreSQL")
            postgres = self._start(postgres_plan, account, rank=_POSTGRES)
            waits.append(lambda: wait_for_postgres(self.places, postgres))
        if not self.site.redis_url:
            self.say("Starting Valkey")
            valkey = self._start(valkey_plan, account, rank=_VALKEY)
            waits.append(lambda: wait_for_valkey(self.places, valkey))
        for wait in waits:
            self._check()
            wait()

    def _start(
        self, plan: Callable[..., ProcessPlan], account: Account | None, *, rank: int
    ) -> Process:
        return self.supervisor.start(plan(self.places, account=account), rank=rank)

    def _prepare_site(self) -> str:
        """Run migrations, static files and demo data; return the sign-in path."""
        self.say("Preparing the database and the pages")
        answer = self.places.data_dir / "sign-in"
        answer.unlink(missing_ok=True)
        plan = self._python("prepare", "manage.py", "prepare_site", str(answer))
        rotate_log(plan.log)
        process = Process(plan)
        while not process.ended() and not self.stop.wanted():
            time.sleep(0.05)
        stop_together([process])
        self._check()
        if process.ending() != "ended with code 0":
            raise CannotStart(
                f"The site could not be prepared. The end of the log, {plan.log}:\n"
                f"{process.log_tail()}"
            )
        path = answer.read_text().strip()
        # A link that signs somebody in lies around no longer than it must.
        answer.unlink()
        return path

    def _python(self, name: str, *words: str) -> ProcessPlan:
        return ProcessPlan(
            name=name,
            command=(sys.executable, *words),
            log=self.places.log(name),
            environment=site_environment(
                self.site, self.places, os.environ, address=self.address
            ),
            folder=PROJECT_DIR,
        )

    def _site_plans(self, port: int) -> list[ProcessPlan]:
        serving = self.site.serving
        web = self._python(
            "web",
            *("-m", "gunicorn", "evalsite.wsgi", "--worker-class", "gthread"),
            *("--workers", str(serving.web_processes)),
            *("--threads", str(serving.web_threads)),
            *("--bind", f"{serving.bind}:{port}"),
            *("--graceful-timeout", "8", "--timeout", "120", "--no-control-socket"),
        )
        workers = [
            self._worker("worker", "celery,short", serving.worker_processes),
            self._worker("short-worker", "short", 1),
        ]
        if serving.replay_processes:
            workers.append(
                self._worker("replay-worker", "replays", serving.replay_processes)
            )
        beat = self._python(
            "beat",
            *("-m", "celery", "-A", "evalsite", "beat", "--loglevel", "INFO"),
            *("--schedule", str(self.places.data_dir / "beat-schedule")),
            *("--pidfile", ""),
        )
        return [
            _with_steps(web, StopStep(signal.SIGTERM, 10)),
            # SIGTERM lets a task finish; SIGQUIT hands unfinished ones back.
            *(
                _with_steps(
                    one, StopStep(signal.SIGTERM, 10), StopStep(signal.SIGQUIT, 2)
                )
                for one in workers
            ),
            _with_steps(beat, StopStep(signal.SIGTERM, 5)),
        ]

    def _worker(self, name: str, queues: str, processes: int) -> ProcessPlan:
        return self._python(
            name,
            *("-m", "celery", "-A", "evalsite", "worker", "--loglevel", "INFO"),
            *("--queues", queues, "--concurrency", str(processes)),
            *("--hostname", f"{name}@%h", "--without-gossip", "--without-mingle"),
        )

    def _wait_for_web(self, port: int) -> None:
        deadline = time.monotonic() + _WEB_READY_SECONDS
        while not answers(self.site.serving.bind, port):
            self._check()
            self.supervisor.tend()
            if time.monotonic() > deadline:
                raise CannotStart(
                    "The web server does not answer. The end of its log:\n"
                    + self._python("web").log.read_text(errors="replace")[-2000:]
                )
            time.sleep(0.1)

    def _report(self, sign_in: str) -> None:
        address = self.address
        once = f"  Sign in    {address}{sign_in}  (works once)\n" if sign_in else ""
        self.say(
            "\nEvalsite is running.\n\n"
            f"  Address    {address}/\n"
            f"{once}"
            f"  Data       {self.places.data_dir}\n"
            f"  Logs       {self.places.logs}\n"
            "  Stop       Ctrl-C; the data is kept\n"
        )


def site_environment(
    site: Site, places: Places, environ: Mapping[str, str], *, address: str = ""
) -> dict[str, str]:
    """Return the environment of the site's children: the addresses, and our mark.

    `address` is where the site listens; agents reach their stubs there unless the
    operator says otherwise.
    """
    database_url, redis_url = embedded_urls(places.data_dir)
    return {
        **environ,
        "DATABASE_URL": site.database_url or database_url,
        "REDIS_URL": site.redis_url or redis_url,
        "EVALSITE_DATA_DIR": str(places.data_dir),
        "EVALSITE_REPLAY_STUB_URL": site.serving.replay_stub_url or address,
        "PYTHONUNBUFFERED": "1",
        # The site was checked when it was prepared; each worker would import every page.
        "CELERY_SKIP_CHECKS": "1",
        _MARK: str(places.data_dir),
    }


def _with_steps(plan: ProcessPlan, *steps: StopStep) -> ProcessPlan:
    return ProcessPlan(**{**vars(plan), "stop_steps": steps})


def free_port(bind: str, first: int) -> int:
    """Return the first free port from `first` on.

    Raises:
        CannotStart: The address is not ours, or twenty ports in a row are taken.
    """
    for port in range(first, min(first + _PORTS_TRIED, 65535) + 1):
        family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((bind.strip("[]"), port))
            except OSError:
                continue
            return port
    raise CannotStart(
        f"No port from {first} to {first + _PORTS_TRIED} can be used on {bind}. Set "
        "EVALSITE_PORT to a free one."
    )


def _shown_host(bind: str) -> str:
    return _LOOPBACK if bind in {"0.0.0.0", "[::]"} else bind  # noqa: S104


def answers(bind: str, port: int) -> bool:
    """Say whether a web server gives any answer to a request."""
    connection = http.client.HTTPConnection(
        _shown_host(bind).strip("[]"), port, timeout=5
    )
    try:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True
