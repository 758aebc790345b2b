"""Reader of DeepEval traces: {uuid, baseSpans, agentSpans, llmSpans, toolSpans, …}.

Spans stand in one list for each type and name their parent by uuid. Metrics are marks
of quality by a judge, so they become labels; only the success of the test case that a
test run wraps around a trace is an outcome.
Source: https://deepeval.com/docs/evaluation-llm-tracing
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
from apps.engine.reading.genai import bare_name
from apps.engine.reading.genai_names import AGENT_PREFIXES, TOOL_PREFIXES
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
    row_id,
    rows_in,
    span_of_row,
    task_in,
    trial_in,
)
from apps.engine.reading.recorded import first_of, word
from apps.engine.reading.span_marks import graph_hints, mark_agents
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import Facts, Span, SpanStore, TraceFacts
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.reading.unique_ids import is_unique
from apps.engine.trace import Outcome, OutcomeKind, StepKind

_LISTS: Final = {
    "baseSpans": StepKind.OTHER, "base_spans": StepKind.OTHER,
    "agentSpans": StepKind.AGENT, "agent_spans": StepKind.AGENT,
    "llmSpans": StepKind.MODEL_CALL, "llm_spans": StepKind.MODEL_CALL,
    "retrieverSpans": StepKind.RETRIEVAL, "retriever_spans": StepKind.RETRIEVAL,
    "toolSpans": StepKind.TOOL_CALL, "tool_spans": StepKind.TOOL_CALL,
}  # fmt: skip
_TYPES: Final = {
    "base": StepKind.OTHER, "agent": StepKind.AGENT, "llm": StepKind.MODEL_CALL,
    "retriever": StepKind.RETRIEVAL, "tool": StepKind.TOOL_CALL,
}  # fmt: skip
_PAGES: Final = ("traces", "data", "items")
_CASES: Final = ("testCases", "test_cases")
_GROUND_TRUTH: Final = (
    "expectedOutput", "expected_output", "expectedTools", "expected_tools",
    "metricsData", "metrics_data",
)  # fmt: skip
_READ: Final = frozenset(
    {
        "uuid", "name", "type", "status", "parentUuid", "parent_uuid", "startTime",
        "start_time", "endTime", "end_time", "input", "output", "error", "model",
        "provider", "inputTokenCount", "input_token_count", "outputTokenCount",
        "output_token_count", *_GROUND_TRUTH,
    }
)  # fmt: skip
_TRACE_READ: Final = frozenset(
    {
        *_LISTS, *_GROUND_TRUTH, "uuid", "name", "startTime", "start_time", "endTime",
        "end_time", "metadata", "threadId", "thread_id", "testCaseId", "test_case_id",
    }
)  # fmt: skip
_NO_TRACE: Final = "This is no DeepEval trace: it has none of the lists of spans."


class DeepEval:
    """The format `deepeval`."""

    slug = "deepeval"
    label = "DeepEval traces"
    version = 1
    description = (
        "Traces as DeepEval and Confident AI write them, with one list of spans for "
        "each type (llmSpans, toolSpans, agentSpans, ...). Metrics and expected "
        "answers become labels."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a trace that has DeepEval's lists of spans."""
        return any(_looks_right(value) for value in first_values(source))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each record; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no span of DeepEval."
        )


def _looks_right(value: Any) -> bool:
    if isinstance(value, list):
        return any(_is_trace(item) for item in value[:3])
    return _is_trace(value) or any(True for _ in _nested(value))


def _is_trace(value: Any) -> bool:
    if not isinstance(value, dict) or "uuid" not in value:
        return False
    return any(isinstance(value.get(key), list) for key in _LISTS)


def _nested(value: Any) -> Iterator[tuple[str, Row, Row]]:
    """Yield path, trace and test case of what a page or a test run holds.

    A test case is empty where a trace stands alone.
    """
    if not isinstance(value, dict):
        return
    if isinstance(value.get("testRunData"), dict):
        value = value["testRunData"]
    inner = value.get("trace")
    if isinstance(inner, dict) and _is_trace(inner):
        yield "$.trace", inner, value
    for path, item in rows_in(value, (*_PAGES, *_CASES)):
        inner = item.get("trace") if isinstance(item, dict) else None
        if _is_trace(item):
            yield path, item, {}
        elif isinstance(inner, dict) and _is_trace(inner):
            yield f"{path}.trace", inner, item


def _items(source: Source) -> Iterator[Item]:
    taker = _Taker()
    yield from read_each(source, taker, unroll=True)
    yield from traces_of(taker.store, mark_agents)


