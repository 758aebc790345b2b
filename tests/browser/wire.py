"""A line between a browser and a server that a test can cut, and a server to kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from tests.conftest import ROOT
from tests.flows.web_server import wait_for_health

_CHUNK = 64 * 1024


class Wire:
    """Carries bytes from its own port to a server's, until it is cut.

    `carried` counts the bytes that went to the server.
    """

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.carried = 0
        self.was_cut = threading.Event()
        self._cut_at: int | None = None
        self._is_down = False
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut_after(self, count: int) -> None:
        """Break every connection once so many more bytes went to the server."""
        self.was_cut.clear()
        self._cut_at = self.carried + count

    def mend(self) -> None:
        """Carry again."""
        self._cut_at, self._is_down = None, False

    def close(self) -> None:
        self._is_down = True
        # `shutdown` wakes the thread that waits in `accept`.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._break_all()

    def _accept(self) -> None:
        while True:
            try:
                inside, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self._is_down:
                    raise ConnectionError
                outside = socket.create_connection(("127.0.0.1", self.server_port))
            except OSError:
                inside.close()
                continue
            with self._lock:
                self._open |= {inside, outside}
            for pair, up in (((inside, outside), True), ((outside, inside), False)):
                carry = partial(self._carry, *pair, up=up)
                threading.Thread(target=carry, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, *, up: bool) -> None:
        with suppress(OSError):
            while chunk := source.recv(_CHUNK):
                target.sendall(chunk)
                if up:
                    self._count(len(chunk))
        self._end(source, target)

    def _count(self, size: int) -> None:
        with self._lock:
            self.carried += size
            is_over = self._cut_at is not None and self.carried >= self._cut_at
            if is_over:
                self._cut_at, self._is_down = None, True
        if is_over:
            self._break_all()
            self.was_cut.set()

    def _break_all(self) -> None:
        with self._lock:
            ended = list(self._open)
        for one in ended:
            self._end(one)

    def _end(self, *ended: socket.socket) -> None:
        for one in ended:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        with self._lock:
            self._open -= set(ended)


class WebServer:
    """The product's own web server on a port of its own, to be killed and started."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.environment = environment
        self.log = log
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["-m", "gunicorn", "evalsite.wsgi", "--worker-class", "gthread"]
        words += ["--threads", "4", "--bind", f"127.0.0.1:{self.port}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *words, "--no-control-socket"],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for_health(self.port, self.log)

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=20)
            self._process = None


@contextmanager
def wired(environment: dict[str, str], log: Path) -> Iterator[tuple[WebServer, Wire]]:
    """A running web server and the line to it."""
    server = WebServer(environment, log)
    server.start()
    wire = Wire(server.port)
    try:
        yield server, wire
    finally:
        wire.close()
        server.kill()
