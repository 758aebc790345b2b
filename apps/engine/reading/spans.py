"""Spans of OpenTelemetry, whatever encoding they came in, kept by trace.

Both encodings are made into the same `Span`, so that everything after this point is
one code. Nothing here knows the names of attributes.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any, Final

import msgspec

from apps.engine.reading.clock import NANOSECOND, epoch_ns
from apps.engine.reading.json_words import visible

STATUS_OK: Final = 1
STATUS_ERROR: Final = 2
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_ZEROS: Final = re.compile(r"0*")
_LONGEST_ID: Final = 64


class Event(msgspec.Struct):
    """A span event: its name, time and attributes."""

    name: str
    time_ns: int | None
    attributes: dict[str, Any]


class Span(msgspec.Struct):
    """One span, decoded: ids in lower-case hex, times in ns, attributes plain JSON."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int | None
    end_ns: int | None
    unit: str | None
    status: int
    status_message: str
    attributes: dict[str, Any]
    events: list[Event]
    resource: dict[str, Any]
    scope: str

    @property
    def content(self) -> tuple[bool, int, int, int]:
        """How much a copy of a span holds: the fuller of two copies is kept."""
        return (
            self.end_ns is not None,
            len(self.attributes),
            len(self.events),
            self.status,
        )


class SpanStore:
    """All spans of a file by trace id, each span id once."""

    def __init__(self) -> None:
        self.traces: dict[str, dict[str, Span]] = {}
        self.duplicates: dict[str, int] = {}

    def add(self, span: Span) -> None:
        """Keep `span`; of two with the same id keep the fuller, else the first."""
        spans = self.traces.setdefault(span.trace_id, {})
        known = spans.get(span.span_id)
        if known is None:
            spans[span.span_id] = span
            return
        self.duplicates[span.trace_id] = self.duplicates.get(span.trace_id, 0) + 1
        if span.content > known.content:
            spans[span.span_id] = span


def identifier(value: Any) -> str | None:
    """Return an id as lower-case hex, from hex, 0x-hex, base64 or an integer.

    Empty and all-zero ids are no ids and give `None`; other texts stay as they are.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = f"{value:x}" if value > 0 else ""
    if not isinstance(value, str) or not value or len(value) > _LONGEST_ID:
        return None
    text = value[2:] if value[:2] in {"0x", "0X"} else value
    if not _HEX.fullmatch(text):
        text = _from_base64(text)
    return None if _ZEROS.fullmatch(text) else text.lower()


def _from_base64(text: str) -> str:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return visible(text)
    return raw.hex() if len(raw) in {8, 16} else visible(text)


def time_of(value: Any) -> tuple[int | None, str | None]:
    """Return the time of a nano field and the unit it really is in, by its size."""
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, None
    nanoseconds, unit = epoch_ns(value)
    return nanoseconds, None if unit == NANOSECOND else unit


def double_of(value: Any) -> float | None:
    """Return a double attribute; NaN, Infinity and what is no number give `None`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
