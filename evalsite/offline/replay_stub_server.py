"""Serves the stubs of runs on this machine, for agents that are reached over HTTP.

It speaks as the application does. Each run has a token of its own, which ends with it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from apps.engine.replay.case import Case, ToolOffer
from apps.engine.replay.mcp_door import answered_mcp, mcp_failure
from apps.engine.replay.run import AnswerSource, ToolAnswer, ToolCalled
from apps.engine.replay.stub_door import LARGEST_REQUEST, Reply, answered_tool
from apps.engine.replay.stubs import StubSession

_NOT_HERE: Final = (
    "There are no such stubs: the run has ended, or the address is not as it was given."
)
_TOO_MANY: Final = "This run may make no more tool calls."


class OpenStubs:
    """The stubs of one run, and what they have seen; safe from several threads."""

    def __init__(self, case: Case, session: StubSession, *, most: int) -> None:
        self._case = case
        self._session = session
        self._most = most
        self._lock = threading.Lock()
        self._seen: list[ToolCalled] = []

    def offered(self) -> Sequence[ToolOffer]:
        """The tools of the case."""
        return self._case.tools

    def answer(self, tool: str, arguments: Any) -> ToolAnswer:
        """What the stub answers; after so many calls no more are kept."""
        with self._lock:
            start = time.time_ns()
            if len(self._seen) >= self._most:
                return ToolAnswer(source=AnswerSource.MISS, error=_TOO_MANY, stops=True)
            answer = self._session.answer(tool, arguments)
            called = ToolCalled(
                tool=tool,
                arguments=arguments,
                answer=answer,
                start_ns=start,
                end_ns=time.time_ns(),
            )
            self._seen.append(called)
            return answer

    def seen(self) -> Sequence[ToolCalled]:
        """The calls so far, in order."""
        with self._lock:
            return tuple(self._seen)


class StubServer:
    """Where stubs are opened and closed; `base` is the address that agents are given."""

    def __init__(self) -> None:
        self._open: dict[str, OpenStubs] = {}
        self.base = ""

    @contextmanager
    def open(self, stubs: OpenStubs) -> Iterator[str]:
        """The address of the stubs of one run, as long as the block lasts."""
        token = secrets.token_urlsafe(32)
        self._open[token] = stubs
        try:
            yield f"{self.base}/api/stubs/{token}"
        finally:
            del self._open[token]

    def reply(self, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        """What a POST is answered."""
        _, _, rest = path.partition("?")[0].partition("/api/stubs/")
        token, _, where = rest.partition("/")
        stubs = self._open.get(token)
        is_mcp = where.rstrip("/") == "mcp"
        if stubs is None or not (is_mcp or where.startswith("tools/")):
            failed = mcp_failure(_NOT_HERE) if is_mcp else {"error": _NOT_HERE}
            return Reply(404, failed)
        if is_mcp:
            return answered_mcp(stubs, body, headers)
        name = unquote(where.removeprefix("tools/"), errors="replace")
        return answered_tool(stubs, name, body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stubs: StubServer

    def do_POST(self) -> None:
        size = self.headers.get("Content-Length", "")
        if not (size.isascii() and size.isdigit() and len(size) < 10):
            self.close_connection = True
            self._say(Reply(411, {"error": "Send the length of the body."}))
        elif int(size) > LARGEST_REQUEST:
            self.close_connection = True
            self._say(Reply(413, {"error": "The request is too large."}))
        elif "Origin" in self.headers:
            self.close_connection = True
            self._say(Reply(403, {"error": "Stubs are for agents."}))
        else:
            body = self.rfile.read(int(size))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._say(self.stubs.reply(self.path, body, headers))

    def _refuse(self) -> None:
        self.close_connection = True
        self._say(Reply(405, {"error": "Send it with POST."}))

    do_GET = do_PUT = do_DELETE = do_PATCH = _refuse  # noqa: N815

    def _say(self, reply: Reply) -> None:
        body = msgspec.json.encode(reply.body) if reply.has_body else b""
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if reply.status == 405:
            self.send_header("Allow", "POST")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_arguments: Any) -> None:  # noqa: A002
        """Addresses hold tokens: nothing of them is printed."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """An agent that went away is no news."""


@contextmanager
def stub_server(host: str = "127.0.0.1", port: int = 0) -> Iterator[StubServer]:
    """Serve until the block ends; raises `OSError` where the address cannot be had."""
    told = StubServer()
    handler = type("Stubs", (_Handler,), {"stubs": told})
    server = _Server((host, port), handler)
    told.base = f"http://{host}:{server.server_address[1]}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
