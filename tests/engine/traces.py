"""Small traces for the tests of the engine, written as what happened in them."""

from __future__ import annotations

from typing import Any

from apps.engine.trace import (
    AgentInvocation,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
    ToolCall,
    Trace,
    Usage,
    UsageState,
)

SECOND = 1_000_000_000


def used(output: int | None, input_total: int | None = None) -> Usage:
    if output is None:
        return Usage()
    return Usage(
        state=UsageState.REPORTED, output_total=output, input_total=input_total
    )


def call(
    seq: int,
    output: int | None = 100,
    *,
    start: float | None = None,
    end: float | None = None,
    step: dict[str, Any] | None = None,
    **facts: Any,
) -> Step:
    """A model call; without `start` it fills the second that its place names."""
    begin = seq if start is None else start
    facts = {"model": "m", "provider": "p", "usage": used(output)} | facts
    fields: dict[str, Any] = {
        "invocation": 0,
        "start_ns": int(begin * SECOND),
        "end_ns": int((begin + 0.5 if end is None else end) * SECOND),
    } | (step or {})
    return Step(seq=seq, kind=StepKind.MODEL_CALL, call=ModelCall(**facts), **fields)


def tool(seq: int, name: str, **step: Any) -> Step:
    fields: dict[str, Any] = {
        "start_ns": seq * SECOND,
        "end_ns": seq * SECOND + SECOND // 2,
    } | step
    return Step(seq=seq, kind=StepKind.TOOL_CALL, call=ToolCall(name=name), **fields)


def trace_of(*steps: Step, agents: tuple[str, ...] = ("billing",), **fields) -> Trace:
    invocations = tuple(
        AgentInvocation(number=number, agent=agent)
        for number, agent in enumerate(agents)
    )
    return Trace(name="t", steps=steps, invocations=invocations, **fields)


def outputs_trace(*outputs: int | None, **fields) -> Trace:
    """One agent that answers with these output lengths, one call after another."""
    steps = [call(seq, output) for seq, output in enumerate(outputs)]
    return trace_of(*steps, **fields)


def tools_trace(*names: str, **fields) -> Trace:
    fields = {"agents": (), "order": OrderSource.FILE} | fields
    return trace_of(*[tool(seq, name) for seq, name in enumerate(names)], **fields)
