"""The product's own web server on a free port of loopback, to be killed at will."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from tests.flows.warm import Program, Start, anew


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_health(port: int, log: Path, *, seconds: float = 60) -> None:
    """Wait until a web server on loopback answers; the end of its log when it does not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    raise AssertionError(log.read_text(errors="replace")[-2_000:])


class Web:
    """Starts gunicorn on one port, kills it, and starts it there again."""

    def __init__(
        self, environment: dict[str, str], log: Path, *, start: Start = anew
    ) -> None:
        self._environment = environment
        self._log = log
        self._start = start
        self._program: Program | None = None
        self.port = _free_port()
        self.address = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with self._log.open("ab") as stream:
            self._program = self._start(
                *("gunicorn", "evalsite.wsgi"),
                *("--worker-class", "gthread", "--workers", "2", "--threads", "4"),
                *("--bind", f"127.0.0.1:{self.port}", "--log-level", "warning"),
                *("--access-logfile", "-", "--preload"),
                environment=self._environment,
                log=stream,
            )
        wait_for_health(self.port, self._log)

    def kill(self) -> None:
        """End it like a power cut."""
        if self._program is not None and self._program.poll() is None:
            os.killpg(self._program.pid, signal.SIGKILL)
            self._program.wait(timeout=20)
        self._program = None

    def post(self, body: bytes | Iterator[bytes], token: str, **headers: str) -> int:
        """Send one export request, in chunks if it is an iterator; its status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(
                "POST",
                "/v1/traces",
                body,
                {
                    "Content-Type": "application/x-protobuf",
                    "Authorization": f"Bearer {token}",
                    **headers,
                },
            )
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()
