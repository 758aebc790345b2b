"""Reader of OTLP traces in protobuf: ExportTraceServiceRequest or TracesData.

The file is walked one ResourceSpans at a time. A file that is cut off keeps what came
before; what the attributes mean is decided in one place for both encodings.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

from apps.engine.format import Item, Progress, Rejected, Source
from apps.engine.reading.json_gate import demand_a_trace
from apps.engine.reading.json_words import visible
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import Event, Span, SpanStore, double_of, time_of
from apps.engine.reading.wire import (
    BadWire,
    looks_like_otlp_traces,
    top_level_messages,
)


class OtlpProtobuf:
    """The format `otlp-protobuf`."""

    slug = "otlp-protobuf"
    label = "OpenTelemetry traces (OTLP protobuf)"
    version = 2
    description = (
        "An OTLP trace export in protobuf, as any OpenTelemetry SDK or collector sends "
        "it, with GenAI, OpenInference, Traceloop or Vercel AI SDK attributes."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the bytes begin like resource spans that hold a span."""
        return looks_like_otlp_traces(source.head)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no spans, so there is no trace."
        )


def _items(source: Source) -> Iterator[Item]:
    yield from source.notes
    store = SpanStore()
    offset = 0
    try:
        for offset, payload in top_level_messages(source.stream):
            yield from _take(store, offset, payload)
            yield Progress(offset + len(payload), source.size)
    except BadWire as problem:
        yield Rejected(
            place=f"byte {problem.offset}",
            reason=f"This is not OTLP protobuf from here on: {problem.what}.",
        )
    yield from source.remarks()
    yield from traces_of(store)


def _take(store: SpanStore, offset: int, payload: bytes) -> Iterator[Rejected]:
    try:
        message = ResourceSpans.FromString(payload)
    except DecodeError:
        yield Rejected(
            place=f"byte {offset}",
            reason=f"These {len(payload)} bytes are not a valid ResourceSpans message.",
        )
        return
    resource = _attributes(message.resource.attributes)
    for scope_spans in message.scope_spans:
        scope = visible(scope_spans.scope.name)
        for index, wire in enumerate(scope_spans.spans):
            span = _span(wire, resource, scope)
            if span is None:
                yield Rejected(
                    place=f"byte {offset}, span {index}",
                    reason="The span has no trace id or no span id.",
                    excerpt=visible(wire.name[:120]),
                )
            else:
                store.add(span)


def _identifier(raw: bytes) -> str | None:
    return raw.hex() if any(raw) else None


def _span(wire: WireSpan, resource: dict[str, Any], scope: str) -> Span | None:
    trace_id, span_id = _identifier(wire.trace_id), _identifier(wire.span_id)
    if trace_id is None or span_id is None:
        return None
    start, unit = time_of(wire.start_time_unix_nano)
    end, _ = time_of(wire.end_time_unix_nano)
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_identifier(wire.parent_span_id),
        name=visible(wire.name),
        start_ns=start,
        end_ns=end,
        unit=unit,
        status=wire.status.code,
        status_message=visible(wire.status.message),
        attributes=_attributes(wire.attributes),
        events=[
            Event(
                name=visible(event.name),
                time_ns=time_of(event.time_unix_nano)[0],
                attributes=_attributes(event.attributes),
            )
            for event in wire.events
        ],
        resource=resource,
        scope=scope,
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {visible(pair.key): _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return visible(value.string_value)
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "double_value":
        return double_of(value.double_value)
    return getattr(value, kind) if kind in {"int_value", "bool_value"} else None
