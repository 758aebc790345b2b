"""Gives the test run servers of its own, and closes every socket to other machines.

Loaded with `-p tests.servers` before pytest-django reads the settings. The addresses are
set at once; the servers start after collection, and only when something was collected
that is not plain Python.
"""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import os
import shutil
import socket
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalsite.embedded import (
    EmbeddedServers,
    Places,
    embedded_urls,
    start_embedded,
    wait_for_valkey,
)
from evalsite.places import held
from evalsite.processes import CannotStart, Process

_PREFIX = "evalsite-tests-"
_OURS = "EVALSITE_TESTS_SET"
_PLAIN = ("tests/engine/", "tests/figures/", "tests/isolation/")


class TestServers:
    """The throw-away data folder of one run, and what is started on it."""

    __test__ = False

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.servers: EmbeddedServers | None = None
        self.names: list[str] = []

    def choose(self) -> None:
        """Set the addresses in the environment; starts nothing.

        A worker of pytest-xdist forgets the addresses that it inherits from the process
        that started it: each worker has servers of its own.
        """
        if "PYTEST_XDIST_WORKER" in os.environ:
            for name in os.environ.pop(_OURS, "").split():
                os.environ.pop(name, None)
        _remove_abandoned()
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # The servers' account must pass through a folder that mkdtemp made for us.
        self.folder.chmod(0o711)
        data_dir = self.folder / "data"
        database_url, redis_url = embedded_urls(data_dir)
        ours: list[str] = []
        if not os.environ.get("DATABASE_URL"):
            self.names.append("postgres")
            os.environ["DATABASE_URL"] = database_url
            ours.append("DATABASE_URL")
        if not os.environ.get("REDIS_URL"):
            self.names.append("valkey")
            os.environ["REDIS_URL"] = redis_url
            ours.append("REDIS_URL")
        os.environ[_OURS] = " ".join(ours)
        os.environ["EVALSITE_DATA_DIR"] = str(data_dir)
        os.environ["EVALSITE_SECRET_KEY"] = "only-for-tests-" + "0123456789" * 5
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

    def start(self) -> None:
        """Start what has no address from outside."""
        assert self.folder is not None
        self.servers = start_embedded(
            self.folder / "data",
            names=self.names,
            postgres_user=os.environ.get("EVALSITE_POSTGRES_USER", ""),
            throw_away=True,
        )

    def crash_broker(self) -> bool:
        """Kill the broker and start it again on its file; not one from outside."""
        assert self.servers is not None
        if "valkey" not in self.names:
            return False
        killed = self.servers.processes["valkey"]
        killed.end_group()
        # Later versions of Python warn of a fork beside the threads of a test; the new
        # process does nothing before its program that another thread could hold up.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            again = self.servers.processes["valkey"] = Process(killed.plan)
        wait_for_valkey(self.servers.places, again)
        return True

    def stop(self) -> None:
        """Stop the servers and remove their folder; safe to run twice."""
        if self.servers is not None:
            self.servers.stop()
            self.servers = None
        if self.folder is not None:
            _remove(self.folder)
            self.folder = None


def _remove(folder: Path) -> None:
    sockets = Places.at(folder / "data").sockets
    shutil.rmtree(folder, ignore_errors=True)
    if sockets.parent != folder / "data":
        shutil.rmtree(sockets, ignore_errors=True)


def _remove_abandoned() -> None:
    """Remove folders of runs that were killed: nobody holds them any more."""
    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        # Another run may be removing the same folder just now.
        with contextlib.suppress(FileNotFoundError):
            if _is_abandoned(folder):
                _remove(folder)


def _is_abandoned(folder: Path) -> bool:
    places = Places.at(folder / "data")
    if folder.stat().st_uid != os.geteuid() or not places.lock.exists():
        return False
    try:
        with held(places):
            return True
    except CannotStart:
        return False


_run = TestServers()
crash_broker = _run.crash_broker
_guard = pytest.MonkeyPatch()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Iterator[None]:
    _run.choose()
    return (yield)


def pytest_configure() -> None:
    close_sockets(_guard)


def pytest_collection_finish(session: pytest.Session) -> None:
    # What was collected stays to the end: looking through it again and again for
    # garbage costs a tenth of the run.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    if session.config.option.collectonly or _has_workers(session.config):
        return
    root = session.config.rootpath
    wanting = [
        item
        for item in session.items
        if not item.path.relative_to(root).as_posix().startswith(_PLAIN)
    ]
    if not wanting:
        return
    try:
        _run.start()
    except CannotStart as error:
        pytest.exit(str(error), returncode=2)


def _has_workers(config: pytest.Config) -> bool:
    """Whether this process only hands the tests to others, which have their servers."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    return bool(config.getoption("numprocesses", None)) and not is_worker


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    _guard.undo()
    _run.stop()


def close_sockets(patch: pytest.MonkeyPatch) -> None:
    """Let this process connect and send to loopback and unix sockets only."""
    for name in ("connect", "connect_ex", "sendto"):
        patch.setattr(socket.socket, name, _guarded(name))
    patch.setattr(socket, "getaddrinfo", _guarded_lookup(socket.getaddrinfo))


def _guarded(name: str):
    original = getattr(socket.socket, name)

    def guarded(self: socket.socket, *args):
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            _refuse_foreign(args[-1][0])
        return original(self, *args)

    return guarded


def _guarded_lookup(original):
    def guarded(host, *args, **kwargs):
        if host:
            _refuse_foreign(host)
        return original(host, *args, **kwargs)

    return guarded


def _refuse_foreign(host: str | bytes) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if name == "localhost":
        return
    try:
        loopback = ipaddress.ip_address(name).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ConnectionRefusedError(
            f"Tests reach no other machine, and {name} is one."
        )
