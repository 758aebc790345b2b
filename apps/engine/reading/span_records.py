"""Spans that stand in a file one object each, with attributes, made into `Span`s.

Exporters agree on what a span has and on none of the names, so a reader picks the
values and this module makes sense of them: ids of all spellings, times of all kinds,
status words, attributes that are flat, nested, or lists of pairs.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.otlp_values import pairs_of
from apps.engine.reading.recorded import first_of, word
from apps.engine.reading.rows import cell
from apps.engine.reading.spans import (
    STATUS_ERROR,
    STATUS_OK,
    Event,
    Span,
    identifier,
)

_TRACE_DIGITS: Final = 32
_SPAN_DIGITS: Final = 16
_STATUS: Final = {"ok": STATUS_OK, "error": STATUS_ERROR}
_KEPT_WHOLE: Final = frozenset({"input.value", "output.value", "metadata"})
_NUMBERED: Final = ("llm.input_messages", "llm.output_messages", "llm.tools")
_DEEPEST: Final = 16


class SpanRecord(msgspec.Struct, kw_only=True):
    """The values of one span as the file has them; `None` is absent."""

    trace_id: Any
    span_id: Any
    parent_id: Any = None
    name: Any = None
    start: Any = None
    end: Any = None
    status: Any = None
    status_message: Any = None
    attributes: Any = None
    events: Any = None
    resource: Any = None
    scope: Any = None


def span_of(record: SpanRecord) -> Span:
    """Return the span; raise `RefusedRecord` where it has no trace id or span id."""
    trace_id = id_of(record.trace_id, _TRACE_DIGITS)
    span_id = id_of(record.span_id, _SPAN_DIGITS)
    if trace_id is None or span_id is None:
        raise RefusedRecord("The span has no trace id or no span id.", "$")
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=id_of(record.parent_id, _SPAN_DIGITS),
        name=word(record.name),
        start_ns=any_time_ns(record.start),
        end_ns=any_time_ns(record.end),
        unit=None,
        status=status_of(record.status),
        status_message=word(record.status_message),
        attributes=opened(record.attributes),
        events=events_of(record.events),
        resource=opened(record.resource),
        scope=word(record.scope),
    )


def id_of(value: Any, digits: int) -> str | None:
    """Return an id in lower-case hex; an integer is filled up to `digits` places."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return f"{value:0{digits}x}"
    return identifier(value)


def trace_id_of(value: Any) -> str | None:
    """Return a trace id in lower-case hex, or `None` where it is none."""
    return id_of(value, _TRACE_DIGITS)


def status_of(value: Any) -> int:
    """Return the status code of a word such as OK, STATUS_CODE_ERROR or StatusCode.OK."""
    if isinstance(value, int) and value in {STATUS_OK, STATUS_ERROR}:
        return int(value)
    if not isinstance(value, str):
        return 0
    word = value.casefold().removeprefix("status_code_").rsplit(".", 1)[-1]
    return _STATUS.get(word, 0)


def opened(value: Any) -> dict[str, Any]:
    """Return an object that is written as object, list of pairs, JSON or literal."""
    value = cell(value)
    if isinstance(value, list):
        return pairs_of(value)
    return value if isinstance(value, dict) else {}


def events_of(value: Any) -> list[Event]:
    """Return the events of a span; their times have three names."""
    found = cell(value)
    if not isinstance(found, list):
        return []
    return [
        Event(
            name=word(event.get("name")),
            time_ns=any_time_ns(
                first_of(event, ("timestamp", "time_unix_nano", "time"))
            ),
            attributes=_event_attributes(event),
        )
        for event in found
        if isinstance(event, dict)
    ]


def _event_attributes(event: dict[str, Any]) -> dict[str, Any]:
    attributes = opened(event.get("attributes"))
    message = event.get("message")
    if not attributes and isinstance(message, str) and message:
        return {"exception.message": message}
    return attributes


def flat(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with dotted names in place of objects inside objects.

    Messages and tools in lists get numbers in their names, as OpenInference writes
    them in OTLP. Contents (`input.value`, `metadata` and the like) stay whole.
    """
    if not any(
        isinstance(item, dict | list) or key in _NUMBERED
        for key, item in attributes.items()
    ):
        return attributes
    made: dict[str, Any] = {}
    for key, item in attributes.items():
        _flatten(made, key, item, 0)
    return made


def _flatten(made: dict[str, Any], name: str, value: Any, depth: int) -> None:
    if name in _NUMBERED:
        value = cell(value)
    if depth < _DEEPEST and name not in _KEPT_WHOLE:
        if isinstance(value, dict) and value:
            for key, item in value.items():
                _flatten(made, f"{name}.{key}", item, depth + 1)
            return
        if isinstance(value, list) and value and name.startswith(_NUMBERED):
            for number, item in enumerate(value):
                _flatten(made, f"{name}.{number}", item, depth + 1)
            return
    if value is not None:
        made[name] = value
