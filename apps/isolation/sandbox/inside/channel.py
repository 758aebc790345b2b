"""Lines of JSON between the agent's process and the one that started the run."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any


class TooLarge(ValueError):
    """A value is larger than the run may hand over."""


class Channel:
    """One end of a pair of sockets; each value is a line.

    Only one thread asks at a time. A value that is no JSON raises `TypeError` or
    `ValueError` before anything is sent, one that is too large `TooLarge`: larger than
    `most` bytes, and what was handed over besides.
    """

    def __init__(self, descriptor: int, most: int, handed_over: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self.most = most
        self._longest = most + 2 * handed_over + 65_536
        self._lock = threading.RLock()
        self._read = self._socket.makefile("rb")

    def send(self, value: Any, descriptor: int | None = None) -> None:
        """Send a value, with a file descriptor where one is given."""
        line = encoded(value)
        if len(line) > self._longest:
            raise TooLarge(f"{len(line):,} bytes, more than {self.most:,}")
        with self._lock:
            if descriptor is not None:
                sent = socket.send_fds(self._socket, [line[:1]], [descriptor])
                line = line[sent:]
            self._socket.sendall(line)

    def note(self, value: Any) -> None:
        """Send a value of which it does not matter whether it arrives."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            self.send(value)

    def receive(self) -> Any:
        """The next value; raises `EOFError` when the other side is gone."""
        line = self._read.readline()
        if not line.endswith(b"\n"):
            raise EOFError("The run was ended.")
        return json.loads(line)

    def ask(self, question: dict[str, Any]) -> Any:
        """Send a question and wait for its answer."""
        with self._lock:
            self.send(question)
            return self.receive()


def encoded(value: Any) -> bytes:
    """A value as one line; raises `TypeError`, `ValueError`, `RecursionError`.

    Half characters (lone surrogates), which are no text, become question marks.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"
