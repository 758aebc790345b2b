"""One connection to an address that was checked, watched from its first byte on.

Time-outs of an HTTP client count from byte to byte, so a target that drips one byte a
second is never late. Here every wait ends at the run's own deadline, and is interrupted
when the run shall stop.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import httpcore

from apps.engine.replay.run import ErrorKind
from apps.isolation.run_time import SLICE, RunTime, failed
from apps.isolation.wall import CannotResolve, CheckedUrl, Pinned, Resolve, pinned

CONNECT_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 30.0
_BLOCKED: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Dial = Callable[[str, int, float, RunTime], socket.socket]
"""Connects to an IP address and port within some seconds, or raises `OSError`."""


def tcp_dial(
    address: str, port: int, seconds: float, time_left: RunTime
) -> socket.socket:
    """A TCP connection to an IP address; no name is resolved."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003 # the argument has no name
        _connect(sock, (address, port), seconds, time_left)
    except BaseException:
        sock.close()
        raise
    return sock


def _connect(
    sock: socket.socket, to: tuple[str, int], seconds: float, time_left: RunTime
) -> None:
    code = sock.connect_ex(to)
    until = time.monotonic() + seconds
    while code == errno.EINPROGRESS:
        if time.monotonic() > until:
            raise TimeoutError(errno.ETIMEDOUT, "it did not answer in time")
        if _ready(sock, select.POLLOUT, time_left.slice()):
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))


def _ready(sock: socket.socket, what: int, seconds: float) -> bool:
    waits = select.poll()
    waits.register(sock, what)
    return bool(waits.poll(seconds * 1_000))


def pinned_in_time(
    checked: CheckedUrl, *, resolve: Resolve, time_left: RunTime
) -> Pinned:
    """The addresses behind a checked URL, within the time to connect.

    The system's resolver cannot be interrupted, so it is asked in a thread that is left
    alone when it takes too long. Raises `CallFailed` or `RefusedAddress`.
    """
    answer: list[Pinned | Exception] = []
    done = threading.Event()

    def ask() -> None:
        try:
            answer.append(pinned(checked, resolve=resolve))
        except Exception as error:  # noqa: BLE001 # raised below, in the asking thread
            answer.append(error)
        done.set()

    threading.Thread(target=ask, daemon=True, name="resolve").start()
    until = time.monotonic() + CONNECT_SECONDS
    while not done.wait(min(time_left.slice(), SLICE)):
        if time.monotonic() > until:
            raise failed(
                ErrorKind.CONNECTION,
                f"The name {checked.host} was not resolved in {CONNECT_SECONDS:g} seconds.",
            )
    found = answer[0]
    if isinstance(found, CannotResolve):
        raise failed(ErrorKind.CONNECTION, str(found))
    if isinstance(found, Exception):
        raise found
    return found


class Watched(httpcore.NetworkStream):
    """A connected socket whose waits are those of the run. It counts what came in.

    `read` raises `CallFailed` at the run's deadline, at its stop, or when nothing comes
    for `IDLE_SECONDS` after the first byte. Before the first byte a model may think as
    long as the run may take.
    """

    def __init__(self, sock: socket.socket, time_left: RunTime) -> None:
        sock.setblocking(False)  # noqa: FBT003 # the argument has no name
        self._sock = sock
        self._time = time_left
        self.received = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Bytes as soon as there are some; b"" where the other side closed."""
        del timeout  # the run's own time counts
        since = time.monotonic()
        while True:
            self._time.check()
            try:
                data = self._sock.recv(max_bytes)
            except _BLOCKED as blocked:
                self._wait(blocked, is_reading=True)
                self._check_idle(since)
                continue
            except OSError as error:
                raise httpcore.ReadError(str(error)) from error
            self.received += len(data)
            return data

    def _check_idle(self, since: float) -> None:
        if self.received and time.monotonic() - since > IDLE_SECONDS:
            raise failed(
                ErrorKind.TIMED_OUT,
                f"Nothing came for {IDLE_SECONDS:g} seconds in the middle of the answer.",
            )

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send everything."""
        del timeout
        rest = memoryview(buffer)
        while rest:
            self._time.check()
            try:
                rest = rest[self._sock.send(rest) :]
            except _BLOCKED as blocked:
                self._wait(blocked, is_reading=False)
            except OSError as error:
                raise httpcore.WriteError(str(error)) from error

    def _wait(self, blocked: Exception, *, is_reading: bool) -> None:
        """Wait for the direction that the socket, or TLS below it, asks for."""
        if isinstance(blocked, ssl.SSLWantReadError):
            is_reading = True
        elif isinstance(blocked, ssl.SSLWantWriteError):
            is_reading = False
        what = select.POLLIN if is_reading else select.POLLOUT
        _ready(self._sock, what, self._time.slice())

    def close(self) -> None:
        """Close without waiting for anybody."""
        self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Shake hands for the name of the address, within the time to connect."""
        del timeout
        until = time.monotonic() + CONNECT_SECONDS
        try:
            self._sock = ssl_context.wrap_socket(
                self._sock,
                server_hostname=server_hostname,
                do_handshake_on_connect=False,
            )
            while not self._shake(self._sock):
                if time.monotonic() > until:
                    raise httpcore.ConnectTimeout("the handshake took too long")
        except OSError as error:
            self._sock.close()
            raise httpcore.ConnectError(_why_no_tls(error)) from error
        return self

    def _shake(self, sock: ssl.SSLSocket) -> bool:
        try:
            sock.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as blocked:
            self._wait(blocked, is_reading=True)
            return False
        return True

    def get_extra_info(self, info: str) -> Any:
        """What httpcore asks of a stream; a used connection is never kept."""
        if info == "ssl_object":
            return self._sock if isinstance(self._sock, ssl.SSLSocket) else None
        return self._sock if info == "socket" else None


def _why_no_tls(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate was not accepted ({error.verify_message})"
    return error.strerror or type(error).__name__


class PinnedBackend(httpcore.NetworkBackend):
    """Connects to the addresses that were checked, whatever name it is given."""

    def __init__(self, where: Pinned, *, dial: Dial, time_left: RunTime) -> None:
        self._where = where
        self._dial = dial
        self._time = time_left
        self.stream: Watched | None = None

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """The first of the addresses that answers, within the time to connect."""
        del host, port, timeout, local_address, socket_options
        until = time.monotonic() + min(CONNECT_SECONDS, self._time.left)
        why = "no address answered"
        addresses = self._where.addresses
        for number, address in enumerate(addresses):
            self._time.check()
            # Each of the addresses gets its share of the time.
            seconds = (until - time.monotonic()) / (len(addresses) - number)
            try:
                sock = self._dial(address, self._where.port, seconds, self._time)
            except OSError as error:
                why = error.strerror or "it did not answer in time"
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.stream = Watched(sock, self._time)
            return self.stream
        self._time.check()
        raise httpcore.ConnectError(why)

    def close(self) -> None:
        """Close what was opened; safe to call where nothing was."""
        if self.stream is not None:
            self.stream.close()

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """No target lies behind a unix socket."""
        del path, timeout, socket_options
        raise httpcore.ConnectError("unix sockets are not called")
