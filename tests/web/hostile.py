"""Hostile texts and files, and what no page may contain after having shown them."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.factories import CHAT, chat_bytes

HTML = '"><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}{% now "Y" %}'
TEXTS = {
    "html": HTML,
    "quotes": "'\"`><svg/onload=alert(3)>",
    "controls": "a\x00b\x1b[31mred\x07\r\nSet-Cookie: x=1",
    "surrogates": "half \ud83d of an emoji \udc00",
    "bidi": "\u202eevil\u202c \u2066x\u2069 \u200b\u200f",
    "combining": "z" + "\u0301" * 2_000,
    "long word": "w" * 100_000,
    "templates": "{{ x }} {% y %} ${z} {0.__class__} %s %(a)s",
    "links": "[x](javascript:alert(4)) <a href='javascript:alert(5)'>",
    "keys": "__proto__ constructor a__gt pk",
    "markdown": "# h\n---\n```\n| a |\n![i](http://127.0.0.1:9/x)",
    "typst": '#eval("1") $x$ @ref <label> \\u{1F600} *b* _i_ #image("/etc/passwd")',
    "csv": "=cmd|' /C calc'!A0",
}


def everywhere(text: str) -> bytes:
    """One falling trace with `text` in every field that holds a text, as JSON bytes."""
    step = {
        "kind": "model_call",
        "invocation": "a",
        "model": text,
        "provider": text,
        "output": text,
        "input": [{"role": text, "content": text}],
        "reasoning": text,
        "attributes": {text: text, "__proto__": {"x": 1}},
        "id": text,
        "native_kind": text,
        "finish": text,
        "name": text,
        "conversation": text,
    }
    tool = {
        "kind": "tool_call",
        "invocation": "a",
        "tool": text,
        "call_id": text,
        "input": {text: text},
        "output": text,
        "error": {"type": text, "message": text},
    }
    steps = [
        {
            **step,
            "usage": {"output": output, "source": text},
            "response_id": f"{output} {text}",
        }
        for output in (100, 90, 80, 70, 60)
    ]
    record = {
        "evalsite": 1,
        "trace": {
            "name": text,
            "session": text,
            "task": text,
            "outcome": {"kind": "score", "score": 1, "label": text, "source": text},
            "metadata": {text: text},
            "labels": {text: [text]},
            "notes": [text],
        },
        "agents": [{"id": "a", "name": text, "native_id": text}],
        "steps": [*steps, tool, {"kind": "user_message", "output": text}],
    }
    return json.dumps(record).encode() + b"\n"


GOOD = chat_bytes(CHAT)
LINE = {"messages": CHAT}


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


# What the issue lists, each with whether a trace is in it all the same.
FILES: dict[str, tuple[bytes, bool]] = {
    "not json": (b"hello, these are words", False),
    "truncated json": (as_json([LINE, LINE])[:-40], True),
    "truncated only record": (as_json({"messages": CHAT})[:-40], False),
    "truncated last line": (GOOD * 3 + GOOD[:50], True),
    "blanks": (b" \n\t\n", False),
    "one brace": (b"{", False),
    "utf-16 without a mark": (GOOD.decode().encode("utf-16-le"), False),
    "utf-16 with a mark": (GOOD.decode().encode("utf-16"), True),
    "latin-1": (GOOD.replace(b"brief", b"br\xe9f"), True),
    "utf-8 mark": (b"\xef\xbb\xbf" + GOOD, True),
    "nul escape": (GOOD.replace(b"brief", b"br\\u0000f"), True),
    "nul byte": (GOOD.replace(b"brief", b"br\x00f"), False),
    "lone surrogate": (GOOD.replace(b"brief", b"\\ud83d"), True),
    "nan": (as_json({**LINE, "score": float("nan")}), True),
    "infinity": (as_json({**LINE, "score": float("inf")}), True),
    "1e999": (b'{"score": 1e999, ' + as_json(LINE)[1:], True),
    "duplicate keys": (b'{"messages": [], ' + as_json(LINE)[1:], True),
    "3,000-deep": (b"[" * 3_000 + b"]" * 3_000, False),
    "3,000-deep objects": (b'{"a":' * 3_000 + b"1" + b"}" * 3_000, False),
    "deep record among good ones": (
        GOOD + b'{"messages": ' + b"[" * 3_000 + b"]" * 3_000 + b"}\n" + GOOD,
        True,
    ),
    "5,000 digits": (b'{"messages": ' + b"9" * 5_000 + b"}", False),
    "bad line 3 of 6": (GOOD * 2 + b"{bad}\n" + GOOD * 3, True),
    "html page": (b"<!DOCTYPE html><html><script>alert(1)</script>", False),
    "pdf": (b"%PDF-1.7\n\x00\xff", False),
    "elf": (b"\x7fELF\x02\x01\x01\x00", False),
    "zip": (b"PK\x03\x04\x14\x00\x00\x00", False),
    "half a gzip": (gzip.compress(GOOD * 5_000)[:100], False),
    "gzip in gzip": (gzip.compress(gzip.compress(GOOD)), False),
    "unknown json": (b'{"hello": {"world": [1, 2]}}', False),
    "csv": (b"role,content\nuser,hello\n", False),
    "numbers": (b"[1, 2, 3]", False),
    "empty list": (b"[]", False),
    "nothing but null": (b"null", False),
}
