"""A listener on loopback that nobody may reach, and what dialled where."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from apps.isolation.connection import tcp_dial


class Canary:
    """`port` is listened on; `heard` counts connections; `dialled` who was called."""

    def __init__(self) -> None:
        self.heard = 0
        self.dialled: list[tuple[str, int]] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            self.heard += 1
            caller.close()

    def dial(self, address, port, seconds, time_left):
        """Connects on loopback only; anywhere else nobody answers."""
        self.dialled.append((address, port))
        if address not in {"127.0.0.1", "::1"}:
            raise ConnectionRefusedError(111, "Connection refused")
        return tcp_dial(address, port, seconds, time_left)

    def close(self) -> None:
        # Closing alone does not wake a thread that accepts.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(2)


@contextmanager
def canary() -> Iterator[Canary]:
    made = Canary()
    try:
        yield made
    finally:
        made.close()
