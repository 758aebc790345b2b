"""A real worker process on the test's own database, broker keys and data folder."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import quote

import pytest
import redis
from django.conf import settings as django_settings
from django.db import connection

from tests.flows.warm import Program, Start, anew, warm

QUICK_CLOCK = "tests.flows.quick_clock"


def database_url() -> str:
    """The URL of the database that this test runs on."""
    parts = connection.settings_dict
    user = quote(parts["USER"]) + (
        f":{quote(parts['PASSWORD'])}" if parts["PASSWORD"] else ""
    )
    host = quote(parts["HOST"], safe="")
    port = f"&port={parts['PORT']}" if parts["PORT"] else ""
    return f"postgresql://{user}@/{quote(parts['NAME'])}?host={host}{port}"


def wait_until(condition: Callable[[], object], *, seconds: float, what: str) -> None:
    """Wait for something that another process does; fails with words."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    pytest.fail(f"Not within {seconds} s: {what}")


def is_held(work: str, number: int) -> bool:
    """Whether a worker is at this work alone, as apps/pipeline/alone.py lets it be."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database "
            "WHERE locktype = 'advisory' AND datname = current_database() "
            "AND classid::bigint::bit(32) = hashtext(%s)::bit(32) AND objid = %s",
            [work, number],
        )
        return bool(cursor.fetchone()[0])


class Processes:
    """Starts the product's own worker and beat, and kills them like a bad day."""

    def __init__(
        self,
        environment: dict[str, str],
        log: IO[bytes],
        *,
        start: Start = anew,
        clock: str = "evalsite",
    ) -> None:
        self.environment = environment
        self.log = log
        self.start = start
        self.clock = clock
        self.started: list[Program] = []

    def _celery(self, application: str, *arguments: str) -> Program:
        words = ("celery", "-A", application, *arguments)
        program = self.start(*words, environment=self.environment, log=self.log)
        self.started.append(program)
        return program

    def worker(self, *, queues: str = "", processes: int = 2) -> Program:
        """A worker with so many children, of all queues unless some are named."""
        name = f"{queues.replace(',', '-')}@%h"
        only = ("-Q", queues, "-n", name) if queues else ()
        return self._celery(
            *("evalsite", "worker", "-c", str(processes), *only),
            *("--without-gossip", "--without-mingle", "-l", "ERROR"),
        )

    def beat(self, folder: object) -> Program:
        written = ("-s", f"{folder}/beat", "--pidfile=")
        return self._celery(self.clock, "beat", *written, "-l", "ERROR")

    def kill(self, program: Program) -> None:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait(timeout=20)

    def kill_at_work(self, program: Program, is_at_work: Callable[[], object]) -> None:
        """Kill it in the middle: it stands still while it is asked whether it works."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            os.killpg(program.pid, signal.SIGSTOP)
            if is_at_work():
                return self.kill(program)
            os.killpg(program.pid, signal.SIGCONT)
            time.sleep(0.02)
        return pytest.fail("It was never at work: the kill would tell nothing.")

    def end(self) -> None:
        for program in self.started:
            if program.poll() is None:
                self.kill(program)


@contextmanager
def running(
    environment: dict[str, str],
    log: Path,
    *,
    start: Start = anew,
    clock: str = "evalsite",
) -> Iterator[Processes]:
    with log.open("wb") as stream:
        processes = Processes(environment, stream, start=start, clock=clock)
        try:
            yield processes
        finally:
            processes.end()
            # Shown by pytest when the test fails.
            print(log.read_text(errors="replace")[-4_000:])


@pytest.fixture(autouse=True)
def uploads_dir(tmp_path, settings):
    """Raw uploads lie where the worker looks for them, in the test's own folder."""
    settings.UPLOADS_DIR = tmp_path / "uploads"
    return settings.UPLOADS_DIR


@pytest.fixture
def broker() -> redis.Redis:
    """The broker, emptied."""
    url = str(django_settings.REDIS_URL).replace("redis+socket://", "unix://")
    client = redis.Redis.from_url(url)
    client.flushall()
    yield client
    client.close()


@pytest.fixture(scope="session")
def start() -> Iterator[Start]:
    """Starts programs of the product, which need not import everything anew."""
    with warm() as forking:
        yield forking.start


@pytest.fixture
def processes(transactional_db, broker, tmp_path, start) -> Iterator[Processes]:
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "REDIS_URL": str(django_settings.REDIS_URL),
        "EVALSITE_DATA_DIR": str(tmp_path),
        "EVALSITE_LEASE_SECONDS": "2",
        "EVALSITE_SECRET_KEY": "only for this test",
        "DJANGO_SETTINGS_MODULE": "evalsite.settings",
        # As `run` has it: the checks of Django import every page.
        "CELERY_SKIP_CHECKS": "1",
    }
    log = tmp_path / "celery.log"
    with running(environment, log, start=start, clock=QUICK_CLOCK) as found:
        yield found
