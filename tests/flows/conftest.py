"""A real worker process on the test's own database, broker keys and data folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
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

from tests.conftest import ROOT


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


class Processes:
    """Starts the product's own worker and beat, and kills them like a bad day."""

    def __init__(self, environment: dict[str, str], log: IO[bytes]) -> None:
        self.environment = environment
        self.log = log
        self.started: list[subprocess.Popen[bytes]] = []

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "evalsite", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", "-c", "2", "--without-gossip", "-l", "ERROR")

    def beat(self, folder: object) -> subprocess.Popen[bytes]:
        return self._start("beat", "-s", f"{folder}/beat", "--pidfile=", "-l", "ERROR")

    def kill(self, process: subprocess.Popen[bytes], sig: int = signal.SIGKILL) -> None:
        os.killpg(process.pid, sig)
        process.wait(timeout=20)

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                self.kill(process)


@contextmanager
def running(environment: dict[str, str], log: Path) -> Iterator[Processes]:
    with log.open("wb") as stream:
        processes = Processes(environment, stream)
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


@pytest.fixture
def processes(transactional_db, broker, tmp_path) -> Iterator[Processes]:
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "REDIS_URL": str(django_settings.REDIS_URL),
        "EVALSITE_DATA_DIR": str(tmp_path),
        "EVALSITE_LEASE_SECONDS": "2",
        "EVALSITE_SECRET_KEY": "only for this test",
        "DJANGO_SETTINGS_MODULE": "evalsite.settings",
    }
    with running(environment, tmp_path / "celery.log") as found:
        yield found
