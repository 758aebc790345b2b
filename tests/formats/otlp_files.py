"""Small OTLP files for tests, in JSON and in protobuf, from one description."""

from __future__ import annotations

import json
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

TRACE = "0123456789abcdef0123456789abcdef"
START = 1_796_008_524_000_000_000


def span_id(number: int) -> str:
    return f"{number:016x}"


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    return {"stringValue": value}


def span(number: int, parent: int | None = None, name: str = "", **more: Any) -> dict:
    """One span; `at` and `lasts` are seconds, `attributes` a plain object."""
    at = more.pop("at", number)
    lasts = more.pop("lasts", 0.5)
    attributes = more.pop("attributes", {})
    made = {
        "traceId": TRACE,
        "spanId": span_id(number),
        "name": name or f"span {number}",
        "startTimeUnixNano": str(START + int(at * 1e9)),
        "attributes": [
            {"key": key, "value": any_value(value)} for key, value in attributes.items()
        ],
        **more,
    }
    if lasts is not None:
        made["endTimeUnixNano"] = str(START + int((at + lasts) * 1e9))
    if parent is not None:
        made["parentSpanId"] = span_id(parent)
    return made


def call(number: int, parent: int | None = None, output: Any = 10, **more: Any) -> dict:
    """A model call by the GenAI names."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": output,
        **more.pop("attributes", {}),
    }
    return span(number, parent, "chat", attributes=attributes, **more)


def agent(number: int, parent: int | None, name: str, **more: Any) -> dict:
    attributes = {"openinference.span.kind": "AGENT", "agent.name": name}
    return span(number, parent, name, attributes=attributes, **more)


def document(*spans: dict) -> dict:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def as_json(*spans: dict) -> bytes:
    return json.dumps(document(*spans)).encode()


def as_protobuf(*spans: dict) -> bytes:
    """The same spans in protobuf, made by the real message classes."""
    data = TracesData()
    scope = data.resource_spans.add().scope_spans.add()
    for one in spans:
        made = scope.spans.add(
            trace_id=bytes.fromhex(one["traceId"]),
            span_id=bytes.fromhex(one["spanId"]),
            parent_span_id=bytes.fromhex(one.get("parentSpanId", "")),
            name=one["name"],
            start_time_unix_nano=int(one["startTimeUnixNano"]),
            end_time_unix_nano=int(one.get("endTimeUnixNano", 0)),
        )
        made.status.code = one.get("status", {}).get("code", 0)
        for pair in one["attributes"]:
            _set(made.attributes.add(key=pair["key"]).value, pair["value"])
    return data.SerializeToString()


def _set(target: Any, value: dict[str, Any]) -> None:
    [(kind, content)] = value.items()
    if kind == "arrayValue":
        for item in content["values"]:
            _set(target.array_value.values.add(), item)
    elif kind == "intValue":
        target.int_value = int(content)
    elif kind == "doubleValue":
        target.double_value = content
    elif kind == "boolValue":
        target.bool_value = content
    else:
        target.string_value = content
