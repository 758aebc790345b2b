"""What a broken or hostile endpoint sends: raw answers, wrong shapes, odd usage."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

_OK = b"HTTP/1.1 200 OK\r\n"
_JSON = b"Content-Type: application/json\r\n"
_CLOSE = b"Connection: close\r\n"
_MIB = 1024 * 1024


def whole(body: bytes, *, more: bytes = b"", kind: bytes = _JSON) -> bytes:
    """A complete answer with this body."""
    size = f"Content-Length: {len(body)}\r\n".encode()
    return _OK + kind + _CLOSE + size + more + b"\r\n" + body


def said(text: str = "fine") -> bytes:
    """The body of an ordinary chat completion."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "chatcmpl-1", "choices": [choice]}).encode()


def _with_content(raw: bytes) -> bytes:
    return said("@@").replace(b'"@@"', raw)


def _zeros(mebibytes: int) -> Iterator[bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    for _ in range(mebibytes):
        if made := packer.compress(bytes(_MIB)):
            yield made
    yield packer.flush()


def _bomb() -> Iterator[bytes]:
    """Some 256 KiB that unpack to 256 MiB."""
    yield _OK + _JSON + _CLOSE + b"Content-Encoding: gzip\r\n\r\n"
    yield from _zeros(256)


def _endless() -> Iterator[bytes]:
    yield _OK + _JSON + _CLOSE + b"\r\n" + b'{"choices": ["'
    while True:
        yield b"a" * 65_536


def _many_headers() -> Iterator[bytes]:
    yield _OK + _JSON
    for number in range(2_000):
        yield f"X-Filler-{number}: {'h' * 100}\r\n".encode()
    yield b"\r\n{}"


def _endless_headers() -> Iterator[bytes]:
    yield _OK + b"X-Long: "
    while True:
        yield b"h" * 65_536


def _one(raw: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: iter([raw])


MALFORMED: dict[str, Callable[[], Iterator[bytes]]] = {
    "half": _one(whole(said()).replace(b"Content-Length: ", b"Content-Length: 9")),
    "half_chunk": _one(_OK + _JSON + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{"),
    "longer": _one(whole(said()) + b"and more that nobody announced"),
    "garbage": _one(b"\x00\x01\x02 this is no HTTP\r\n\r\n"),
    "http09": _one(b"<html>hello</html>"),
    "closed": _one(b""),
    "empty": _one(whole(b"")),
    "no_content": _one(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "bad_gzip": _one(whole(b"\x1f\x8b no gzip", more=b"Content-Encoding: gzip\r\n")),
    "cut_gzip": _one(
        whole(gzip.compress(said("x" * 999))[:-9], more=b"Content-Encoding: gzip\r\n")
    ),
    "other_packing": _one(whole(said(), more=b"Content-Encoding: br\r\n")),
    "bad_json": _one(whole(b'{"choices": [{"message": {"content": "hal')),
    "trailing": _one(whole(said() + b" true")),
    "html": _one(
        whole(b"<html><h1>Log in</h1></html>", kind=b"Content-Type: text/html\r\n")
    ),
    "latin1": _one(whole(_with_content(b'"caf\xe9"'))),
    "endless": _endless,
    "gzip_bomb": _bomb,
    "headers": _many_headers,
    "endless_headers": _endless_headers,
    "deep": _one(whole(b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")),
    "deep_objects": _one(whole(b'{"a":' * 3_000 + b"1" + b"}" * 3_000)),
    "big_integer": _one(whole(_with_content(b"9" * 5_000))),
    "many_values": _one(whole(b"[" + b"[]," * 3_000_000 + b"[]]")),
    "nul": _one(whole(_with_content(b'"a\\u0000b"'))),
    "surrogate": _one(whole(_with_content(b'"a\\ud800b"'))),
    "nan": _one(whole(b'{"score": NaN, ' + said()[1:])),
    "twice": _one(whole(b'{"choices": [], ' + said()[1:])),
}
"""Raw answers to any request, as pieces of bytes; the connection closes after them."""

TEXT_COMES = frozenset({"longer", "nul", "surrogate", "nan", "twice"})
"""Those of `MALFORMED` of which a careful reader still reads a text."""


def _choice(message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


SHAPES: dict[str, Any] = {
    "no_choices": {"id": "chatcmpl-1", "object": "chat.completion"},
    "empty_choices": {"choices": []},
    "choices_object": {"choices": {"0": {"message": {"content": "hidden"}}}},
    "null_choice": {"choices": [None]},
    "null_message": _choice(None),
    "null_content": _choice({"role": "assistant", "content": None}),
    "number_content": _choice({"role": "assistant", "content": 42}),
    "empty_parts": _choice({"role": "assistant", "content": []}),
    "list_on_top": [{"message": {"content": "hidden"}}],
    "text_on_top": "just a text",
    "null_on_top": None,
    "calls_no_list": _choice({"role": "assistant", "tool_calls": "lookup()"}),
}
"""Well-formed JSON without an answer in it."""

USAGES: dict[str, Any] = {
    "missing": None,
    "empty": {},
    "text": "12 tokens",
    "list": [1, 2, 3],
    "zero": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    "nulls": {"prompt_tokens": None, "completion_tokens": None},
    "negative": {"prompt_tokens": -1, "completion_tokens": -1},
    "digits": {"prompt_tokens": "11", "completion_tokens": "7"},
    "output_only": {"completion_tokens": 7},
    "huge": {"prompt_tokens": 10**30, "completion_tokens": 7.5},
}
"""Ways to write the usage; `None` leaves it out."""
