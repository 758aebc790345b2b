"""Reader of the OpenAI Agents SDK's own traces: {object: trace} and {object: trace.span}.

Lines, lists and the {"data": [...]} payloads that are sent to the backend hold the
same objects. A span of type response has only the id and the usage of its call, so
its model and its text are not recorded. What the spans of a turn or of the whole task
say of tokens is the sum of their calls: it is compared, never added.
Source: https://openai.github.io/openai-agents-python/ref/tracing/span_data/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Rejected, Source
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
    refused_part,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.platform_rows import (
    Placed,
    Row,
    demanded,
    kept,
    opened,
    opened_list,
    opened_object,
    row_id,
    rows_in,
    span_of_row,
    task_in,
    trial_in,
)
from apps.engine.reading.recorded import first_of
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import Facts, Span, SpanStore, TraceFacts
from apps.engine.reading.token_counts import whole_number
from apps.engine.reading.unique_ids import is_unique
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import StepKind

TRACE: Final = "trace"
SPAN: Final = "trace.span"
_LISTS: Final = ("data", "items", "traces", "spans")
_KINDS: Final = {
    "agent": StepKind.AGENT,
    "generation": StepKind.MODEL_CALL,
    "response": StepKind.MODEL_CALL,
    "function": StepKind.TOOL_CALL,
    "handoff": StepKind.HANDOFF,
    "guardrail": StepKind.GUARDRAIL,
}
_READ: Final = frozenset(
    {"type", "input", "output", "usage", "name", "model", "response_id", "response"}
)


class OpenAIAgents:
    """The format `openai-agents`."""

    slug = "openai-agents"
    label = "OpenAI Agents SDK traces"
    version = 1
    description = (
        "Traces and spans as the OpenAI Agents SDK exports them to a trace processor "
        "or to its backend, as JSON lines, a list, or {data: [...]}. Responses spans "
        "hold the usage of a call but neither its model nor its text."
    )

    def recognises(self, source: Source) -> bool:
        """Whether one of the first values is a trace or a span of the SDK."""
        return any(_looks_right(value) for value in first_values(source))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no span of the OpenAI Agents SDK."
        )


def _looks_right(value: Any) -> bool:
    if isinstance(value, list):
        return any(_is_object(item) for item in value[:3])
    if _is_object(value):
        return True
    return isinstance(value, dict) and any(
        _is_object(item) for _, item in _inside(value)
    )


def _is_object(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if value.get("object") == TRACE:
        named = "workflow_name" in value or "group_id" in value
        return named or str(value.get("id")).startswith("trace_")
    return value.get("object") == SPAN or (
        isinstance(value.get("span_data"), dict) and "trace_id" in value
    )


def _inside(value: Row) -> Iterator[tuple[str, Any]]:
    if isinstance(value.get("trace"), dict):
        yield "$.trace", value["trace"]
    yield from rows_in(value, _LISTS)


def _items(source: Source) -> Iterator[Item]:
    taker = _Taker()
    yield from read_each(source, taker, unroll=True)
    yield from taker.empty_traces()
    yield from traces_of(taker.store)


class _Taker:
    """Takes traces and spans out of the records, in any order."""

    def __init__(self) -> None:
        self.store = SpanStore()
        self._places: dict[str, str] = {}
        self._with_spans: set[str] = set()

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if _is_object(value):
            self._take(value, record.place)
            return
        inside = list(_inside(value)) if isinstance(value, dict) else []
        if not inside:
            raise RefusedRecord(
                "This is neither a trace nor a span of the OpenAI Agents SDK.", "$"
            )
        for path, item in inside:
            place = f"{record.place}, {path}"
            try:
                self._take(item, place)
            except RefusedRecord as refusal:
                yield refused_part(place, refusal, item)

    def _take(self, value: Any, place: str) -> None:
        if not _is_object(value):
            raise RefusedRecord(
                "This is neither a trace nor a span of the OpenAI Agents SDK.", "$"
            )
        if isinstance(value.get("span_data"), dict) or value["object"] == SPAN:
            span = _span(value)
            self._with_spans.add(span.trace_id)
            self.store.add(span)
            return
        trace_id = demanded(value, ("id", "trace_id"), "trace")
        self.store.describe(trace_id, _facts_of(value, trace_id))
        self._places.setdefault(trace_id, place)

    def empty_traces(self) -> Iterator[Rejected]:
        """Yield a rejection for each trace of which the file holds no span."""
        for trace_id, place in self._places.items():
            if trace_id not in self._with_spans:
                yield Rejected(place, "The file holds no span of this trace.", trace_id)


def _facts_of(value: Row, trace_id: str) -> TraceFacts:
    metadata = opened_object(value.get("metadata"))
    return TraceFacts(
        name=value.get("workflow_name"),
        session=value.get("group_id"),
        task=task_in(metadata),
        trial=whole_number(trial_in(metadata)),
        metadata=metadata,
        is_id_unique=is_unique(trace_id),
    )


def _span(value: Row) -> Span:
    data = value.get("span_data")
    if not isinstance(data, dict):
        raise RefusedRecord("The span has no span_data.", "$.span_data")
    kind = data.get("type")
    error = value.get("error")
    trace_id = demanded(value, ("trace_id",), "span")
    placed = Placed(
        trace_id=trace_id,
        span_id=demanded(value, ("id", "span_id"), "span"),
        parent_id=row_id(value.get("parent_id")),
        name=_name(data, kind),
        start=value.get("started_at"),
        end=value.get("ended_at"),
        # A span without an error says nothing of success: a refusal has none either.
        failed=True if error else None,
        message=_error_message(error),
    )
    return span_of_row(placed, _facts(data, kind, value, error))


def _name(data: Row, kind: Any) -> Any:
    if kind == "handoff":
        return f"handoff to {data.get('to_agent') or '(unknown agent)'}"
    return first_of(data, ("name", "server", "type"))


def _error_message(error: Any) -> Any:
    """Return what went wrong; the SDK's own words are general, its data are not."""
    if not isinstance(error, dict):
        return error
    message, cause = error.get("message"), opened_object(error.get("data")).get("error")
    if isinstance(message, str) and isinstance(cause, str) and cause not in message:
        return f"{message}: {cause}"
    return message


