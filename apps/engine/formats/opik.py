"""Reader of Opik exports: {trace, spans}, lists of them, and rows of the API.

Spans are of type llm, tool, guardrail or general; Opik knows no agents, so the
functions that made several calls themselves are taken for them and a note says so.
Source: https://www.comet.com/docs/opik/reference/rest-api/overview
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Rejected, Source
from apps.engine.reading.answer_facts import (
    finish_in,
    reasoning_in,
    response_id_in,
)
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
    refused_part,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.json_words import excerpt
from apps.engine.reading.platform_rows import (
    Placed,
    Row,
    demanded,
    kept,
    opened,
    opened_list,
    opened_object,
    reported,
    row_id,
    rows_in,
    span_of_row,
    task_in,
    trial_in,
)
from apps.engine.reading.recorded import first_of
from apps.engine.reading.recorded_verdicts import first_verdict
from apps.engine.reading.span_marks import graph_hints, mark_agents
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import Facts, Span, SpanStore, TraceFacts
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.reading.unique_ids import is_unique
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import StepKind

_KINDS: Final = {
    "llm": StepKind.MODEL_CALL,
    "tool": StepKind.TOOL_CALL,
    "guardrail": StepKind.GUARDRAIL,
}
_TYPES: Final = frozenset({"general", "llm", "tool", "guardrail"})
_LISTS: Final = ("spans", "traces", "content", "data")
_PREFIX: Final = "original_usage."
_NO_SPANS: Final = (
    "The file holds this trace without its spans, so it says nothing of the model "
    "calls and tool calls that were made."
)
_NEITHER: Final = "This is neither a trace nor a span of Opik."
_READ: Final = frozenset(
    {
        "id", "trace_id", "parent_span_id", "name", "type", "start_time", "end_time",
        "input", "output", "metadata", "usage", "model", "provider", "error_info",
        "project_id", "created_at", "last_updated_at", "created_by",
        "last_updated_by", "source", "duration",
    }
)  # fmt: skip
_TRACE_READ: Final = frozenset(
    {
        "id", "name", "start_time", "end_time", "metadata", "thread_id", "usage",
        "feedback_scores", "spans", "project_id", "created_at", "last_updated_at",
        "created_by", "last_updated_by", "source", "duration", "span_count",
    }
)  # fmt: skip


class Opik:
    """The format `opik`."""

    slug = "opik"
    label = "Opik traces"
    version = 1
    description = (
        "Traces with their spans as Opik exports them: one {trace, spans}, a list or "
        "lines of them, or the spans alone. Feedback scores become labels."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a trace and its spans, or with a span."""
        return any(_looks_right(value) for value in first_values(source))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        return demand_a_trace(_items(source), nothing="The file holds no Opik trace.")


def _looks_right(value: Any) -> bool:
    if isinstance(value, list):
        return any(_is_known(item) for item in value[:3])
    if _is_known(value):
        return True
    return isinstance(value, dict) and any(
        _is_known(item) for _, item in rows_in(value, _LISTS)
    )


def _is_known(value: Any) -> bool:
    return _is_span(value) or _whole(value) is not None


def _is_span(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and value["type"] in _TYPES
        and "trace_id" in value
        and "start_time" in value
    )


def _whole(value: Any) -> tuple[Row, list[Any]] | None:
    """Return a trace and its spans, nested in it or beside it; `None` for neither."""
    if not isinstance(value, dict):
        return None
    trace, spans = value.get("trace", value), value.get("spans")
    if not isinstance(trace, dict) or "id" not in trace or "start_time" not in trace:
        return None
    if isinstance(spans, list):
        return trace, spans
    is_row = "trace_id" not in trace and "run_type" not in trace
    marks = ("feedback_scores", "span_count", "thread_id", "project_name", "project_id")
    if is_row and any(key in trace for key in marks) and "input" in trace:
        return trace, []
    return None


def _items(source: Source) -> Iterator[Item]:
    taker = _Taker()
    yield from read_each(source, taker, unroll=True)
    taker.finish()
    yield from traces_of(taker.store, mark_agents)


class _Taker:
    """Takes traces and spans out of the records, in any order."""

    def __init__(self) -> None:
        self.store = SpanStore()
        self._with_spans: dict[str, None] = {}
        self._traces: dict[str, Row] = {}

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if _is_known(value):
            yield from self._try(value, record.place)
            return
        rows = list(rows_in(value, _LISTS)) if isinstance(value, dict) else []
        if not rows:
            raise RefusedRecord(_NEITHER, "$")
        for path, item in rows:
            yield from self._try(item, f"{record.place}, {path}")

    def _try(self, value: Any, place: str) -> Iterator[Item]:
        whole = _whole(value)
        if whole is None or _is_span(value):
            yield from self._span(value, None, place)
            return
        trace, spans = whole
        trace_id = row_id(trace.get("id"))
        if trace_id is None:
            yield Rejected(place, "The trace has no id.", excerpt(str(trace)))
            return
        self._traces.setdefault(trace_id, trace)
        for index, span in enumerate(spans):
            yield from self._span(span, trace_id, f"{place}, $.spans[{index}]")

    def _span(self, value: Any, trace_id: str | None, place: str) -> Iterator[Item]:
        try:
            span = _made(value, trace_id)
        except RefusedRecord as refusal:
            yield refused_part(place, refusal, value)
            return
        self._with_spans[span.trace_id] = None
        self.store.add(span)

    def finish(self) -> None:
        """Describe the traces; one without spans becomes a single step with a note."""
        for trace_id, trace in self._traces.items():
            facts = _facts_of(trace, trace_id)
            if trace_id not in self._with_spans:
                facts.notes = (_NO_SPANS,)
                self.store.add(_bare(trace, trace_id, facts))
            self.store.describe(trace_id, facts)
        for trace_id in self._with_spans:
            self.store.describe(trace_id, TraceFacts(is_id_unique=is_unique(trace_id)))


