"""Spans as OpenTelemetry SDKs print them: one object with a context and attributes.

Python's `ReadableSpan.to_json` and what follows it, and Go's `stdouttrace`. Nothing
here knows what file they stand in.
"""

from __future__ import annotations

from typing import Any

from apps.engine.reading.recorded import mapping
from apps.engine.reading.span_records import SpanRecord

Raw = dict[str, Any]


def is_sdk_span(value: Any) -> bool:
    """Whether a value is a span of one of the two shapes."""
    if not isinstance(value, dict) or "name" not in value:
        return _is_go_span(value)
    context = value.get("context")
    if not isinstance(context, dict) or not {"trace_id", "span_id"} <= context.keys():
        return False
    return "span_kind" not in value and not value.keys().isdisjoint(
        {"kind", "parent_id", "parent", "resource", "status"}
    )


def _is_go_span(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("SpanContext"), dict)


def record_of(raw: Raw) -> SpanRecord:
    """Return the values of a span for which `is_sdk_span` is true."""
    return _of_go(raw) if _is_go_span(raw) else _of_python(raw)


def _of_python(raw: Raw) -> SpanRecord:
    context, parent = mapping(raw.get("context")), mapping(raw.get("parent"))
    status = raw.get("status")
    words = mapping(status)
    resource = mapping(raw.get("resource"))
    scope = mapping(raw.get("instrumentation_scope") or raw.get("scope"))
    parent_id = raw.get("parent_id")
    return SpanRecord(
        trace_id=context.get("trace_id"),
        span_id=context.get("span_id"),
        parent_id=parent.get("span_id") if parent_id is None else parent_id,
        name=raw.get("name"),
        start=raw.get("start_time"),
        end=raw.get("end_time"),
        status=words.get("status_code", words.get("code", status)),
        status_message=words.get("description") or words.get("message"),
        attributes=raw.get("attributes"),
        events=raw.get("events"),
        resource=resource.get("attributes", resource),
        scope=scope.get("name"),
    )


def _of_go(raw: Raw) -> SpanRecord:
    context, parent = mapping(raw.get("SpanContext")), mapping(raw.get("Parent"))
    status = mapping(raw.get("Status"))
    scope = mapping(
        raw.get("InstrumentationScope") or raw.get("InstrumentationLibrary")
    )
    events = raw.get("Events")
    return SpanRecord(
        trace_id=context.get("TraceID"),
        span_id=context.get("SpanID"),
        parent_id=parent.get("SpanID"),
        name=raw.get("Name"),
        start=raw.get("StartTime"),
        end=raw.get("EndTime"),
        status=status.get("Code"),
        status_message=status.get("Description"),
        attributes=_go_pairs(raw.get("Attributes")),
        events=[
            {
                "name": event.get("Name"),
                "timestamp": event.get("Time"),
                "attributes": _go_pairs(event.get("Attributes")),
            }
            for event in (events if isinstance(events, list) else ())
            if isinstance(event, dict)
        ],
        resource=_go_pairs(raw.get("Resource")),
        scope=scope.get("Name"),
    )


def _go_pairs(pairs: Any) -> Raw:
    return {
        str(pair["Key"]): mapping(pair.get("Value")).get("Value")
        for pair in (pairs if isinstance(pairs, list) else ())
        if isinstance(pair, dict) and "Key" in pair
    }
