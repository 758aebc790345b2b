"""Reader of OTLP traces in JSON: one document, or one request a line.

Field names may be in camel case or in snake case, ids in hex or base64, integers in
numbers or in texts. What the attributes mean is decided in one place for both
encodings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Rejected, Source
from apps.engine.reading.json_gate import (
    Level,
    Parts,
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.otlp_values import attributes_of
from apps.engine.reading.recorded import either, listed, word
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import (
    Event,
    Span,
    SpanStore,
    identifier,
    time_of,
)

OTHER_SIGNALS: Final = {
    "resourceMetrics": "metrics", "resource_metrics": "metrics",
    "resourceLogs": "logs", "resource_logs": "logs",
}  # fmt: skip
_STATUS_CODES: Final = {
    "STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2,
    "UNSET": 0, "OK": 1, "ERROR": 2,
}  # fmt: skip

# The last two are the names before version 0.16 of the protocol.
_SCOPES: Final = (
    "scopeSpans", "scope_spans",
    "instrumentationLibrarySpans", "instrumentation_library_spans",
)  # fmt: skip
_PARTS: Final = Parts(
    (
        Level(frozenset({"resourceSpans", "resource_spans", "batches"})),
        Level(frozenset(_SCOPES), after="resource"),
        Level(frozenset({"spans"}), after="scope"),
    )
)


class OtlpJson:
    """The format `otlp-json`."""

    slug = "otlp-json"
    label = "OpenTelemetry traces (OTLP JSON)"
    version = 2
    description = (
        "An OTLP trace export in JSON (resourceSpans), as one document or as the "
        "collector's file exporter writes it, one request a line, with GenAI, "
        "OpenInference, Traceloop or Vercel AI SDK attributes."
    )

    def recognises(self, source: Source) -> bool:
        """Whether one of the first values is an export request with resource spans."""
        values = first_values(source)
        if values and isinstance(values[0], list):
            values = values[0][:1]
        return any(_resource_spans(value) is not None for value in values)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        return demand_a_trace(_items(source), nothing="The file holds no spans.")


def _items(source: Source) -> Iterator[Item]:
    taker = _Taker()
    yield from read_each(source, taker, unroll=True, parts=_PARTS)
    yield from traces_of(taker.store)


def _list(record: Any, camel: str, snake: str) -> list[Any]:
    return listed(either(record, camel, snake))


def _resource_spans(value: Any) -> list[Any] | None:
    found = either(value, "resourceSpans", "resource_spans")
    if found is None and isinstance(value, dict):
        wrapped = value.get("trace")
        found = either(wrapped, "resourceSpans", "resource_spans") or _batches(value)
    return found if isinstance(found, list) else None


def _batches(value: dict[str, Any]) -> Any:
    """Return the resource spans of a trace as Tempo's API answers it."""
    found = value.get("batches")
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        return None
    return found if not found[0].keys().isdisjoint({*_SCOPES, "resource"}) else None


def _scopes(group: Any) -> list[Any]:
    return _list(group, *_SCOPES[:2]) or _list(group, *_SCOPES[2:])


class _Taker:
    """Takes the spans out of each request into one store."""

    def __init__(self) -> None:
        self.store = SpanStore()

    def __call__(self, record: Record) -> Iterator[Item]:
        groups = _resource_spans(record.value)
        if groups is None:
            raise _refusal(record.value)
        for number, group in enumerate(groups, start=record.start(0)):
            resource = attributes_of(either(group, "resource", "resource"))
            scopes = _scopes(group)
            for index, scope in enumerate(scopes, start=record.start(1)):
                path = f"$.resourceSpans[{number}].scopeSpans[{index}]"
                yield from self._take(scope, resource, record, path)

    def _take(
        self, scope: Any, resource: dict[str, Any], record: Record, path: str
    ) -> Iterator[Item]:
        owner = either(scope, "scope", "instrumentationLibrary")
        scope_name = word(owner.get("name")) if isinstance(owner, dict) else ""
        spans = _list(scope, "spans", "spans")
        for index, raw in enumerate(spans, start=record.start(2)):
            span = _span(raw, resource, scope_name)
            if span is None:
                yield Rejected(
                    place=f"{record.place}, {path}.spans[{index}]",
                    reason="The span has no trace id or no span id.",
                    excerpt=word(raw.get("name"))[:120]
                    if isinstance(raw, dict)
                    else "",
                )
            else:
                self.store.add(span)


def _refusal(value: Any) -> RefusedRecord:
    signals = {OTHER_SIGNALS[key] for key in OTHER_SIGNALS if either(value, key, key)}
    if not signals:
        return RefusedRecord(
            "This is not an OTLP request: it has no resourceSpans.", "$"
        )
    words = " and ".join(sorted(signals))
    return RefusedRecord(f"This holds OpenTelemetry {words}, not traces.", "$")


def _span(raw: Any, resource: dict[str, Any], scope: str) -> Span | None:
    trace_id = identifier(either(raw, "traceId", "trace_id"))
    span_id = identifier(either(raw, "spanId", "span_id"))
    if trace_id is None or span_id is None:
        return None
    start, unit = time_of(either(raw, "startTimeUnixNano", "start_time_unix_nano"))
    status = raw.get("status")
    status = status if isinstance(status, dict) else {}
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=identifier(either(raw, "parentSpanId", "parent_span_id")),
        name=word(raw.get("name")),
        start_ns=start,
        end_ns=time_of(either(raw, "endTimeUnixNano", "end_time_unix_nano"))[0],
        unit=unit,
        status=_status_code(status.get("code")),
        status_message=word(status.get("message")),
        attributes=attributes_of(raw),
        events=[
            Event(
                name=word(event.get("name")),
                time_ns=time_of(either(event, "timeUnixNano", "time_unix_nano"))[0],
                attributes=attributes_of(event),
            )
            for event in _list(raw, "events", "events")
            if isinstance(event, dict)
        ],
        resource=resource,
        scope=scope,
    )


def _status_code(code: Any) -> int:
    if isinstance(code, str):
        return _STATUS_CODES.get(code, 0)
    return code if isinstance(code, int) and code in {1, 2} else 0
