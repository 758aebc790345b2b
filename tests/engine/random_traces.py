"""Any trace that a reader could make: agents, tools, statuses, bodies, holes in all."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from apps.engine.trace import (
    AgentInvocation,
    Body,
    FinishReason,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Usage,
    UsageState,
    Via,
)
from tests.engine.traces import SECOND

TOOLS = ("get_order", "send_email", "bash", "get_order", "update_order", "think")
OTHER_KINDS = (
    StepKind.HANDOFF,
    StepKind.USER_MESSAGE,
    StepKind.AGENT,
    StepKind.RETRIEVAL,
    StepKind.OTHER,
)

small_json = st.sampled_from(
    [
        None,
        {},
        {"id": 7},
        {"id": "7", "note": "ä"},
        "Error: no such order",
        "paid 42",
        [1],
    ]
)
counts = st.sampled_from([None, -3, 0, 1, 40, 60, 100, 2**70])


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    return Usage(
        state=draw(st.sampled_from(list(UsageState))),
        input_total=draw(counts),
        output_total=draw(counts),
    )


@st.composite
def calls(draw: st.DrawFn, seq: int, kind: StepKind) -> ModelCall | ToolCall | None:
    """What was called by a step of `kind`; often the same, so that it repeats."""
    if kind is StepKind.TOOL_CALL:
        return ToolCall(
            name=draw(st.sampled_from(TOOLS)),
            call_id=draw(st.sampled_from([None, None, "c1", "c2"])),
            requested_by=draw(st.sampled_from([None, seq - 1])),
        )
    if kind is not StepKind.MODEL_CALL:
        return None
    return ModelCall(
        model=draw(st.sampled_from([None, "m", "m", "m", "n"])),
        finish=draw(st.sampled_from(list(FinishReason))),
        usage=draw(usages()),
        response_id=draw(st.sampled_from([None, None, None, "r1"])),
        retry_of=draw(st.sampled_from([None, None, None, seq - 1, seq - 2])),
        is_placeholder=draw(st.integers(0, 9)) == 0,
        resets_context=draw(st.integers(0, 9)) == 0,
    )


@st.composite
def steps_at(draw: st.DrawFn, seq: int, agents: int) -> Step:
    """One step at its place; times may overlap, stand in any order or be missing."""
    kind = draw(
        st.sampled_from(
            [StepKind.MODEL_CALL] * 4 + [StepKind.TOOL_CALL] * 5 + list(OTHER_KINDS)
        )
    )
    start = draw(st.integers(-2, 40))
    length = draw(st.sampled_from([None, 0, 1, 1, 1, 9]))
    is_timed = draw(st.integers(0, 19)) > 0
    return Step(
        seq=seq,
        kind=kind,
        invocation=draw(st.sampled_from([None, *range(agents)])),
        # Its own parent, or one that comes after it: parents in a circle.
        parent=draw(
            st.sampled_from([None, None, max(seq - 1, 0), seq, seq + 1, 9_999])
        ),
        name=draw(st.sampled_from([None, "handoff to b"])),
        start_ns=start * SECOND if is_timed else None,
        end_ns=None if length is None else (start + length) * SECOND,
        status=draw(st.sampled_from(list(StepStatus))),
        error_type=draw(st.sampled_from([None, None, "timeout"])),
        call=draw(calls(seq, kind)),
        body=draw(st.none() | st.builds(Body, input=small_json, output=small_json)),
    )


@st.composite
def traces(draw: st.DrawFn, most_steps: int = 24) -> Trace:
    """A trace of up to `most_steps` steps by up to 3 agent invocations."""
    agents = draw(st.integers(0, 3))
    size = draw(st.integers(0, most_steps))
    invocations = [
        AgentInvocation(
            number=number,
            agent=draw(st.sampled_from([None, "a", "b"])),
            via=draw(st.sampled_from(list(Via))),
        )
        for number in range(agents)
    ]
    return Trace(
        name="any",
        steps=tuple([draw(steps_at(seq, agents)) for seq in range(size)]),
        invocations=tuple(invocations),
        order=draw(st.sampled_from(list(OrderSource))),
    )


def shuffled(trace: Trace, source: Any) -> Trace:
    """The same trace, its steps held in another order."""
    steps = list(trace.steps)
    source.shuffle(steps)
    return msgspec.structs.replace(trace, steps=tuple(steps))