def _facts_of(trace: Row, trace_id: str) -> TraceFacts:
    metadata = opened_object(trace.get("metadata"))
    scores = [
        one
        for one in opened_list(trace.get("feedback_scores"))
        if isinstance(one, dict)
    ]
    told = [
        (one.get("name"), first_of(one, ("category_name", "value"))) for one in scores
    ]
    own = kept(trace, _TRACE_READ) or {}
    return TraceFacts(
        name=trace.get("name"),
        session=trace.get("thread_id"),
        task=task_in(metadata),
        trial=whole_number(trial_in(metadata)),
        outcome=first_verdict(told, "feedback_scores"),
        metadata=metadata | own,
        labels={"feedback_scores": scores} if scores else {},
        is_id_unique=is_unique(trace_id),
    )


def _bare(trace: Row, trace_id: str, facts: TraceFacts) -> Span:
    placed = Placed(
        trace_id=trace_id,
        span_id=trace_id,
        name=trace.get("name"),
        start=trace.get("start_time"),
        end=trace.get("end_time"),
        failed=True if trace.get("error_info") else None,
        message=opened_object(trace.get("error_info")).get("message"),
    )
    body = Facts(
        kind=StepKind.OTHER,
        native_kind="trace",
        input=opened(facts.metadata.pop("input", None)),
        output=opened(facts.metadata.pop("output", None)),
    )
    return span_of_row(placed, body)


def _made(value: Any, trace_id: str | None) -> Span:
    if not isinstance(value, dict):
        raise RefusedRecord(_NEITHER, "$")
    metadata = opened_object(value.get("metadata"))
    error = opened_object(value.get("error_info"))
    told = row_id(value.get("trace_id")) or trace_id
    if told is None:
        raise RefusedRecord("The span has no trace_id.", "$.trace_id")
    if "type" not in value and "start_time" not in value:
        raise RefusedRecord(_NEITHER, "$")
    kind = value.get("type")
    kind = kind if isinstance(kind, str) else "general"
    placed = Placed(
        trace_id=told,
        span_id=demanded(value, ("id",), "span"),
        parent_id=row_id(value.get("parent_span_id")),
        name=value.get("name"),
        start=value.get("start_time"),
        end=value.get("end_time"),
        failed=True if value.get("error_info") else None,
        message=error.get("message"),
        attributes=graph_hints(metadata),
    )
    facts = Facts(
        kind=_KINDS.get(kind, StepKind.OTHER),
        native_kind=kind,
        input=opened(value.get("input")),
        output=opened(value.get("output")),
        attributes=_attributes(value, metadata),
        error_type=error.get("exception_type"),
        error_message=error.get("message"),
    )
    if facts.kind is StepKind.MODEL_CALL:
        _complete_call(facts, value, metadata)
    elif facts.kind is StepKind.TOOL_CALL:
        facts.tool = value.get("name")
        facts.call_id = metadata.get("tool_call_id")
    return span_of_row(placed, facts)


def _attributes(value: Row, metadata: Row) -> dict[str, Any] | None:
    left = kept(value, _READ) or {}
    if metadata:
        left["metadata"] = metadata
    error = value.get("error_info")
    if isinstance(error, dict) and error.get("traceback"):
        left["traceback"] = error["traceback"]
    return left or None


def _complete_call(facts: Facts, value: Row, metadata: Row) -> None:
    facts.counts = _counts(opened_object(value.get("usage")), metadata, facts.output)
    facts.model = first_of(value, ("model",)) or metadata.get("model")
    facts.provider = first_of(value, ("provider",)) or metadata.get("ls_provider")
    facts.finish = finish_in(facts.output) or finish_in(metadata)
    facts.reasoning = reasoning_in(facts.output)
    facts.response_id = response_id_in({"id": metadata.get("id")}) or response_id_in(
        facts.output
    )


def _counts(usage: Row, metadata: Row, answer: Any) -> Counts | None:
    """Return the counts of a call: Opik's own names, and the details it kept beside.

    Opik flattens what the provider said into original_usage.*, which tells what its
    three own counts do not: cached input and reasoning.
    """
    original: Row = {}
    for key, item in usage.items():
        if key.startswith(_PREFIX):
            _plant(original, key.removeprefix(_PREFIX), item)
    own = usage_counts(usage, "usage")
    inner = usage_counts(original or metadata.get("usage"), "usage.original_usage")
    for field in ("input_cached", "input_cache_write", "output_reasoning"):
        if getattr(own, field) is None:
            setattr(own, field, getattr(inner, field))
    given = own.input_total
    if given is not None and inner.input_total is not None:
        # Opik leaves Anthropic's cached input out of its prompt_tokens.
        own.input_total = max(given, inner.input_total)
    found = answer.get("usage") if isinstance(answer, dict) else None
    return (
        reported(own)
        or reported(inner)
        or reported(usage_counts(found, "output.usage"))
    )


def _plant(tree: Row, path: str, item: Any) -> None:
    first, _, rest = path.partition(".")
    if not rest:
        tree[first] = item
        return
    below = tree.setdefault(first, {})
    if isinstance(below, dict):
        below[rest] = item
