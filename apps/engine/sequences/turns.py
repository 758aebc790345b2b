"""Which agent acted when, and where one is recorded to have handed over to another."""

from __future__ import annotations

from typing import Final

import msgspec

from apps.engine.sequences.owners import order_of, start_and_seq
from apps.engine.trace import OrderSource, Step, StepKind, StepStatus, Trace, Via

_ACTS: Final = frozenset(
    {StepKind.MODEL_CALL, StepKind.TOOL_CALL, StepKind.HANDOFF, StepKind.RETRIEVAL}
)
_TOOLS: Final = frozenset({StepKind.TOOL_CALL, StepKind.RETRIEVAL})


class Turn(msgspec.Struct):
    """Acts of one agent without another one in between.

    `agent` is `None` where the file names none. `by_handoff` says that the agent
    before is recorded to have handed over to this one, `handed_over_at` the step that
    shows it (else the first of the turn), `tool_calls` how many it made (retrievals
    counted, handoffs not). A word of the user ends a turn.
    """

    agent: str | None
    handed_over_at: int
    by_handoff: bool = False
    tool_calls: int = 0
    hands_over: int | None = None


def has_handoffs(trace: Trace) -> bool:
    """Whether any handoff is recorded, as a step or as the way an agent came to act."""
    return any(one.via is Via.HANDOFF for one in trace.invocations) or any(
        step.kind is StepKind.HANDOFF for step in trace.steps
    )


def turns_of(trace: Trace) -> tuple[tuple[Turn, ...], OrderSource]:
    """The turns of `trace` in order, and what that order rests on.

    A turn came by handoff if the turn before holds a handoff step that did not fail,
    or if it begins with the first act of an invocation that began by handoff. Which
    agent was meant is not read from names of steps: the agent that acted next counts.
    Steps in any order give the same answer. Never raises.
    """
    acts = [
        step
        for step in trace.steps
        if step.kind in _ACTS or step.kind is StepKind.USER_MESSAGE
    ]
    order = order_of(trace, acts)
    acts.sort(key=start_and_seq if order is OrderSource.TIME else _seq)
    turns: list[Turn] = []
    seen: set[int] = set()
    is_cut = True
    for step in acts:
        if step.kind is StepKind.USER_MESSAGE:
            is_cut = True
            continue
        agent = _agent(trace, step)
        if is_cut or turns[-1].agent != agent:
            before = None if is_cut else turns[-1]
            turns.append(_turn(trace, step, agent, before, seen))
        is_cut = False
        _take(turns[-1], step)
        if step.invocation is not None:
            seen.add(step.invocation)
    return tuple(turns), order


def _turn(
    trace: Trace, step: Step, agent: str | None, before: Turn | None, seen: set[int]
) -> Turn:
    turn = Turn(agent=agent, handed_over_at=step.seq)
    if before is None or agent is None or before.agent is None:
        return turn
    if before.hands_over is not None:
        turn.by_handoff, turn.handed_over_at = True, before.hands_over
    elif step.invocation is not None and step.invocation not in seen:
        turn.by_handoff = trace.invocations[step.invocation].via is Via.HANDOFF
    return turn


def _take(turn: Turn, step: Step) -> None:
    turn.tool_calls += step.kind in _TOOLS
    if step.kind is StepKind.HANDOFF and step.status is not StepStatus.ERROR:
        turn.hands_over = step.seq


def _agent(trace: Trace, step: Step) -> str | None:
    number = step.invocation
    if number is None or not 0 <= number < len(trace.invocations):
        return None
    return trace.invocations[number].agent


def _seq(step: Step) -> int:
    return step.seq
