"""Reader of traces in TRAIL's shape: spans that hold their child spans.

Annotation files beside them (categories and places of errors, scores) are labels:
on their own they hold no trace; inside a trace they go to its labels.
Shape: https://huggingface.co/datasets/PatronusAI/TRAIL
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.clock import any_time_ns, later_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
    refused_part,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.span_records import (
    SpanRecord,
    flat,
    opened,
    span_of,
    trace_id_of,
)
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import Span, SpanStore, TraceFacts

_DURATION: Final = re.compile(
    r"P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9})\d*)?S)?"
)
_SECONDS: Final = (86_400, 3_600, 60, 1)
_LABELS: Final = ("errors", "scores", "annotations", "labels")
_ONLY_LABELS: Final = (
    "The file holds annotations of a trace (errors and scores), not the trace: they "
    "are labels, and there are no steps in them."
)


class Trail:
    """The format `trail`."""

    slug = "trail"
    label = "TRAIL span trees"
    version = 1
    description = (
        "Traces whose spans hold their children (span_id, span_attributes, "
        "child_spans), as the TRAIL benchmark has them. Annotations are labels and "
        "are never shown to a check."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first record has spans with children, or only annotations."""
        record = first_record(source)
        if not isinstance(record, dict):
            return False
        spans = record.get("spans")
        if isinstance(spans, list) and spans:
            return _is_span(spans[0])
        return _is_span(record) or _is_annotation(record)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        return demand_a_trace(_items(source), nothing="The file holds no spans.")


def _is_span(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "span_id" in value
        and ("child_spans" in value or "span_attributes" in value)
    )


def _is_annotation(record: dict[str, Any]) -> bool:
    errors = record.get("errors")
    if not isinstance(errors, list) or "spans" in record or "trace_id" not in record:
        return False
    if errors and isinstance(errors[0], dict):
        return {"category", "location"} <= errors[0].keys()
    return "scores" in record


def _items(source: Source) -> Iterator[Item]:
    store = SpanStore()

    def take(record: Record) -> Iterator[Item]:
        return _take(record, store)

    yield from read_each(source, take, unroll=True)
    yield from traces_of(store)


def _take(record: Record, store: SpanStore) -> Iterator[Item]:
    value = record.value
    if not isinstance(value, dict):
        raise RefusedRecord("A trace is an object with spans.", "$")
    if _is_annotation(value):
        raise RefusedRecord(_ONLY_LABELS)
    roots = [value] if _is_span(value) else value.get("spans")
    if not isinstance(roots, list):
        raise RefusedRecord("The trace has no list of spans.", "$.spans")
    labels = {key: value[key] for key in _LABELS if value.get(key)}
    trace_id = value.get("trace_id")
    for path, raw, parent in _all_spans(roots):
        try:
            span = _span(raw, trace_id, parent)
        except RefusedRecord as refusal:
            yield refused_part(f"{record.place}, $.spans{path}", refusal, raw)
            continue
        store.add(span)
        if labels:
            store.describe(span.trace_id, TraceFacts(labels=labels))


def _all_spans(roots: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, span, id of the span that holds it) in the order of the file."""
    waiting = [(f"[{at}]", raw, None) for at, raw in enumerate(roots)][::-1]
    while waiting:
        path, raw, parent = waiting.pop()
        yield path, raw, parent
        if not isinstance(raw, dict):
            continue
        children = raw.get("child_spans")
        below = list(enumerate(children if isinstance(children, list) else ()))
        for at, child in reversed(below):
            waiting.append((f"{path}.child_spans[{at}]", child, raw.get("span_id")))


def _span(raw: Any, trace_id: Any, parent: Any) -> Span:
    if not isinstance(raw, dict):
        raise RefusedRecord("This is not a span.")
    start = any_time_ns(raw.get("timestamp") or raw.get("start_time"))
    span = span_of(
        SpanRecord(
            trace_id=trace_id if trace_id_of(trace_id) else raw.get("trace_id"),
            span_id=raw.get("span_id"),
            parent_id=raw.get("parent_span_id") or parent,
            name=raw.get("span_name"),
            start=start,
            end=raw.get("end_time"),
            status=raw.get("status_code"),
            status_message=raw.get("status_message"),
            attributes=flat(opened(raw.get("span_attributes"))),
            events=_events(raw.get("events")),
            resource=raw.get("resource_attributes"),
            scope=raw.get("scope_name"),
        )
    )
    if span.end_ns is None:
        span.end_ns = _end(start, raw.get("duration"))
    return span


def _events(events: Any) -> list[Any]:
    """Return events with the names that they have elsewhere."""
    return [
        {
            "name": event.get("name", event.get("Name")),
            "timestamp": event.get("timestamp", event.get("Timestamp")),
            "attributes": event.get("attributes", event.get("Attributes")),
        }
        for event in (events if isinstance(events, list) else ())
        if isinstance(event, dict)
    ]


def _end(start: int | None, duration: Any) -> int | None:
    """Return start plus an ISO 8601 duration (or nanoseconds), where both are known."""
    if start is None or isinstance(duration, bool):
        return None
    if isinstance(duration, int):
        return later_ns(start, duration) if duration >= 0 else None
    found = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if found is None or len(duration) > 60:
        return None
    *whole, fraction = found.groups()
    seconds = sum(
        int(part or 0) * size for part, size in zip(whole, _SECONDS, strict=True)
    )
    return later_ns(start, seconds * 10**9 + int((fraction or "0").ljust(9, "0")))