class _Taker:
    """Takes the spans of each trace into one store."""

    def __init__(self) -> None:
        self.store = SpanStore()

    def __call__(self, record: Record) -> Iterator[Item]:
        if _is_trace(record.value):
            yield from self._take(record.value, {}, record.place)
            return
        inside = list(_nested(record.value))
        if not inside:
            raise RefusedRecord(_NO_TRACE, "$")
        for path, trace, case in inside:
            yield from self._take(trace, case, f"{record.place}, {path}")

    def _take(self, trace: Row, case: Row, place: str) -> Iterator[Item]:
        trace_id = row_id(trace.get("uuid"))
        if trace_id is None:
            yield Rejected(place, "The trace has no uuid.", excerpt(str(trace)))
            return
        found = False
        for key, kind in _LISTS.items():
            rows = trace.get(key)
            for index, row in enumerate(rows if isinstance(rows, list) else []):
                try:
                    self.store.add(_span(row, trace_id, kind))
                    found = True
                except RefusedRecord as refusal:
                    yield refused_part(f"{place}, $.{key}[{index}]", refusal, row)
        if found:
            self.store.describe(trace_id, _facts_of(trace, case, trace_id))
        else:
            yield Rejected(place, "The trace has no spans.", trace_id)


def _facts_of(trace: Row, case: Row, trace_id: str) -> TraceFacts:
    metadata = opened_object(trace.get("metadata"))
    named = first_of(trace, ("testCaseId", "test_case_id")) or case.get("name")
    return TraceFacts(
        name=trace.get("name"),
        session=first_of(trace, ("threadId", "thread_id")),
        task=task_in(metadata) or named,
        trial=whole_number(trial_in(metadata)),
        outcome=_outcome(case.get("success")),
        metadata=metadata | (kept(trace, _TRACE_READ) or {}),
        labels=_labels(case) | _labels(trace),
        is_id_unique=is_unique(trace_id),
    )


def _outcome(success: Any) -> Outcome | None:
    """Return whether the test case passed; metrics of a trace alone are no outcome."""
    if not isinstance(success, bool):
        return None
    kind = OutcomeKind.PASS if success else OutcomeKind.FAIL
    return Outcome(kind=kind, label=str(success), source="testCases.success")


def _labels(row: Row) -> dict[str, Any]:
    return {
        key: row[key] for key in _GROUND_TRUTH if row.get(key) not in (None, [], "")
    }


def _span(row: Any, trace_id: str, listed: StepKind) -> Span:
    span_id = demanded(row, ("uuid",), "span")
    metadata = opened_object(row.get("metadata"))
    status = str(row.get("status")).upper()
    placed = Placed(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=row_id(first_of(row, ("parentUuid", "parent_uuid"))),
        name=row.get("name"),
        start=first_of(row, ("startTime", "start_time")),
        end=first_of(row, ("endTime", "end_time")),
        failed={"SUCCESS": False, "ERRORED": True}.get(status),
        message=row.get("error"),
        attributes=graph_hints(metadata),
    )
    native = row.get("type")
    facts = Facts(
        kind=_TYPES.get(native, listed) if isinstance(native, str) else listed,
        native_kind=native if isinstance(native, str) else None,
        counts=_counts(row),
        input=opened(row.get("input")),
        output=opened(row.get("output")),
        attributes=kept(row, _READ),
    )
    _complete(facts, row)
    return span_of_row(placed, facts)


def _counts(row: Row) -> Counts:
    given = first_of(row, ("inputTokenCount", "input_token_count"))
    output = first_of(row, ("outputTokenCount", "output_token_count"))
    return Counts(
        input_total=whole_number(given),
        output_total=whole_number(output),
        source="outputTokenCount",
    )


def _complete(facts: Facts, row: Row) -> None:
    told = word(row.get("name"))
    if facts.kind is StepKind.AGENT:
        facts.agent = bare_name(told, AGENT_PREFIXES, ".agent") or None
    elif facts.kind is StepKind.TOOL_CALL:
        facts.tool = bare_name(told, TOOL_PREFIXES, ".tool") or None
        _complete_tool(facts, row)
    elif facts.kind is StepKind.MODEL_CALL:
        facts.model = row.get("model")
        facts.provider = row.get("provider")
        facts.finish = finish_in(facts.output)
        facts.reasoning = reasoning_in(facts.output)
        facts.response_id = response_id_in(facts.output)


def _complete_tool(facts: Facts, row: Row) -> None:
    called = opened_list(first_of(row, ("toolsCalled", "tools_called")))
    first = opened_object(called[0]) if called else {}
    if facts.input is None:
        facts.input = first_of(first, ("inputParameters", "input_parameters"))
    answer = facts.output
    facts.call_id = answer.get("tool_call_id") if isinstance(answer, dict) else None
