"""One request to a target and its answer, behind the wall and within the run's time.

The address is checked and resolved for each request, and the connection goes to what
was checked. No proxy, no redirect, no cookie, no connection that is kept. An answer is
taken up to its limits and never further.
"""

from __future__ import annotations

import re
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import certifi
import httpcore
import httpx

from apps.engine.replay.run import ErrorKind
from apps.isolation.connection import Dial, PinnedBackend, pinned_in_time, tcp_dial
from apps.isolation.run_time import CallFailed, RunTime, failed
from apps.isolation.wall import (
    NO_INNER_HOSTS,
    InnerHosts,
    RefusedAddress,
    Resolve,
    checked_url,
    system_resolve,
)

HEADER_BYTES: Final = 64 * 1024
_STEP: Final = 64 * 1024
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PRINTABLE: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")
_RESERVED: Final = frozenset(
    {
        "host", "content-length", "transfer-encoding", "connection", "accept-encoding",
        "te", "trailer", "upgrade", "proxy-authorization", "expect",
    }
)  # fmt: skip


@cache
def system_tls() -> ssl.SSLContext:
    """Certificates are checked against the system's store and the one of certifi."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Which targets can be reached, and how: `inner` is the operator's list."""

    inner: InnerHosts = NO_INNER_HOSTS
    resolve: Resolve = system_resolve
    dial: Dial = tcp_dial
    tls: Callable[[], ssl.SSLContext] = system_tls


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is sent. `secrets` are masked in what comes back; they are in `headers`."""

    url: str
    body: bytes = b""
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    answer_bytes: int = 10 * 1024**2


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back: `headers` with names in small letters, `body` unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Look = Callable[[int, Mapping[str, str], bytes], bool]
"""Sees status, headers and each piece of a body; whether the answer is whole now."""


def _go_on(_status: int, _headers: Mapping[str, str], _piece: bytes) -> bool:
    return False


def exchange(
    request: Request, *, reach: Reach, time_left: RunTime, look: Look = _go_on
) -> Reply:
    """The answer to one request, whatever its status.

    `look` may end it before the other side does, as streams want it. Raises
    `CallFailed`: refused by the wall, no connection, too late, cancelled, too large, or
    no HTTP. At the deadline it ends within a second, whatever the target does.
    """
    time_left.check()
    _check_headers(request.headers)
    try:
        checked = checked_url(request.url, inner=reach.inner)
        where = pinned_in_time(checked, resolve=reach.resolve, time_left=time_left)
    except RefusedAddress as refusal:
        raise failed(ErrorKind.REFUSED, str(refusal)) from None
    backend = PinnedBackend(where, dial=reach.dial, time_left=time_left)
    context = reach.tls() if checked.scheme == "https" else None
    try:
        with _Transport(backend, context) as transport, _client(transport) as client:
            return _exchanged(client, request, look)
    except CallFailed:
        raise
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failed_exchange(error, backend) from None
    finally:
        # A handshake that was broken off leaves it to nobody else.
        backend.close()


def secret_headers(secret: str, name: str, prefix: str | None = None) -> dict[str, str]:
    """The header that carries a key, as `prefix` and key.

    Without a prefix it is a bearer token in `Authorization`, unless the key names a
    scheme of its own, and the key alone in every other header.
    """
    if prefix is None:
        is_bare = name.lower() == "authorization" and " " not in secret.strip()
        prefix = "Bearer " if is_bare else ""
    return {name: prefix + secret}


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or not _PRINTABLE.fullmatch(value):
            raise failed(
                ErrorKind.NOT_ALLOWED,
                "A header or the key of the target holds characters that cannot be "
                "sent: only ASCII letters, digits and signs can.",
            )


def _client(transport: httpx.BaseTransport) -> httpx.Client:
    # The time-outs are those of the connection, which knows the run's deadline.
    return httpx.Client(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(None),
    )


class _Transport(httpx.BaseTransport):
    """Takes httpx to a connection that we opened ourselves."""

    def __init__(self, backend: PinnedBackend, context: ssl.SSLContext | None) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=1,
            max_keepalive_connections=0,
            network_backend=backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send and give back the answer, its body still to be read."""
        try:
            found = self._pool.handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.content,
                )
            )
        except _HTTPCORE as error:
            raise _of_httpx(error) from error
        return httpx.Response(
            status_code=found.status,
            headers=found.headers,
            stream=_Stream(found),
        )

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()


