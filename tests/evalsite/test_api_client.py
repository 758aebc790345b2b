"""The client of the command: what it repeats, how long it waits, what it gives up."""

from __future__ import annotations

import io
import json
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evalsite.api_client import LONGEST_ASKED, ApiClient, Refused

UPLOAD = {"id": 1, "sha256": "0" * 64, "page": "/p/1"}


class Scripted(ThreadingHTTPServer):
    """Gives the planned answers one after another, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.planned: list[tuple[int, dict, dict[str, str]] | None] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.headers.append(dict(self.headers))
        planned = self.server.planned.pop(0)
        if planned is None:
            self.connection.close()
            return
        status, document, headers = planned
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_words) -> None:
        """Say nothing."""


@pytest.fixture
def server():
    with Scripted() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def client(server, pauses):
    host, port = server.server_address
    return ApiClient(
        f"http://{host}:{port}/",
        "evs_x",
        say=lambda _line: None,
        sleep=pauses.append,
        tries=4,
    )


def send(client):
    return client.send(io.BytesIO(b"traces"), size=6, name="実 a.json")


def busy(status: int = 503, **headers: str):
    return status, {"sentence": "Busy just now."}, headers


def test_it_sends_token_name_and_bytes(client, server):
    server.planned = [(201, UPLOAD, {})]
    assert send(client) == (UPLOAD, True)
    [headers] = server.headers
    assert headers["Authorization"] == "Bearer evs_x"
    assert headers["X-File-Name"] == "%E5%AE%9F%20a.json"
    assert server.bodies == [b"traces"]


def test_it_comes_back_when_it_was_asked_to_with_the_whole_body(client, server, pauses):
    later = {"Retry-After": "7"}
    server.planned = [busy(**later), busy(429, **later), (200, UPLOAD, {})]
    assert send(client) == (UPLOAD, False)
    assert pauses == [7, 7]
    assert server.bodies == [b"traces"] * 3


def test_it_understands_a_date_and_no_pause_without_end(client, server, pauses):
    in_a_minute = {"Retry-After": formatdate(time.time() + 60, usegmt=True)}
    server.planned = [
        busy(**in_a_minute),
        busy(**{"Retry-After": "9" * 30}),
        busy(**{"Retry-After": "soon"}),
        (201, UPLOAD, {}),
    ]
    send(client)
    assert pauses[0] == pytest.approx(60, abs=2)
    assert pauses[1] == LONGEST_ASKED
    assert 0 < pauses[2] < 10


def test_its_own_pauses_grow_when_nothing_answers(client, server, pauses):
    server.planned = [None, None, None, (201, UPLOAD, {})]
    assert send(client) == (UPLOAD, True)
    assert pauses == [
        pytest.approx(1, rel=0.2),
        pytest.approx(2, rel=0.2),
        pytest.approx(4, rel=0.2),
    ]


def test_it_gives_up_after_some_tries_with_the_servers_sentence(client, server):
    server.planned = [busy()] * 4
    with pytest.raises(Refused, match=r"Busy just now\. Given up after 4 tries\."):
        send(client)


@pytest.mark.parametrize("status", [400, 401, 403, 413])
def test_it_does_not_repeat_what_was_refused(client, server, pauses, status):
    server.planned = [(status, {"sentence": "No, thank you."}, {})]
    with pytest.raises(Refused, match="No, thank you") as refusal:
        send(client)
    assert refusal.value.status == status
    assert pauses == []


def test_an_answer_that_is_none_of_ours_is_told_apart(client, server):
    server.planned = [(404, {}, {})]
    with pytest.raises(Refused, match="is the address right"):
        send(client)


@pytest.mark.parametrize("address", ["localhost:8000", "ftp://x", "http://", ""])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ValueError, match="no address of a site"):
        ApiClient(address, "evs_x", say=print)
