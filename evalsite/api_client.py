"""Talks to the JSON door of an Evalsite: asks what is there, and sends files.

Standard library only, so that it runs without a database, a server or settings.
"""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

TRIES = 7
LONGEST_PAUSE = 60.0
# What a server may ask for by Retry-After; beyond it somebody had better look.
LONGEST_ASKED = 600.0
TIMEOUT_SECONDS = 120.0
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_BLOCK = 256 * 1024

Answer = tuple[int, Any]
Sleep = Callable[[float], None]
Say = Callable[[str], None]


class Readable(Protocol):
    """What can be sent, and sent again from its start."""

    def seek(self, offset: int, /) -> int: ...
    def read(self, size: int = -1, /) -> bytes: ...


class Refused(Exception):
    """The server does not want this, now or later; the message is its sentence."""

    def __init__(self, sentence: str, *, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


class _Busy(Exception):
    """It may work in `pause` seconds (None: as long as the back-off says)."""

    def __init__(self, sentence: str, pause: float | None = None) -> None:
        super().__init__(sentence)
        self.pause = pause


class ApiClient:
    """One Evalsite, seen with one token.

    Every request is repeated with growing pauses while the server cannot be reached or
    is busy; that is safe, because the same bytes are the same upload.
    """

    def __init__(
        self,
        address: str,
        token: str,
        *,
        say: Say,
        sleep: Sleep = time.sleep,
        tries: int = TRIES,
    ) -> None:
        """Raises `ValueError` for an address that is no http(s) URL."""
        parts = urlsplit(address)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(
                f"“{address}” is no address of a site; it reads http://host:port."
            )
        secure = parts.scheme == "https"
        self._make = (
            http.client.HTTPSConnection if secure else http.client.HTTPConnection
        )
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._token = token
        self._say = say
        self._sleep = sleep
        self._tries = tries

    def uploads_with(self, hashes: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The uploads with these SHA-256 (at most 100), by their hash."""
        query = urlencode([("sha256", value) for value in hashes])
        _, page = self._ask("GET", f"/api/v1/uploads?{query}")
        return {one["sha256"]: one for one in page["uploads"]}

    def send(
        self, file: Readable, *, size: int, name: str, slug: str = ""
    ) -> tuple[dict[str, Any], bool]:
        """Send one file; the upload as JSON, and whether it is new."""
        query = f"?{urlencode({'format': slug})}" if slug else ""
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(size),
            "X-File-Name": quote(name, errors="replace"),
        }

        def body() -> Readable:
            file.seek(0)
            return file

        status, upload = self._ask(
            "POST", f"/api/v1/uploads{query}", headers=headers, body=body
        )
        return upload, status == 201

    def _ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: Callable[[], Readable] | None = None,
    ) -> Answer:
        for number in range(1, self._tries + 1):
            try:
                return self._once(method, path, headers or {}, body)
            except _Busy as busy:
                if number == self._tries:
                    raise Refused(f"{busy} Given up after {number} tries.") from busy
                pause = busy.pause if busy.pause is not None else _back_off(number)
                self._say(f"{busy} Trying again in {pause:.0f} s.")
                self._sleep(pause)
        raise AssertionError  # pragma: no cover - the loop returns or raises

    def _once(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: Callable[[], Readable] | None,
    ) -> Answer:
        connection = self._make(
            self._host, self._port, timeout=TIMEOUT_SECONDS, blocksize=_BLOCK
        )
        named = {"Authorization": f"Bearer {self._token}", **headers}
        try:
            try:
                content = body() if body else None
                connection.request(method, self._prefix + path, content, named)
            except (BrokenPipeError, ConnectionResetError):
                # A refusal may have come before the whole body went out.
                pass
            return _read(connection.getresponse())
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise _Busy(f"{self._host} cannot be reached ({why}).") from error
        finally:
            connection.close()


def _read(response: http.client.HTTPResponse) -> Answer:
    content = response.read()
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    if response.status in {200, 201} and isinstance(document, dict):
        return response.status, document
    sentence = document.get("sentence") if isinstance(document, dict) else None
    said = str(sentence or f"The server answered {response.status} {response.reason}.")
    if response.status in _BUSY:
        raise _Busy(said, _asked_pause(response.getheader("Retry-After")))
    if sentence is None:
        said += " That is not what an Evalsite answers; is the address right?"
    raise Refused(said, status=response.status)


def _back_off(number: int) -> float:
    # Spread out, so that many senders do not come back at the same instant.
    spread = random.uniform(0.8, 1.2)  # noqa: S311 - no secret
    return min(2.0 ** (number - 1), LONGEST_PAUSE) * spread


def _asked_pause(value: str | None) -> float | None:
    """The seconds of a Retry-After header, which is a number or a date (RFC 9110)."""
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), LONGEST_ASKED)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = moment.timestamp() - time.time()
    return min(max(seconds, 0.0), LONGEST_ASKED)
