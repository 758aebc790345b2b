"""The way of an agent to its model endpoint: one HTTP connection, answered by us.

The agent connects to an address that is not there; the kernel lets us put one end of a
connection of our own in its place. What it asks is given to a function: no request
leaves here by itself.
"""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

from apps.isolation.sandbox.order import Relay, RelayRequest, RelayResponse

_MOST_OF_HEADERS = 100
_MOST_DIGITS = 12


def begin(ours: socket.socket, relay: Relay, most: int) -> threading.Thread:
    """Answer one connection in a thread, which is given back, until it is closed.

    A body of more than `most` bytes is refused. What `relay` raises becomes an answer
    500 that says nothing of it; whoever wants to end the run does so elsewhere.
    """
    thread = threading.Thread(
        target=_serve, args=(ours, relay, most), daemon=True, name="relay of a run"
    )
    thread.start()
    return thread


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Two sockets that are connected to each other by TCP on this machine.

    Clients ask much of a socket that only TCP answers. Nobody else can come in between:
    what connects is checked, and nothing listens afterwards.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        while True:
            ours, address = server.accept()
            if address == theirs.getsockname():
                return ours, theirs
            ours.close()


def _serve(ours: socket.socket, relay: Relay, most: int) -> None:
    class Handler(_Handler):
        answers = staticmethod(relay)
        longest = most

    try:
        Handler(ours, ("run", 0), None)  # type: ignore[arg-type]  # has no server
    except OSError:
        return
    finally:
        ours.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers: Relay
    longest: int

    def _turn(self) -> None:
        size = self.headers.get("Content-Length", "0")
        is_size = size.isdecimal() and len(size) <= _MOST_DIGITS
        if not is_size or int(size) > self.longest:
            self.close_connection = True
            self._say(RelayResponse(status=413))
            return
        request = RelayRequest(
            method=self.command,
            path=self.path,
            headers=dict(list(self.headers.items())[:_MOST_OF_HEADERS]),
            body=self.rfile.read(int(size)),
        )
        try:
            response = self.answers(request)
        except Exception:  # noqa: BLE001 - the agent sees that, the caller has it
            response = RelayResponse(status=500)
        self._say(response)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _turn  # noqa: N815

    def _say(self, response: RelayResponse) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            if name.lower() not in {"content-length", "transfer-encoding"}:
                self.send_header(name, value)
        if isinstance(response.body, bytes):
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in response.body:
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *_arguments: Any) -> None:  # noqa: A002
        """Nothing of it is printed."""