def _facts(data: Row, kind: Any, value: Row, error: Any) -> Facts:
    attributes = kept(data, _READ) or {}
    details = error.get("data") if isinstance(error, dict) else None
    if details:
        attributes["error_data"] = details
    own = opened_object(value.get("metadata"))
    if own:
        attributes["metadata"] = own
    facts = Facts(
        kind=_KINDS.get(kind, StepKind.OTHER)
        if isinstance(kind, str)
        else StepKind.OTHER,
        native_kind=kind if isinstance(kind, str) else None,
        agent=_agent(data, kind),
        tool=data.get("name") if kind == "function" else None,
        handoff_target=_text(data.get("to_agent")) if kind == "handoff" else None,
        input=opened(first_of(data, ("input", "_input"))),
        output=opened(data.get("output")),
        attributes=attributes or None,
    )
    if facts.kind is StepKind.MODEL_CALL:
        _complete_call(facts, data)
    else:
        # Turns and tasks hold the sum of their calls: it is only compared.
        facts.counts = usage_counts(
            opened_object(data.get("data")).get("usage"), "data.usage"
        )
    return facts


def _agent(data: Row, kind: Any) -> Any:
    """Return the agent of an agent span, or of a turn whose agent span is missing."""
    if kind == "agent":
        return data.get("name")
    return (
        opened_object(data.get("data")).get("agent_name") if kind == "custom" else None
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _complete_call(facts: Facts, data: Row) -> None:
    response = first_of(data, ("response", "_response"))
    response = response if isinstance(response, dict) else {}
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else None
    facts.counts = usage_counts(usage or response.get("usage"), "span_data.usage")
    facts.model = first_of(data, ("model",)) or response.get("model")
    facts.response_id = data.get("response_id") or response.get("id")
    conversation = response.get("conversation")
    facts.conversation = opened_object(conversation).get("id") or conversation
    if facts.output is None:
        facts.output = opened(response.get("output"))
    answer = opened_list(facts.output)
    facts.finish = _finish(response, answer)


def _finish(response: Row, answer: list[Any]) -> Any:
    """Return why the call ended, where the span holds what the API answered."""
    details = opened_object(response.get("incomplete_details"))
    if details.get("reason"):
        return details["reason"]
    told = [one.get("finish_reason") for one in answer if isinstance(one, dict)]
    return next((one for one in told if one), None) or response.get("status")
