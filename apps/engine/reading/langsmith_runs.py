"""Runs of LangSmith made into spans: kinds, usage, errors, and the agents they name.

The counts beside a run are the server's; those in its metadata and its outputs are
what the model's API said. `session_id` of a run is its project; the conversation is in
the metadata.
Source: https://docs.langchain.com/langsmith/run-data-format
"""

from __future__ import annotations

import re
from typing import Any, Final

from apps.engine.reading.answer_facts import (
    finish_in,
    first_object_at,
    reasoning_in,
    response_id_in,
)
from apps.engine.reading.platform_rows import (
    Placed,
    Row,
    kept,
    opened,
    opened_object,
    reported,
    row_id,
    span_of_row,
    task_in,
    trace_wide,
)
from apps.engine.reading.recorded import first_of
from apps.engine.reading.recorded_verdicts import first_verdict
from apps.engine.reading.span_marks import graph_hints
from apps.engine.reading.spans import Facts, Span, TraceFacts
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.reading.unique_ids import is_unique
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import StepKind, UsageState

KINDS: Final = {
    "llm": StepKind.MODEL_CALL,
    "tool": StepKind.TOOL_CALL,
    "retriever": StepKind.RETRIEVAL,
}
_AGENTS: Final = frozenset({"AgentExecutor"})
_THREADS: Final = ("thread_id", "session_id", "conversation_id")
_SEGMENT: Final = re.compile(
    r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{0,9})Z([0-9a-fA-F-]{32,36})"
)
_RAISED: Final = re.compile(r"([A-Za-z_][\w.]*)(?:\(|:|$)")
_TRACEBACK: Final = "Traceback (most recent call last)"
# LangGraph raises these to hand over or to ask a person: they are no failures.
_CONTROL: Final = ("GraphInterrupt", "NodeInterrupt", "ParentCommand", "GraphBubbleUp")
_READ: Final = frozenset(
    {
        "id", "name", "run_type", "start_time", "end_time", "error", "inputs",
        "outputs", "parent_run_id", "parent_run_ids", "trace_id", "dotted_order",
        "extra", "serialized", "events", "child_runs", "child_run_ids", "status",
        "prompt_tokens", "completion_tokens", "total_tokens", "prompt_token_details",
        "completion_token_details", "session_id", "feedback_stats", "manifest_id",
        "direct_child_run_ids", "app_path", "inputs_preview", "outputs_preview",
        "reference_example_id", "tenant_id", "manifest_s3_id",
    }
)  # fmt: skip
INTERRUPTED: Final = "interrupted"


def segments(run: Row) -> list[tuple[str, str]]:
    """Return (time, id) of the run and all above it, from its dotted order."""
    order = run.get("dotted_order")
    if not isinstance(order, str):
        return []
    found = (_SEGMENT.fullmatch(part) for part in order.split("."))
    return [
        (
            "{}-{}-{}T{}:{}:{}.{}Z".format(*one.groups()[:6], one.group(7) or "0"),
            one.group(8),
        )
        for one in found
        if one
    ]


def span_of_run(run: Row, trace_id: str, span_id: str) -> Span:
    """Return the span of a run whose trace is known."""
    extra = opened_object(run.get("extra"))
    metadata = opened_object(extra.get("metadata")) or opened_object(
        run.get("metadata")
    )
    path = segments(run)
    kind = str(run.get("run_type"))
    name = run.get("name")
    is_agent = isinstance(name, str) and name in _AGENTS and kind == "chain"
    outputs = opened(run.get("outputs")) or None
    error_type, message, control = _error(run.get("error"))
    placed = Placed(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_parent_of(run, path, trace_id, span_id),
        name=name,
        start=first_of(run, ("start_time",)) or (path[-1][0] if path else None),
        end=run.get("end_time"),
        failed=None if control else _failed(run, outputs),
        message=message or _tool_error(outputs),
        attributes=graph_hints(metadata)
        | trace_wide(metadata, first_of(metadata, _THREADS)),
    )
    facts = Facts(
        kind=StepKind.AGENT if is_agent else KINDS.get(kind, StepKind.OTHER),
        native_kind=kind if kind != "None" else None,
        agent=name if is_agent else None,
        input=opened(run.get("inputs")) or None,
        output=outputs,
        attributes=_attributes(run, extra, metadata, control=control),
        error_type=error_type,
    )
    if facts.kind is StepKind.MODEL_CALL:
        _complete_call(facts, run, extra, metadata)
    elif facts.kind is StepKind.TOOL_CALL:
        _complete_tool(facts, run, extra, metadata)
    else:
        facts.counts = _beside(run)
    return span_of_row(placed, facts)


def _parent_of(
    run: Row, path: list[tuple[str, str]], trace_id: str, span_id: str
) -> str | None:
    told = row_id(run.get("parent_run_id"))
    if told is None and len(path) > 1:
        told = path[-2][1]
    return told if told != span_id or told == trace_id else None


def _error(error: Any) -> tuple[str | None, str | None, bool]:
    """Return type and message of an error text, and whether it only steers a graph."""
    if not isinstance(error, str) or not error.strip():
        return None, None, False
    message = error.split(_TRACEBACK, 1)[0].strip() or error.strip()
    raised = _RAISED.match(message)
    name = raised.group(1) if raised else None
    return name, message, name in _CONTROL


