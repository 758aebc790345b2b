"""The server: threads on loopback, one handler, and a mode that says what it does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.model_server import rendering
from tests.model_server.answers import Answer
from tests.model_server.faults import USAGES
from tests.model_server.modes import MODES


@dataclass
class Stats:
    """What the server has seen. `peak` is the most calls at the same time."""

    calls: int = 0
    now: int = 0
    peak: int = 0
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def begin(self, path: str, headers: dict[str, str], body: Any) -> int:
        with self.lock:
            self.calls += 1
            self.now += 1
            self.peak = max(self.peak, self.now)
            self.bodies.append(body)
            self.headers.append(headers)
            self.paths.append(path)
            return self.calls

    def end(self) -> None:
        with self.lock:
            self.now -= 1

    def as_json(self) -> dict[str, Any]:
        with self.lock:
            return {
                "calls": self.calls,
                "peak": self.peak,
                "bodies": list(self.bodies),
                "paths": list(self.paths),
                "statuses": list(self.statuses),
            }


class ModelServer:
    """A running server: `url` is its base address, `stats` what it has seen."""

    def __init__(self, mode: str, settings: dict[str, Any]) -> None:
        self.mode = mode
        self.settings = settings
        self.stats = Stats()
        self.closing = threading.Event()
        self.port = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base address that is given to clients."""
        return f"{self.origin}/v1"

    @property
    def host(self) -> str:
        """Host and port, as an operator's allow-list wants them."""
        return f"127.0.0.1:{self.port}"

    def get(self, name: str, default: Any = None) -> Any:
        return self.settings.get(name, default)


class Handler(BaseHTTPRequestHandler):
    """One connection. What is done with a call is looked up by the mode."""

    protocol_version = "HTTP/1.1"
    told: ModelServer

    def do_GET(self) -> None:
        if self.path == "/__stats":
            self.answer_json(self.told.stats.as_json())
        elif self.path.endswith("/models"):
            self.answer_json({"data": [{"id": rendering.MODEL, "object": "model"}]})
        else:
            # Somebody followed a redirect, or went where no one was sent.
            self.told.stats.begin(self.path, dict(self.headers), None)
            self.told.stats.end()
            self.answer_json({"error": {"message": "not here"}}, status=404)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = raw.decode("utf-8", "replace")
        self.number = self.told.stats.begin(self.path, dict(self.headers), body)
        try:
            if delay := self.told.get("delay", 0):
                self.told.closing.wait(delay)
            MODES[self.told.mode](self, body if isinstance(body, dict) else {})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        finally:
            self.told.stats.end()

    def answer_json(
        self, value: Any, *, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self.answer_bytes(json.dumps(value).encode(), status=status, headers=headers)

    def answer_bytes(
        self, body: bytes, *, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self.told.stats.statuses.append(status)
        self.send_response(status)
        given = {"Content-Type": "application/json"} | (headers or {})
        for name, value in given.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, answer: Answer, body: dict[str, Any]) -> None:
        """Send an answer in the form that the request asks for."""
        is_chat = not self.path.endswith("/responses")
        model = self.told.get("model") or body.get("model") or rendering.MODEL
        usage: Any = rendering.usage_of(body, answer, is_chat=is_chat)
        if (variant := self.told.get("usage")) is not None:
            usage = USAGES[variant]
        make = rendering.chat_completion if is_chat else rendering.response
        whole = make(answer, number=self.number, model=model, usage=usage)
        if not body.get("stream"):
            self.answer_json(whole)
            return
        wants = (body.get("stream_options") or {}).get("include_usage", False)
        events = (
            rendering.chat_events(whole, has_usage=wants)
            if is_chat
            else rendering.response_events(whole)
        )
        self.stream(events)

    def stream(self, pieces: Iterator[bytes]) -> None:
        """Send the events of a stream; `cut` ends it in the middle, `open` never."""
        self.told.stats.statuses.append(200)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        events = list(pieces)
        if self.told.get("cut"):
            events = events[: len(events) // 2]
        for piece in events:
            self.wfile.write(piece)
            self.wfile.flush()
        if self.told.get("open"):
            self.told.closing.wait(60)
        self.close_connection = True

    def raw(self, pieces: Iterator[bytes], *, pause: float = 0) -> None:
        """Send bytes as they are and close; `pause` seconds after each piece."""
        self.told.stats.statuses.append(0)
        for piece in pieces:
            self.wfile.write(piece)
            self.wfile.flush()
            if self.told.closing.wait(pause) if pause else self.told.closing.is_set():
                break
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news."""


@contextmanager
def model_server(mode: str = "deterministic", **settings: Any) -> Iterator[ModelServer]:
    """Serve on loopback in one of `MODES`; their docstrings say what is set.

    For all: `delay=` seconds before each answer, `usage=` of USAGES, `model=`; for
    streams `cut=True` (ends in the middle) and `open=True` (never closes).
    """
    told = ModelServer(mode, settings)
    handler = type("Told", (Handler,), {"told": told})
    server = _Server(("127.0.0.1", 0), handler)
    told.port = server.server_address[1]
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield told
    finally:
        told.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
        _let_go(told)


def _let_go(told: ModelServer) -> None:
    """Wait shortly for handlers that still write, so that none outlives its test."""
    until = time.monotonic() + 1
    while told.stats.now and time.monotonic() < until:
        time.sleep(0.005)
