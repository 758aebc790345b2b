"""Observations and traces of Langfuse, each made into a span or the facts of a trace.

Names are taken in camel case (pages, API, batch export) and in snake case (exports of
the database). What an OpenTelemetry span said is kept by Langfuse in the metadata and
is read there.
"""

from __future__ import annotations

import re
from typing import Any, Final

from apps.engine.reading import genai
from apps.engine.reading.answer_facts import finish_in, reasoning_in
from apps.engine.reading.langfuse.scores import scores_of
from apps.engine.reading.langfuse.usage import DETAILS, PROVIDED, state_of, usage_in
from apps.engine.reading.platform_rows import (
    Placed,
    Row,
    demanded,
    kept,
    opened,
    opened_list,
    opened_object,
    row_id,
    span_of_row,
    task_in,
    trace_wide,
    trial_in,
)
from apps.engine.reading.recorded import first_of
from apps.engine.reading.span_marks import graph_hints
from apps.engine.reading.spans import Facts, Span, TraceFacts
from apps.engine.reading.token_counts import whole_number
from apps.engine.reading.unique_ids import is_unique
from apps.engine.trace import StepKind

TRACE_ID: Final = ("traceId", "trace_id")
PARENT_ID: Final = ("parentObservationId", "parent_observation_id")
START: Final = ("startTime", "start_time")
_END: Final = ("endTime", "end_time")
_SESSION: Final = ("sessionId", "session_id")
_MODEL: Final = ("model", "providedModelName", "provided_model_name")
_MESSAGE: Final = ("statusMessage", "status_message")

KINDS: Final = {
    "GENERATION": StepKind.MODEL_CALL,
    "TOOL": StepKind.TOOL_CALL,
    "AGENT": StepKind.AGENT,
    "RETRIEVER": StepKind.RETRIEVAL,
    "GUARDRAIL": StepKind.GUARDRAIL,
    "EMBEDDING": StepKind.OTHER,
    "EVALUATOR": StepKind.OTHER,
    "CHAIN": StepKind.OTHER,
    "SPAN": StepKind.OTHER,
    "EVENT": StepKind.OTHER,
}
# What an older Langfuse stored as SPAN although its attributes say what it is.
_TOLD_BY_ATTRIBUTES: Final = frozenset(
    {StepKind.TOOL_CALL, StepKind.AGENT, StepKind.RETRIEVAL, StepKind.GUARDRAIL,
     StepKind.HANDOFF}
)  # fmt: skip
# BeeAI writes one row for each stage of a call; only the first one has the usage.
_STAGE: Final = re.compile(
    r"\.chat\.(?:success|finish|error|new_token|partial_update|retry)(?:-\d+)?"
)
_TWICE: Final = (
    "input.", "output.", "llm.input_messages.", "llm.output_messages.",
    "gen_ai.prompt", "gen_ai.completion", "gen_ai.input.messages",
    "gen_ai.output.messages", "langfuse.observation.input",
    "langfuse.observation.output",
)  # fmt: skip
_READ: Final = frozenset(
    {
        "id", "type", "name", "input", "output", "metadata", "model", "usage", "level",
        "projectId", "project_id", "createdAt", "created_at", "updatedAt", "updated_at",
        "inputUsage", "outputUsage", "totalUsage", "promptTokens", "completionTokens",
        "totalTokens", "traceName", "traceTags", "traceTimestamp", "sessionId",
        "session_id", "unit",
        *TRACE_ID, *PARENT_ID, *START, *_END, *_MODEL, *_MESSAGE, *DETAILS, *PROVIDED,
    }
)  # fmt: skip
_TRACE_READ: Final = frozenset(
    {
        "id", "name", "observations", "scores", "metadata", "projectId", "project_id",
        "createdAt", "created_at", "updatedAt", "updated_at", "sessionId",
        "session_id", "corrections", "htmlPath", "bookmarked", "public",
    }
)  # fmt: skip
_NO_OBSERVATIONS: Final = (
    "The file holds this trace without its observations, so it says nothing of the "
    "model calls and tool calls that were made."
)
STAGES: Final = (
    "Rows that only report a later stage of a model call, not counted as calls: {n}."
)


