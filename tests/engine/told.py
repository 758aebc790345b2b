"""Small traces with bodies for the tests of checks that read them."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.engine.trace import (
    Body,
    FinishReason,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
)
from tests.engine.traces import trace_of


def user(seq: int, text: str) -> Step:
    return Step(seq=seq, kind=StepKind.USER_MESSAGE, invocation=0, body=said(text))


def system(seq: int, text: str) -> Step:
    return Step(seq=seq, kind=StepKind.SYSTEM, invocation=0, body=said(text))


def answer(
    seq: int,
    output: Any = "Done.",
    *,
    finish: FinishReason = FinishReason.UNKNOWN,
    body: dict[str, Any] | None = None,
    **step: Any,
) -> Step:
    """A model call; `output=None` is a call of which no answer was kept."""
    fields: dict[str, Any] = {"invocation": 0} | step
    held = {"output": output} | (body or {})
    kept = None if all(item is None for item in held.values()) else Body(**held)
    call = ModelCall(finish=finish)
    return Step(seq=seq, kind=StepKind.MODEL_CALL, call=call, body=kept, **fields)


def used(
    seq: int,
    name: str,
    arguments: Any = None,
    result: Any = None,
    *,
    by: int | None = None,
    call_id: str | None = None,
    **step: Any,
) -> Step:
    """A tool call with its arguments and its result."""
    fields: dict[str, Any] = {"invocation": 0} | step
    is_kept = arguments is not None or result is not None
    return Step(
        seq=seq,
        kind=StepKind.TOOL_CALL,
        call=ToolCall(name=name, call_id=call_id, requested_by=by),
        body=Body(input=arguments, output=result) if is_kept else None,
        **fields,
    )


def said(text: Any) -> Body:
    return Body(output=text)


def told(*steps: Step, **fields: Any) -> Trace:
    """A trace in the order of its file, with one agent."""
    return trace_of(*steps, **({"order": OrderSource.FILE} | fields))


def without_bodies(trace: Trace) -> Trace:
    """The trace as a project keeps it that stores structure only."""
    bare = [msgspec.structs.replace(step, body=None) for step in trace.steps]
    return msgspec.structs.replace(trace, steps=tuple(bare))


def failed(step: Step) -> Step:
    return msgspec.structs.replace(step, status=StepStatus.ERROR)


def turned_round(trace: Trace) -> Trace:
    """The same steps, held in the opposite order."""
    return msgspec.structs.replace(trace, steps=trace.steps[::-1])
