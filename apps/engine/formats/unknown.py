"""Why a file is none of the formats that are read: one sentence for its uploader."""

from __future__ import annotations

import json
from typing import Any, Final

from apps.engine.format import Source
from apps.engine.formats.otlp import OTHER_SIGNALS
from apps.engine.reading.bytestream import HEAD_BYTES
from apps.engine.reading.companions import why_no_trace
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.json_words import (
    TOO_DEEP,
    TOO_LONG_INTEGER,
    likely_cause,
    visible,
    why_not_json,
)
from apps.engine.reading.rows import header_of

_BINARY: Final = (
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"GIF8", "a GIF image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a Windows program"),
    (b"PAR1", "a Parquet file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x80\x04\x95", "a Python pickle"),
)
# So many bytes begin no text by chance.
_LONG_MAGIC: Final = 4
_NO_JSON: Final = (
    "This is no trace file: traces are read from JSON, JSON lines, CSV, protobuf and "
    "Parquet, also packed as .gz, .zst, .zip or .tar, and this file begins like none of "
    "them."
)
_FEWEST_COLUMNS: Final = 3
_ADVICE: Final = "Choose the format yourself if you know it."


def why_unknown(source: Source) -> str:
    """Return a sentence on why no format was recognised, with the likely cause."""
    if not source.is_text:
        return _kind_of(source.head, 1) or _why_binary(source.head)
    # A small PDF has no byte that no text has.
    kind = _kind_of(source.head, _LONG_MAGIC)
    if kind:
        return kind
    reason = _why_no_json(source.head)
    if reason == _NO_JSON:
        return _why_no_table(source) or reason
    return reason or _why_no_trace(first_values(source))


def _kind_of(head: bytes, shortest: int) -> str | None:
    """Return a sentence on a file of a known kind, by a magic number of some length."""
    for magic, words in _BINARY:
        if len(magic) >= shortest and head.startswith(magic):
            return f"This is {words}, not a trace file."
    return None


def _why_binary(head: bytes) -> str:
    """Return a sentence on a file that is no text and of no known kind."""
    if not head.strip(b"\0"):
        # A tar without members is two blocks of them, and what pads it.
        return (
            "This file holds nothing but NUL bytes, as an empty archive (.tar) does: "
            "there is no trace in it."
        )
    if head.lstrip()[:1] in {b"{", b"["} and b"\0" in head:
        return (
            "The file begins like JSON and holds NUL bytes, which no text has: the "
            f"first is byte {head.index(0):,}. Save it as UTF-8 text."
        )
    return "This is a binary file of no kind that is read."


def _why_no_table(source: Source) -> str | None:
    """Return a sentence about a table whose columns are those of no known format."""
    header = header_of(source)
    if header is None or len(header.columns) < _FEWEST_COLUMNS:
        return None
    columns = ", ".join(f'"{visible(name[:40])}"' for name in header.columns[:5])
    return (
        f"The file is a table with the columns {columns}, which are not those of a "
        f"known format. {_ADVICE}"
    )


def _why_no_json(head: bytes) -> str | None:
    text = head.decode("utf-8", "ignore")
    start = len(text) - len(text.lstrip())
    cause = likely_cause(text, start)
    if cause:
        return f"The file is not JSON: {cause}."
    if text[start : start + 1] not in {"{", "["}:
        return _NO_JSON
    try:
        json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        return _why_bad_json(error, is_whole=len(head) < HEAD_BYTES)
    except RecursionError:
        return TOO_DEEP
    except ValueError:
        return TOO_LONG_INTEGER
    return None


def _why_bad_json(error: json.JSONDecodeError, *, is_whole: bool) -> str | None:
    """Return a sentence unless the error may only be that the head stops there."""
    at_end = error.pos >= len(error.doc.rstrip())
    unclosed = error.msg.startswith("Unterminated")
    if not is_whole and (at_end or unclosed):
        return None
    place = f"line {error.lineno}, column {error.colno}"
    return f"{why_not_json(error, at_end=at_end or unclosed)} The place is {place}."


def _why_no_trace(values: list[Any]) -> str:
    value = values[0] if values else None
    if isinstance(value, list):
        if not value:
            return "The file is an empty list: there is no trace in it."
        value = value[0]
    if not isinstance(value, dict):
        return f"The file is JSON, but not a trace of a known format. {_ADVICE}"
    return why_no_trace(value) or _why_unknown_record(value)


def _why_unknown_record(value: dict[str, Any]) -> str:
    if not value:
        return "The file is JSON, but no trace: its first record has no keys."
    signals = sorted({OTHER_SIGNALS[key] for key in value if key in OTHER_SIGNALS})
    if signals:
        words = " and ".join(signals)
        return f"The file holds OpenTelemetry {words}, not traces."
    if "messages_display" in value:
        return (
            "The file holds conversations as plain text (messages_display), which is "
            "not a format we know: it does not say which calls were made."
        )
    keys = ", ".join(f'"{key[:40]}"' for key in list(value)[:5])
    return (
        f"The file is JSON, but not a trace of a known format; its first record has "
        f"{keys}. {_ADVICE}"
    )
