"""Writing a trace in Evalsite's own format, so that reading it gives it back."""

from __future__ import annotations

import json
from typing import Any, Final

from apps.engine.formats.evalsite_jsonl import VERSION
from apps.engine.trace import (
    AgentInvocation,
    ModelCall,
    Outcome,
    Step,
    ToolCall,
    Trace,
    Usage,
)


def dump(trace: Trace) -> bytes:
    """Return one line of UTF-8 JSON, with its newline, that reads back as `trace`.

    What is not recorded is left out. Texts beyond the reader's limits come back cut.
    """
    record = {
        "evalsite": VERSION,
        "trace": _recorded(
            name=trace.name,
            id=trace.native_id,
            session=trace.session,
            task=trace.task,
            trial=trace.trial,
            start_ns=trace.start_ns,
            end_ns=trace.end_ns,
            order=trace.order.value,
            outcome=_outcome(trace.outcome),
            metadata=trace.metadata or None,
            labels=trace.labels or None,
            notes=list(trace.notes) or None,
        ),
        "agents": [_agent(one) for one in trace.invocations],
        "steps": [_step(one) for one in trace.steps],
    }
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return line.encode() + b"\n"


def _recorded(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _outcome(outcome: Outcome) -> dict[str, Any] | None:
    if outcome == Outcome():
        return None
    return _recorded(
        kind=outcome.kind.value,
        score=outcome.score,
        out_of=outcome.out_of,
        label=outcome.label,
        source=outcome.source,
    )


def _agent(one: AgentInvocation) -> dict[str, Any]:
    return _recorded(
        id=str(one.number),
        name=one.agent,
        parent=None if one.parent is None else str(one.parent),
        via=one.via.value,
        start_ns=one.start_ns,
        end_ns=one.end_ns,
        status=one.status.value,
        native_id=one.native_id,
    )


def _step(step: Step) -> dict[str, Any]:
    fields = _recorded(
        kind=step.kind.value,
        invocation=None if step.invocation is None else str(step.invocation),
        parent=step.parent,
        name=step.name,
        start_ns=step.start_ns,
        end_ns=step.end_ns,
        status=step.status.value,
        error=_recorded(type=step.error_type, message=step.error_message) or None,
        id=step.native_id,
        native_kind=step.native_kind,
    )
    if step.body is not None:
        fields |= _recorded(
            input=step.body.input,
            output=step.body.output,
            reasoning=step.body.reasoning,
            attributes=step.body.attributes,
        )
    if isinstance(step.call, ModelCall):
        fields |= _model_call(step.call)
    elif isinstance(step.call, ToolCall):
        fields |= _tool_call(step.call)
    return fields


def _tool_call(call: ToolCall) -> dict[str, Any]:
    return _recorded(
        tool=call.name, call_id=call.call_id, requested_by=call.requested_by
    )


def _model_call(call: ModelCall) -> dict[str, Any]:
    return _recorded(
        provider=call.provider,
        model=call.model,
        finish=call.finish.value,
        finish_raw=call.finish_raw,
        usage=_usage(call.usage),
        response_id=call.response_id,
        conversation=call.conversation,
        retry_of=call.retry_of,
        placeholder=call.is_placeholder or None,
        resets_context=call.resets_context or None,
        tool_call_ids=list(call.tool_call_ids) or None,
    )


_COUNTS: Final = (
    ("input", "input_total"),
    ("cached", "input_cached"),
    ("cache_write", "input_cache_write"),
    ("output", "output_total"),
    ("reasoning", "output_reasoning"),
    ("total", "total"),
    ("source", "source"),
)


def _usage(usage: Usage) -> dict[str, Any]:
    counts = {key: getattr(usage, name) for key, name in _COUNTS}
    return _recorded(state=usage.state.value, **counts)
