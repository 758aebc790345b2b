"""Spans, whatever format and encoding they came in, kept by trace.

All of them are made into the same `Span`, so that everything after this point is one
code. Nothing here knows the names of attributes.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import msgspec

from apps.engine.reading.clock import NANOSECOND, epoch_ns
from apps.engine.reading.json_words import visible
from apps.engine.reading.spill import SpillFile
from apps.engine.reading.token_counts import Counts
from apps.engine.trace import Outcome, StepKind, UsageState

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


class Facts(msgspec.Struct, kw_only=True):
    """What a span says in fields of its own, for formats that have no attributes.

    A reader of such a format fills it in; for OpenTelemetry it is absent and the
    attributes are read by their names. `agent` is the agent that an agent span runs,
    or that any other span says it belongs to. `counts` of a wrapper are compared with
    its calls, never added. `usage_state` marks counts that are not the provider's.
    """

    kind: StepKind
    native_kind: str | None = None
    agent: Any = None
    tool: Any = None
    call_id: Any = None
    handoff_target: str | None = None
    model: Any = None
    provider: Any = None
    finish: Any = None
    response_id: Any = None
    conversation: Any = None
    counts: Counts | None = None
    bad_counts: int = 0
    usage_state: UsageState | None = None
    is_placeholder: bool = False
    requested_ids: tuple[str, ...] = ()
    input: Any = None
    output: Any = None
    reasoning: Any = None
    attributes: dict[str, Any] | None = None
    error_type: Any = None
    error_message: Any = None


class TraceFacts(msgspec.Struct, kw_only=True):
    """What a file says of a trace outside its spans; `None` leaves it to the spans.

    `is_id_unique` is false where the format's trace ids are not unique in the world.
    """

    name: Any = None
    session: Any = None
    task: Any = None
    trial: int | None = None
    outcome: Outcome | None = None
    metadata: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    is_id_unique: bool = True
    notes: tuple[str, ...] = ()


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
    facts: Facts | None = None

    @property
    def content(self) -> tuple[bool, int, int, int]:
        """How much a copy of a span holds: the fuller of two copies is kept."""
        return (
            self.end_ns is not None,
            len(self.attributes),
            len(self.events),
            self.status,
        )


HELD_SPANS: Final = 2_000
HELD_CHARACTERS: Final = 8 * 1024 * 1024


class SpanStore:
    """All spans of a file by trace id, each span id once; most wait in a file.

    At most `held` spans, and about eight million characters of them, are held as
    objects; what is more is packed into a temporary file and comes back trace by trace.
    What is read from the store does not depend on `held`.
    """

    def __init__(self, held: int = HELD_SPANS) -> None:
        self.duplicates: dict[str, int] = {}
        self.facts: dict[str, TraceFacts] = {}
        self._held = held
        self._spans: dict[str, list[Span]] = {}
        self._count = 0
        self._characters = 0
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._file = SpillFile(list[Span])

    def describe(self, trace_id: str, facts: TraceFacts) -> None:
        """Keep what the file says of a trace; of two descriptions the first stays."""
        self.facts.setdefault(trace_id, facts)

    def add(self, span: Span) -> None:
        """Keep `span`; of two with the same id keep the fuller, else the first."""
        self._places.setdefault(span.trace_id, [])
        self._spans.setdefault(span.trace_id, []).append(span)
        self._count += 1
        self._characters += _characters_of(span)
        if self._count > self._held or self._characters > HELD_CHARACTERS:
            self._spill()

    @property
    def traces(self) -> Mapping[str, dict[str, Span]]:
        """The spans of each trace by span id, made anew at each look.

        Trace ids and span ids come in the order of their first appearance.
        `duplicates` counts the copies of a trace from its first look on.
        """
        return _Traces(self._places, self._load)

    def _spill(self) -> None:
        for trace_id, spans in self._spans.items():
            self._places[trace_id].append(self._file.write(spans))
        self._spans = {}
        self._count = self._characters = 0

    def _load(self, trace_id: str) -> dict[str, Span]:
        kept: dict[str, Span] = {}
        copies = 0
        waiting = (self._file.read(place) for place in self._places[trace_id])
        for spans in chain(waiting, [self._spans.get(trace_id, [])]):
            for span in spans:
                known = kept.get(span.span_id)
                copies += known is not None
                if known is None or span.content > known.content:
                    kept[span.span_id] = span
        if copies:
            self.duplicates[trace_id] = copies
        return kept


class _Traces(Mapping[str, dict[str, Span]]):
    """The traces of a store, each loaded when it is asked for."""

    def __init__(
        self, ids: Mapping[str, Any], load: Callable[[str], dict[str, Span]]
    ) -> None:
        self._ids = ids
        self._load = load

    def __getitem__(self, trace_id: str) -> dict[str, Span]:
        return self._load(trace_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def _characters_of(span: Span) -> int:
    """Return about how long the texts of a span are: where its attributes hold them."""
    facts = span.facts
    texts = [*span.attributes.values(), *((facts.input, facts.output) if facts else ())]
    return sum(len(text) for text in texts if isinstance(text, str))


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
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