def is_observation(value: Any) -> bool:
    """Whether a value is an observation: a type of Langfuse's in a trace."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and value["type"] in KINDS
        and first_of(value, TRACE_ID) is not None
        and (
            first_of(value, START) is not None
            or any(key in value for key in (*PARENT_ID, "input"))
        )
    )


def is_trace(value: Any) -> bool:
    """Whether a value is a trace as Langfuse writes it, with or without observations."""
    if not isinstance(value, dict) or "timestamp" not in value or "id" not in value:
        return False
    if isinstance(value.get("observations"), list) and "scores" in value:
        return True
    return any(key in value for key in _SESSION) and any(
        key in value for key in ("bookmarked", "public", "environment", "release")
    )


def facts_of_trace(trace: Row) -> TraceFacts:
    """Return what a trace says of itself outside of its observations."""
    trace_id = demanded(trace, ("id",), "trace")
    metadata = opened_object(trace.get("metadata"))
    labels, outcome = scores_of(trace)
    own = kept(trace, _TRACE_READ) or {}
    for key in ("input", "output"):
        if key in own:
            own[key] = opened(own[key])
    return TraceFacts(
        name=trace.get("name"),
        session=first_of(trace, _SESSION),
        task=task_in(metadata) or metadata.get("dataset_item_id"),
        trial=whole_number(trial_in(metadata)),
        outcome=outcome,
        metadata=metadata | own,
        labels=labels,
        is_id_unique=is_unique(trace_id),
    )


def bare_trace(trace: Row) -> tuple[Span, TraceFacts]:
    """Return a trace of which no observation is known, as one span and its facts."""
    facts = facts_of_trace(trace)
    facts.notes = (_NO_OBSERVATIONS,)
    trace_id = demanded(trace, ("id",), "trace")
    start = first_of(trace, ("timestamp", *START))
    placed = Placed(
        trace_id=trace_id,
        span_id=trace_id,
        name=trace.get("name"),
        start=start,
        end=start,
    )
    body = Facts(
        kind=StepKind.OTHER,
        native_kind="TRACE",
        input=facts.metadata.pop("input", None),
        output=facts.metadata.pop("output", None),
    )
    return span_of_row(placed, body), facts


def facts_of_observation(row: Row, trace_id: str) -> TraceFacts:
    """Return what an observation of a batch export says of its trace."""
    return TraceFacts(
        name=row.get("traceName"),
        session=first_of(row, _SESSION),
        metadata=kept(
            {"tags": opened(row.get("traceTags")), "userId": row.get("userId")},
            frozenset(),
        )
        or {},
        is_id_unique=is_unique(trace_id),
    )


def span_of_observation(row: Row) -> Span:
    """Return the span of an observation; raise `RefusedRecord` without its ids."""
    metadata = opened_object(row.get("metadata"))
    attributes = opened_object(metadata.get("attributes"))
    start = first_of(row, START)
    end = first_of(row, _END)
    kind = str(row.get("type"))
    session = first_of(row, _SESSION) or metadata.get("thread_id")
    placed = Placed(
        trace_id=demanded(row, TRACE_ID, "observation"),
        span_id=demanded(row, ("id",), "observation"),
        parent_id=row_id(first_of(row, PARENT_ID)),
        name=row.get("name"),
        start=start,
        end=start if kind == "EVENT" and end is None else end,
        failed=True if str(row.get("level")).upper() == "ERROR" else None,
        message=first_of(row, _MESSAGE),
        attributes=graph_hints(metadata) | trace_wide(metadata, session),
    )
    span = span_of_row(placed, Facts(kind=KINDS.get(kind, StepKind.OTHER)))
    span.facts = _facts(row, kind, metadata, _as_attributes(span.name, attributes))
    return span


def _as_attributes(name: str, attributes: Row) -> Span:
    """Return a span of nothing but attributes, for the reading of their names."""
    placed = Placed(trace_id="", span_id="", name=name, attributes=attributes)
    span = span_of_row(placed, Facts(kind=StepKind.OTHER))
    span.facts = None
    return span


def _facts(row: Row, native: str, metadata: Row, told: Span) -> Facts:
    kind = _kind(row, native, told)
    counts, bad = usage_in(row)
    answer = opened(row.get("output"))
    facts = Facts(
        kind=kind,
        native_kind=native,
        counts=counts,
        bad_counts=bad,
        input=opened(row.get("input")),
        output=answer,
        attributes=_attributes(row, metadata),
    )
    if kind is StepKind.MODEL_CALL:
        _complete_call(facts, row, metadata, told)
    elif not counts.output_total:
        facts.counts = None
    if kind is StepKind.AGENT:
        facts.agent = genai.agent_span_name(told)
    elif kind is StepKind.TOOL_CALL:
        facts.tool = genai.tool_name(told)
        facts.call_id = genai.call_facts(told).call_id or _tool_call_id(
            metadata, answer
        )
    elif kind is StepKind.HANDOFF:
        facts.handoff_target = genai.handoff_target(told)
    return facts


def _kind(row: Row, native: str, told: Span) -> StepKind:
    kind = KINDS.get(native, StepKind.OTHER)
    if native == "SPAN" and told.attributes:
        implied = genai.kind_of(told)
        return implied if implied in _TOLD_BY_ATTRIBUTES else kind
    if kind is StepKind.MODEL_CALL and _STAGE.search(str(row.get("name"))):
        return StepKind.OTHER
    return kind


def is_stage(span: Span) -> bool:
    """Whether a row reports a later stage of a call that another row stands for."""
    facts = span.facts
    return (
        facts is not None
        and facts.native_kind == "GENERATION"
        and _STAGE.search(span.name) is not None
    )


def _complete_call(facts: Facts, row: Row, metadata: Row, told: Span) -> None:
    call = genai.call_facts(told)
    facts.model = first_of(row, _MODEL) or call.model
    facts.provider = call.provider or metadata.get("ls_provider")
    facts.finish = (
        call.finish or metadata.get("finish_reason") or finish_in(facts.output)
    )
    facts.response_id = call.response_id
    facts.reasoning = reasoning_in(facts.output)
    facts.usage_state = state_of(row, metadata)
    if facts.counts is not None and facts.counts.output_reasoning is None:
        told_counts, _ = genai.counts_of(told)
        facts.counts.output_reasoning = told_counts.output_reasoning
    ids = (opened_object(one).get("id") for one in opened_list(row.get("toolCalls")))
    facts.requested_ids = tuple(one for one in ids if isinstance(one, str) and one)


def _tool_call_id(metadata: Row, answer: Any) -> Any:
    return metadata.get("tool_call_id") or (
        answer.get("tool_call_id") if isinstance(answer, dict) else None
    )


def _attributes(row: Row, metadata: Row) -> dict[str, Any] | None:
    left = kept(row, _READ) or {}
    inner = metadata.get("attributes")
    told = dict(metadata)
    if isinstance(inner, dict):
        told["attributes"] = {
            key: value for key, value in inner.items() if not key.startswith(_TWICE)
        }
    if told:
        left["metadata"] = told
    return left or None
