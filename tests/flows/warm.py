"""Programs of the product as forks of one process that has imported what they stand on.

A program that is started anew spends nearly all of its first seconds on importing
Celery, Django and the engine, and the tests of this folder start dozens. What looks at
settings or at the environment is imported after the fork, by the program itself.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Protocol

from tests.conftest import ROOT


class Program(Protocol):
    """A running program in a session of its own, with all that it has started."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float) -> int: ...


class Start(Protocol):
    """Runs a module as `python -m` does in the project's folder."""

    def __call__(
        self, *words: str, environment: Mapping[str, str], log: IO[bytes]
    ) -> Program: ...


def anew(*words: str, environment: Mapping[str, str], log: IO[bytes]) -> Program:
    """Start a program with everything that it imports."""
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=environment,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


class Warm:
    """The line to the process that forks."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def start(
        self, *words: str, environment: Mapping[str, str], log: IO[bytes]
    ) -> Program:
        """Start a program that finds imported what it stands on."""
        request = {"words": words, "environment": dict(environment)}
        return Forked(self, self.ask(request, [log.fileno()]))

    def ask(self, request: object, files: list[int] | None = None) -> Any:
        """What the process answers; the files are for the program."""
        socket.send_fds(self._line, [json.dumps(request).encode()], files or [])
        return json.loads(self._line.recv(1_000))


class Forked:
    """A program that was forked; its number is nobody else's while nobody asked."""

    def __init__(self, warm: Warm, pid: int) -> None:
        self.pid = pid
        self._warm = warm
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = self._warm.ask({"pid": self.pid})
        return self._code

    def wait(self, timeout: float) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            assert time.monotonic() < end, f"Process {self.pid} does not end."
            time.sleep(0.01)
        return code


@contextmanager
def warm() -> Iterator[Warm]:
    """Import once, and fork what is asked for until the block is left."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.flows.forking", str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        yield Warm(ours)
    process.wait(timeout=20)
