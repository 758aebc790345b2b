"""PostgreSQL and Valkey as children of ours: on private unix sockets, no TCP port.

Who can connect: the sockets lie in a folder that only the servers' account (and root)
can enter, and PostgreSQL also asks the kernel who is calling (`peer`), so that a folder
opened by mistake still lets nobody else in. Nothing here serves other machines; for
that a team sets DATABASE_URL and REDIS_URL, and then nothing here starts.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from evalsite.places import (
    DATABASE_NAME,
    DATABASE_ROLE,
    Places,
    default_data_dir,
    embedded_urls,
    held,
    prepare,
    redis_client_url,
)
from evalsite.processes import (
    Account,
    CannotStart,
    Process,
    ProcessPlan,
    StopStep,
    end_leftovers,
    log_tail,
    rotate_log,
    stop_together,
    working_in,
)
from evalsite.programs import PostgresPrograms, find_postgres, find_valkey
from evalsite.unprivileged import server_account

__all__ = [
    "EmbeddedServers",
    "Places",
    "default_data_dir",
    "embedded_urls",
    "postgres_plan",
    "redis_client_url",
    "start_embedded",
    "valkey_plan",
    "wait_for_postgres",
    "wait_for_valkey",
]

# Owns the cluster; the product itself connects with a role that is not a superuser.
_ADMIN_ROLE = "evalsite_admin"
_READY_SECONDS = 300.0
_LEFTOVER_SECONDS = 8.0
_SMALL_MACHINE = {
    "shared_buffers": "128MB",
    "max_connections": "60",
    "max_wal_size": "1GB",
    "wal_compression": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
}
# For data that is thrown away: a crash of the machine may destroy it.
_THROW_AWAY = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "64MB",
}


def postgres_plan(
    places: Places, *, account: Account | None, throw_away: bool = False
) -> ProcessPlan:
    """Return the plan of PostgreSQL; creates its data folder when there is none.

    Args:
        places: Prepared folders.
        account: Who runs the server, None for ourselves.
        throw_away: Fast settings that would lose data if the machine crashed.

    Raises:
        CannotStart: No programs, another version's data, or initdb failed.
    """
    programs = find_postgres(places, account)
    if not (places.postgres / "PG_VERSION").exists():
        _initialise(places, programs, account=account, synced=not throw_away)
    _write_access(places, account)
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": str(places.sockets),
        "unix_socket_permissions": "0700",
        "hba_file": str(places.access / "pg_hba.conf"),
        "ident_file": str(places.access / "pg_ident.conf"),
        **_SMALL_MACHINE,
        **(_THROW_AWAY if throw_away else {}),
    }
    options = [
        part for key, value in settings.items() for part in ("-c", f"{key}={value}")
    ]
    return ProcessPlan(
        name="postgres",
        command=(
            str(programs.folder / "postgres"),
            "-D",
            str(places.postgres),
            *options,
        ),
        log=places.log("postgres"),
        environment=_server_environment(),
        account=account,
        # SIGINT ends sessions and writes a checkpoint; SIGQUIT leaves that to recovery.
        stop_steps=(StopStep(signal.SIGINT, 5), StopStep(signal.SIGQUIT, 1)),
        death_signal=signal.SIGINT,
        before_start=lambda: _clear_postgres(places.postgres),
    )


def valkey_plan(
    places: Places, *, account: Account | None, throw_away: bool = False
) -> ProcessPlan:
    """Return the plan of Valkey: append-only file on disk, nothing is evicted.

    Args:
        places: Prepared folders.
        account: Who runs the server, None for ourselves.
        throw_away: Leave writing to disk to the operating system.

    Raises:
        CannotStart: No server program was found.
    """
    options = {
        "port": "0",
        "unixsocket": str(places.valkey_socket),
        "unixsocketperm": "700",
        "dir": str(places.valkey),
        "appendonly": "yes",
        "appendfsync": "no" if throw_away else "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    parts = [part for key, value in options.items() for part in (f"--{key}", value)]
    return ProcessPlan(
        name="valkey",
        command=(str(find_valkey(places, account)), *parts),
        log=places.log("valkey"),
        environment=_server_environment(),
        account=account,
        stop_steps=(StopStep(signal.SIGTERM, 4),),
        before_start=lambda: _clear(places.valkey),
    )


def _server_environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _initialise(
    places: Places,
    programs: PostgresPrograms,
    *,
    account: Account | None,
    synced: bool,
) -> None:
    """Create the cluster beside its place and move it there when it is whole."""
    unfinished = places.data_dir / "postgres.unfinished"
    with suppress(FileNotFoundError):
        shutil.rmtree(unfinished)
    unfinished.mkdir(mode=0o700)
    if account is not None:
        os.chown(unfinished, account.uid, account.gid)
    locale = ["--locale=C"]
    if programs.major >= 17:
        locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    answer = subprocess.run(  # noqa: S603
        [
            programs.folder / "initdb",
            f"--pgdata={unfinished}",
            f"--username={_ADMIN_ROLE}",
            "--encoding=UTF8",
            "--data-checksums",
            "--auth-local=peer",
            "--auth-host=reject",
            *locale,
            *([] if synced else ["--no-sync"]),
        ],
        cwd="/",
        env=_server_environment(),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    if answer.returncode:
        said = (answer.stderr or answer.stdout).strip()
        raise CannotStart(f"PostgreSQL's data folder could not be created:\n{said}")
    unfinished.rename(places.postgres)


def _write_access(places: Places, account: Account | None) -> None:
    """Write who may connect: we ourselves, root, and the account of the server."""
    callers = {pwd.getpwuid(os.geteuid()).pw_name, "root"}
    if account is not None:
        callers.add(account.name)
    idents = [
        f'evalsite "{caller}" {role}'
        for caller in sorted(callers)
        for role in (DATABASE_ROLE, _ADMIN_ROLE)
    ]
    for name, lines in {
        "pg_hba.conf": ["local all all peer map=evalsite"],
        "pg_ident.conf": idents,
    }.items():
        path = places.access / name
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600 if account is None else 0o644)


def _clear(folder: Path) -> None:
    """End servers that an earlier start left behind in this folder."""
    end_leftovers(lambda: working_in(folder), patience=_LEFTOVER_SECONDS)


def _clear_postgres(folder: Path) -> None:
    _clear(folder)
    # We hold the lock of the data folder and nothing works in it: a process id in this
    # file is of the past, and may by now belong to another program, which would make
    # PostgreSQL refuse to start.
    (folder / "postmaster.pid").unlink(missing_ok=True)


def wait_for_postgres(places: Places, process: Process) -> None:
    """Wait until PostgreSQL answers, then create role and database if absent.

    Safe to run twice.

    Raises:
        CannotStart: It ended or did not answer; the text has the end of its log.
    """
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            with _connect_as_admin(places) as connection:
                _ensure_database(connection)
                return
        except psycopg.OperationalError as error:
            _refuse_dead(process, deadline, error)
        time.sleep(0.05)


def _connect_as_admin(places: Places) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host=str(places.sockets),
        port=5432,
        user=_ADMIN_ROLE,
        dbname="postgres",
        connect_timeout=5,
        autocommit=True,
    )


def _ensure_database(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    role, database = sql.Identifier(DATABASE_ROLE), sql.Identifier(DATABASE_NAME)
    known = "SELECT 1 FROM pg_roles WHERE rolname = %s"
    if not connection.execute(known, [DATABASE_ROLE]).fetchone():
        # CREATEDB, because the tests make a database of their own.
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEDB").format(role))
    known = "SELECT 1 FROM pg_database WHERE datname = %s"
    if not connection.execute(known, [DATABASE_NAME]).fetchone():
        create = sql.SQL("CREATE DATABASE {} OWNER {}")
        connection.execute(create.format(database, role))


def wait_for_valkey(places: Places, process: Process) -> None:
    """Wait until Valkey answers PING, which it does when its file is loaded.

    Raises:
        CannotStart: It ended or did not answer; the text has the end of its log.
    """
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            if _ping(places.valkey_socket) == b"+PONG":
                return
        except OSError as error:
            _refuse_dead(process, deadline, error)
        else:
            _refuse_dead(process, deadline, None)
        time.sleep(0.03)


def _ping(path: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(path))
        client.sendall(b"PING\r\n")
        return client.recv(64).strip()


def _refuse_dead(process: Process, deadline: float, error: Exception | None) -> None:
    if not process.ended() and time.monotonic() < deadline:
        return
    state = process.ending() if process.ended() else "does not answer"
    tail = log_tail(process.plan.log)
    raise CannotStart(
        f"{process.plan.name} {state}. The end of its log, {process.plan.log}:\n{tail}"
    ) from error


@dataclass
class EmbeddedServers:
    """Servers of one data folder, running and by name, with the folder held."""

    places: Places
    processes: dict[str, Process]
    _open: ExitStack = field(repr=False)

    def stop(self) -> None:
        """Stop the servers with their data kept; safe to run twice."""
        self._open.close()


_PLANS = {
    "postgres": (postgres_plan, wait_for_postgres),
    "valkey": (valkey_plan, wait_for_valkey),
}


def start_embedded(
    data_dir: Path,
    *,
    names: Collection[str] = ("postgres", "valkey"),
    postgres_user: str = "",
    throw_away: bool = False,
) -> EmbeddedServers:
    """Start servers on a data folder and wait until they answer.

    Args:
        data_dir: Created when absent.
        names: Which of `postgres` and `valkey`.
        postgres_user: Who runs the servers when we are root, empty to choose.
        throw_away: Fast settings for data that need not survive the machine.

    Raises:
        CannotStart: With a sentence; nothing is left running.
    """
    places = Places.at(data_dir)
    account = server_account(postgres_user)
    prepare(places, account=account)
    with ExitStack() as stack:
        stack.enter_context(held(places))
        started: dict[str, Process] = {}
        stack.callback(lambda: stop_together(list(started.values())))
        for name in names:
            plan = _PLANS[name][0](places, account=account, throw_away=throw_away)
            rotate_log(plan.log)
            started[name] = Process(plan)
        for name, process in started.items():
            _PLANS[name][1](places, process)
        return EmbeddedServers(places, started, stack.pop_all())