def _failed(run: Row, outputs: Any) -> bool | None:
    if run.get("error") or run.get("status") == "error" or _tool_error(outputs):
        return True
    return False if run.get("status") == "success" else None


def _tool_message(outputs: Any) -> Row:
    """Return the message that a LangChain tool gave back, or nothing."""
    found = outputs.get("output") if isinstance(outputs, dict) else None
    if isinstance(found, dict) and isinstance(found.get("kwargs"), dict):
        found = found["kwargs"]
    return found if isinstance(found, dict) else {}


def _tool_error(outputs: Any) -> str | None:
    message = _tool_message(outputs)
    if message.get("type") != "tool" or message.get("status") != "error":
        return None
    return str(message.get("content"))[:1000]


def _attributes(
    run: Row, extra: Row, metadata: Row, *, control: bool
) -> dict[str, Any] | None:
    left = kept(run, _READ) or {}
    if metadata:
        left["metadata"] = metadata
    parameters = extra.get("invocation_params")
    if isinstance(parameters, dict) and parameters:
        left["invocation_params"] = parameters
    if control:
        left[INTERRUPTED] = run.get("error")
    return left or None


def _complete_tool(facts: Facts, run: Row, extra: Row, metadata: Row) -> None:
    facts.tool = run.get("name")
    facts.call_id = (
        extra.get("tool_call_id")
        or metadata.get("tool_call_id")
        or _tool_message(facts.output).get("tool_call_id")
    )


def _complete_call(facts: Facts, run: Row, extra: Row, metadata: Row) -> None:
    parameters = opened_object(extra.get("invocation_params"))
    answer = facts.output
    facts.model = first_of(metadata, ("ls_model_name",)) or first_of(
        parameters, ("model", "model_name", "azure_deployment")
    )
    facts.provider = metadata.get("ls_provider")
    facts.finish = finish_in(answer)
    facts.response_id = response_id_in(answer)
    facts.reasoning = reasoning_in(answer)
    facts.counts, facts.usage_state = _usage(run, metadata, answer)


def _beside(run: Row) -> Counts | None:
    """Return the counts that stand beside a run, where they are not all zero."""
    details = opened_object(run.get("prompt_token_details"))
    counts = Counts(
        input_total=whole_number(run.get("prompt_tokens")),
        input_cached=whole_number(details.get("cache_read")),
        input_cache_write=whole_number(details.get("cache_creation")),
        output_total=whole_number(run.get("completion_tokens")),
        output_reasoning=whole_number(
            opened_object(run.get("completion_token_details")).get("reasoning")
        ),
        total=whole_number(run.get("total_tokens")),
        source="completion_tokens",
    )
    return counts if counts.output_total or counts.input_total else None


def _usage(
    run: Row, metadata: Row, answer: Any
) -> tuple[Counts | None, UsageState | None]:
    """Return the counts of a model run, and that they are the server's estimate.

    LangSmith counts tokens itself where an SDK sent none; that shows when the answer
    is recorded and nothing in it or in the metadata speaks of usage.
    """
    own = _recorded(metadata, answer)
    beside = _beside(run)
    if beside is None:
        return own or _zeros(run), None
    is_estimate = own is None and bool(answer)
    return beside, UsageState.VENDOR_ESTIMATE if is_estimate else None


def _recorded(metadata: Row, answer: Any) -> Counts | None:
    places = (
        (metadata.get("usage_metadata"), "extra.metadata.usage_metadata"),
        (first_object_at(answer, "usage_metadata"), "outputs.usage_metadata"),
        (first_object_at(answer, "token_usage"), "outputs.token_usage"),
        (first_object_at(answer, "usage"), "outputs.usage"),
    )
    found = (reported(usage_counts(usage, source)) for usage, source in places)
    return next((counts for counts in found if counts is not None), None)


def _zeros(run: Row) -> Counts | None:
    """Return zeros that were recorded, which mean that nothing was."""
    return reported(
        Counts(
            input_total=whole_number(run.get("prompt_tokens")),
            output_total=whole_number(run.get("completion_tokens")),
            total=whole_number(run.get("total_tokens")),
        )
    )


def facts_of_root(run: Row, trace_id: str) -> TraceFacts:
    """Return what the root run of a trace says of the whole trace."""
    extra = opened_object(run.get("extra"))
    metadata = dict(opened_object(extra.get("metadata")))
    for key in ("tags", "session_name"):
        if run.get(key):
            metadata[key] = run[key]
    if run.get("session_id"):
        metadata["project_id"] = run["session_id"]
    feedback = opened_object(run.get("feedback_stats"))
    return TraceFacts(
        name=run.get("name"),
        session=first_of(metadata, _THREADS),
        task=task_in(metadata) or run.get("reference_example_id"),
        outcome=first_verdict(_means(feedback), "feedback_stats"),
        metadata=metadata,
        labels={"feedback_stats": feedback} if feedback else {},
        is_id_unique=is_unique(trace_id),
    )


def _means(feedback: Row) -> list[tuple[str, Any]]:
    """Return the value of each feedback that was given once."""
    return [
        (key, stats.get("avg"))
        for key, stats in feedback.items()
        if isinstance(stats, dict) and stats.get("n") == 1
    ]
