"""The two encodings of an OTLP request, made into one message.

JSON comes through the same gate as files: field names in camel or snake case, ids in
hex or base64, integers as numbers or texts. Nothing is decided here about what the
spans mean.
Encoding: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import (
    ResourceSpans,
    ScopeSpans,
    Span,
    Status,
)

from apps.engine.format import Rejected, UnreadableTrace
from apps.engine.reading.bytestream import open_source
from apps.engine.reading.json_gate import Record, records
from apps.engine.reading.json_words import visible
from apps.engine.reading.otlp_values import attributes_of
from apps.engine.reading.spans import identifier, time_of

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
_STATUS_CODES: Final = {
    "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2, "OK": 1, "ERROR": 2, 1: 1, 2: 2,
}  # fmt: skip
_KINDS: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
# Messages in messages that protobuf reads back: three for each level of a value.
_DEEPEST: Final = 24
_INT64: Final = range(-(2**63), 2**63)
_UINT64: Final = range(2**64)


class BadRequest(Exception):
    """The body is no OTLP trace request; the message is a sentence for a person."""


def decode(body: bytes, content_type: str) -> ExportTraceServiceRequest:
    """Return the request of a body in one of the two encodings; raise `BadRequest`."""
    if content_type == JSON:
        return _from_json(body)
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise BadRequest(
            f"The body of {len(body)} bytes is not an ExportTraceServiceRequest in "
            "protobuf."
        ) from error
    return request


def _from_json(body: bytes) -> ExportTraceServiceRequest:
    value = _document(body)
    groups = _either(value, "resourceSpans", "resource_spans")
    if not isinstance(value, dict) or not isinstance(groups, list | None):
        raise BadRequest("This is not an OTLP request: it has no resourceSpans.")
    if groups is None and value:
        raise BadRequest(
            "This is not an OTLP trace request: it has no resourceSpans. Metrics and "
            "logs are not taken here."
        )
    return ExportTraceServiceRequest(resource_spans=map(_group, groups or []))


def _document(body: bytes) -> Any:
    try:
        source = open_source(io.BytesIO(body), max_unpacked_bytes=len(body))
        found = [
            item
            for item in records(source, unroll=False)
            if isinstance(item, Record | Rejected)
        ]
    except UnreadableTrace as error:
        raise BadRequest(str(error)) from error
    if len(found) != 1:
        raise BadRequest("One JSON document was expected: one export request.")
    [item] = found
    if isinstance(item, Rejected):
        raise BadRequest(f"This is not JSON. {item.place}: {item.reason}")
    return item.value


def _either(record: Any, camel: str, snake: str) -> Any:
    if not isinstance(record, dict):
        return None
    found = record.get(camel)
    return record.get(snake) if found is None else found


def _list(record: Any, camel: str, snake: str) -> list[Any]:
    found = _either(record, camel, snake)
    return found if isinstance(found, list) else []


def _text(value: Any) -> str:
    return visible(value) if isinstance(value, str) else ""


def _group(group: Any) -> ResourceSpans:
    resource = _either(group, "resource", "resource")
    return ResourceSpans(
        resource=Resource(attributes=_pairs(attributes_of(resource))),
        scope_spans=map(_scope_spans, _list(group, "scopeSpans", "scope_spans")),
    )


def _scope_spans(scope_spans: Any) -> ScopeSpans:
    scope = _either(scope_spans, "scope", "scope")
    name = scope.get("name") if isinstance(scope, dict) else None
    return ScopeSpans(
        scope=InstrumentationScope(name=_text(name)),
        spans=map(_span, _list(scope_spans, "spans", "spans")),
    )


def _span(raw: Any) -> Span:
    """Return the span of a JSON object; what has no usable id gets none."""
    if not isinstance(raw, dict):
        return Span()
    status = raw.get("status")
    status = status if isinstance(status, dict) else {}
    return Span(
        trace_id=_id(_either(raw, "traceId", "trace_id")),
        span_id=_id(_either(raw, "spanId", "span_id")),
        parent_span_id=_id(_either(raw, "parentSpanId", "parent_span_id")),
        name=_text(raw.get("name")),
        kind=_kind(raw.get("kind")),
        start_time_unix_nano=_time(raw, "startTimeUnixNano", "start_time_unix_nano"),
        end_time_unix_nano=_time(raw, "endTimeUnixNano", "end_time_unix_nano"),
        status=Status(
            code=_status_code(status.get("code")), message=_text(status.get("message"))
        ),
        attributes=_pairs(attributes_of(raw)),
        events=[
            Span.Event(
                name=_text(event.get("name")),
                time_unix_nano=_time(event, "timeUnixNano", "time_unix_nano"),
                attributes=_pairs(attributes_of(event)),
            )
            for event in _list(raw, "events", "events")
            if isinstance(event, dict)
        ],
    )


def _id(value: Any) -> bytes:
    try:
        return bytes.fromhex(identifier(value) or "")
    except ValueError:
        return b""


def _time(record: dict[str, Any], camel: str, snake: str) -> int:
    value = _either(record, camel, snake)
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value) if len(value) <= 20 else 0
    if isinstance(value, float):
        value = time_of(value)[0]
    return value if type(value) is int and value in _UINT64 else 0


def _kind(value: Any) -> Any:
    if isinstance(value, str):
        value = value.removeprefix("SPAN_KIND_")
        return _KINDS.index(value) if value in _KINDS else 0
    return value if type(value) is int and 0 <= value < len(_KINDS) else 0


def _status_code(value: Any) -> Any:
    return _STATUS_CODES.get(value, 0) if isinstance(value, str | int) else 0


def _pairs(values: Mapping[str, Any], depth: int = 1) -> list[KeyValue]:
    return [
        KeyValue(key=visible(str(key)), value=_value(value, depth))
        for key, value in values.items()
    ]


def _value(value: Any, depth: int) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=visible(value))
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        is_whole = value in _INT64
        return AnyValue(int_value=value) if is_whole else _as_text(value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return _nested(value, depth)


def _nested(value: Any, depth: int) -> AnyValue:
    if not isinstance(value, list | dict):
        return AnyValue()
    if depth >= _DEEPEST:
        return _as_text(value)
    if isinstance(value, dict):
        return AnyValue(kvlist_value=KeyValueList(values=_pairs(value, depth + 1)))
    items = [_value(item, depth + 1) for item in value]
    return AnyValue(array_value=ArrayValue(values=items))


def _as_text(value: Any) -> AnyValue:
    return AnyValue(string_value=visible(json.dumps(value, ensure_ascii=False)))