_HTTPCORE: Final = (
    httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
)  # fmt: skip


def _of_httpx(error: Exception) -> httpx.TransportError:
    if isinstance(error, httpcore.ConnectError | httpcore.ConnectTimeout):
        return httpx.ConnectError(str(error))
    if isinstance(error, httpcore.NetworkError):
        return httpx.ReadError(str(error))
    return httpx.RemoteProtocolError(str(error))


class _Stream(httpx.SyncByteStream):
    """The body of an answer while it is read."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._response.iter_stream()
        except _HTTPCORE as error:
            raise _of_httpx(error) from error

    def close(self) -> None:
        """Let go of the connection."""
        self._response.close()


def _exchanged(client: httpx.Client, request: Request, look: Look) -> Reply:
    headers = {
        key: value
        for key, value in request.headers.items()
        if key.lower() not in _RESERVED
    }
    headers |= {"Accept-Encoding": "gzip, identity", "User-Agent": "evalsite-replay"}
    with client.stream(
        request.method, request.url, content=request.body, headers=headers
    ) as response:
        size = sum(len(name) + len(value) + 4 for name, value in response.headers.raw)
        if size > HEADER_BYTES:
            raise _too_many_headers()
        given = {name.lower(): value for name, value in response.headers.items()}
        body = bytearray()
        for piece in _unpacked(response, given.get("content-encoding", "")):
            body += piece
            if len(body) > request.answer_bytes:
                raise failed(
                    ErrorKind.TOO_LARGE,
                    f"The answer is larger than {request.answer_bytes:,} bytes.",
                )
            if look(response.status_code, given, piece):
                break
        return Reply(status=response.status_code, headers=given, body=bytes(body))


def _too_many_headers() -> CallFailed:
    return failed(
        ErrorKind.TOO_LARGE,
        f"The headers of the answer are larger than {HEADER_BYTES:,} bytes.",
    )


def _unpacked(response: httpx.Response, packing: str) -> Iterator[bytes]:
    """The body in pieces of at most 64 kB, whatever they unfold from."""
    kind = packing.strip().lower()
    if kind in {"", "identity"}:
        yield from response.iter_raw()
        return
    if kind not in {"gzip", "x-gzip"}:
        raise failed(
            ErrorKind.BAD_ANSWER,
            f'The answer is packed in a way that was not asked for ("{kind[:40]}").',
        )
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        for raw in response.iter_raw():
            while raw:
                yield unpacker.decompress(raw, _STEP)
                raw = unpacker.unconsumed_tail
    except zlib.error:
        raise failed(
            ErrorKind.BAD_ANSWER, "The gzip of the answer is broken."
        ) from None
    if not unpacker.eof:
        raise failed(ErrorKind.BAD_ANSWER, "The gzip of the answer was cut off.")


def _failed_exchange(error: Exception, backend: PinnedBackend) -> CallFailed:
    """What went wrong below HTTP, or with HTTP itself, in words."""
    received = backend.stream.received if backend.stream is not None else 0
    told: Any = " ".join(str(error).split())[:200]
    if isinstance(error, httpx.ConnectError):
        return failed(ErrorKind.CONNECTION, f"The target cannot be reached: {told}.")
    if "Receive buffer too long" in told and received > HEADER_BYTES:
        return _too_many_headers()
    if isinstance(error, httpx.RemoteProtocolError):
        is_cut = "closed connection" in told or "disconnected" in told
        if is_cut:
            return failed(
                ErrorKind.CONNECTION,
                "The target closed the connection before its answer was complete.",
            )
        return failed(ErrorKind.BAD_ANSWER, "The answer is no HTTP.")
    return failed(ErrorKind.CONNECTION, f"The connection broke: {told or 'no reason'}.")
