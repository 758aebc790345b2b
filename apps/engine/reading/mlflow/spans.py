"""Spans of MLflow traces in all three spellings, made into `Span`s.

Version 2 of the schema has a context and hexadecimal ids, version 3 base64 ids and
nanoseconds, and 3.5.0 ids of its own; all keep every attribute as JSON inside a text.
What the attributes mean is decided with those of the other span formats.
Schema: https://mlflow.org/docs/latest/genai/tracing/data-model/
"""

from __future__ import annotations

import re
from typing import Any, Final

from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.platform_rows import opened, opened_object
from apps.engine.reading.recorded import first_of
from apps.engine.reading.span_records import SpanRecord, span_of
from apps.engine.reading.spans import Span
from apps.engine.reading.text_limits import Remarks

Raw = dict[str, Any]

_PREFIX: Final = "mlflow."
_REQUEST_ID: Final = "mlflow.traceRequestId"
_USAGE: Final = "mlflow.chat.tokenUsage"
_OUTPUT_USAGE: Final = "mlflow.spanOutputs.usage"
_LOCATION: Final = re.compile(r"(?:trace:/[^/]*/)?(?:tr-)?(?=[0-9a-fA-F]{32}\Z)")
_NUMBERS: Final = (
    "Names of spans that older versions of MLflow numbered, read without the number: "
    "{n}."
)
_NUMBERED: Final = re.compile(r"(.+)_([1-9]\d{0,3})")
_CALLS: Final = ("CHAT_MODEL", "LLM")


def is_mlflow_span(value: Any) -> bool:
    """Whether a value is a span with attributes of MLflow's own."""
    attributes = value.get("attributes") if isinstance(value, dict) else None
    if not isinstance(attributes, dict):
        return False
    return "name" in value and any(key.startswith(_PREFIX) for key in attributes)


def mlflow_span(raw: Any) -> Span:
    """Return the span of one of MLflow's objects; raise `RefusedRecord` for what is none."""
    if not isinstance(raw, dict):
        raise RefusedRecord(
            "A span is an object; this may be the text of a Python one."
        )
    context, status = opened_object(raw.get("context")), raw.get("status")
    words = status if isinstance(status, dict) else {}
    return span_of(
        SpanRecord(
            trace_id=_bare(raw.get("trace_id") or context.get("trace_id")),
            span_id=raw.get("span_id") or context.get("span_id"),
            parent_id=raw.get("parent_span_id") or raw.get("parent_id"),
            name=raw.get("name"),
            start=first_of(
                raw, ("start_time_unix_nano", "start_time_ns", "start_time")
            ),
            end=first_of(raw, ("end_time_unix_nano", "end_time_ns", "end_time")),
            status=words.get("code") or raw.get("status_code") or status,
            status_message=words.get("message") or raw.get("status_message"),
            attributes=_attributes(raw),
            events=raw.get("events"),
        )
    )


def _bare(trace_id: Any) -> Any:
    """Return a trace id without the prefix and the place that newer versions add."""
    return _LOCATION.sub("", trace_id, count=1) if isinstance(trace_id, str) else None


def _attributes(raw: Raw) -> Raw:
    """Return the attributes, opened; what only inputs and outputs say is added."""
    found = {
        key: opened(item) for key, item in opened_object(raw.get("attributes")).items()
    }
    for key, own in (
        ("inputs", "mlflow.spanInputs"),
        ("outputs", "mlflow.spanOutputs"),
    ):
        if raw.get(key) is not None:
            found.setdefault(own, opened(raw[key]))
    if isinstance(raw.get("span_type"), str):
        found.setdefault("mlflow.spanType", raw["span_type"])
    if found.get("mlflow.spanType") in _CALLS:
        _complete_call(found)
    found.pop(_REQUEST_ID, None)
    return found


def _complete_call(found: Raw) -> None:
    """Add model, finish, id and usage out of the request and the response.

    Older versions write none of them as attributes; the response is the provider's.
    """
    given, answer = found.get("mlflow.spanInputs"), found.get("mlflow.spanOutputs")
    given = given if isinstance(given, dict) else {}
    answer = answer if isinstance(answer, dict) else {}
    said = {
        "gen_ai.request.model": given.get("model") or given.get("model_name"),
        "gen_ai.response.model": answer.get("model"),
        "gen_ai.response.id": answer.get("id"),
        "gen_ai.response.finish_reasons": _finish(answer),
    }
    for key, value in said.items():
        if isinstance(value, str) and value:
            found.setdefault(key, value)
    if not found.get(_USAGE) and isinstance(answer.get("usage"), dict):
        found[_OUTPUT_USAGE] = answer["usage"]


def _finish(answer: Raw) -> Any:
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, dict) and choice.get("finish_reason"):
        return choice["finish_reason"]
    return answer.get("stop_reason") or answer.get("finish_reason")


def without_numbers(spans: list[Span], remarks: Remarks) -> None:
    """Take the numbers off names that older versions gave to spans of one name.

    Only where the numbers of a name are complete from 1 and the bare name is not
    used: then `agent_1` and `agent_2` are two visits of `agent`.
    """
    found: dict[str, list[tuple[int, Span]]] = {}
    names = {span.name for span in spans}
    for span in spans:
        numbered = _NUMBERED.fullmatch(span.name)
        if numbered and numbered.group(1) not in names:
            found.setdefault(numbered.group(1), []).append(
                (int(numbered.group(2)), span)
            )
    for name, group in found.items():
        if len(group) > 1 and sorted(at for at, _ in group) == list(
            range(1, len(group) + 1)
        ):
            for _, span in group:
                span.name = name
            remarks.add(_NUMBERS, len(group))
