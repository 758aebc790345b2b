"""What several checks say in the same way about calls in order, or without one."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from apps.engine.bodies import ToolLane
from apps.engine.check import (
    Answer,
    Evidence,
    Judgement,
    Screening,
    Series,
    hash_of_inputs,
)
from apps.engine.sequences import (
    AgentCalls,
    SerialSequence,
    ToolSequence,
    recorded_calls,
)
from apps.engine.trace import OrderSource, Trace

ORDERS: Final = {
    OrderSource.TIME: "by start time",
    OrderSource.FILE: "by file position (weaker than by start time)",
}
"""What an order of steps rests on, in words."""

_SERIAL_ORDERS: Final = {
    OrderSource.TIME: "by time",
    OrderSource.FILE: "by file position (weaker: no proof that no two calls overlapped)",
}
_OWNED: Final = ("start of the agent invocation", "end of the agent invocation")
_LOOSE: Final = ("start of the trace", "end of the trace")


def not_applicable(code: str, headline: str, why: str) -> Judgement:
    """That a check cannot answer: its headline is the first sentence of the reason."""
    reason = f"{headline}. {why}".rstrip()
    return Judgement(Answer.NOT_APPLICABLE, code, headline, reason)


def evidence_of_tools(tools: ToolSequence, **more: Any) -> Evidence:
    """Where the tool calls of one owner lie; `more` are further fields of evidence."""
    return _evidence_of_owner(tools, tools.steps, more)


def evidence_of_agent(calls: AgentCalls, **more: Any) -> Evidence:
    """Where the completed model calls of one owner lie, with further fields."""
    steps = tuple([entry.step.seq for entry in calls.completed])
    return _evidence_of_owner(calls, steps, more)


def evidence_of_lane(lane: ToolLane, **more: Any) -> Evidence:
    """Where the tool calls of one lane lie; it lists those `steps` that are given."""
    return _evidence_of_owner(lane, (), {"length": len(lane.calls)} | more)


def _evidence_of_owner(
    owner: ToolSequence | AgentCalls | ToolLane,
    steps: tuple[int, ...],
    more: dict[str, Any],
) -> Evidence:
    began, ended = _LOOSE if owner.invocation is None else _OWNED
    fields: dict[str, Any] = {"length": len(steps), "steps": steps} | more
    return Evidence(
        scope=owner.scope,
        invocation=owner.invocation,
        agent=owner.agent,
        began=began,
        ended=ended,
        order=ORDERS[owner.order],
        **fields,
    )


def evidence_of_sequence(
    sequence: SerialSequence,
    *,
    known: int,
    series: Series | None,
    facts: dict[str, Any],
) -> Evidence:
    """What every answer about a serial sequence carries; `known` counts were given."""
    return Evidence(
        scope=sequence.scope,
        invocation=sequence.invocation,
        agent=sequence.agent,
        model=sequence.model,
        provider=sequence.provider,
        began=sequence.began.value,
        ended=sequence.ended.value,
        order=_SERIAL_ORDERS[sequence.order],
        length=len(sequence.steps),
        usage_known=known,
        usage_missing=len(sequence.steps) - known,
        series=series,
        steps=sequence.steps,
        facts=facts,
    )


def no_tool_calls(slug: str, why: str) -> Screening:
    """The answer about a trace without tool calls; `why` ends its one sentence."""
    said = Judgement(
        Answer.NOT_APPLICABLE,
        "no_tool_calls",
        "No tool calls recorded",
        f"The trace holds no tool call, so {why}.",
    )
    return said.with_evidence(Evidence(scope="trace", length=0), hash_of_inputs(slug))


def no_model_calls(trace: Trace, slug: str, why: str) -> Screening:
    """The answer about a trace without a completed model call.

    `why` ends the sentence about a trace in which no model call is recorded at all.
    """
    removed = Counter(
        entry.removed.value
        for calls in recorded_calls(trace).values()
        for entry in calls
        if entry.removed is not None
    )
    if removed:
        parts = ", ".join(f"{count} {why}" for why, count in removed.most_common())
        headline = "No completed model calls recorded"
        reason = f"None of the recorded model calls is a completed call ({parts})."
    else:
        headline = "No model calls recorded"
        reason = f"The trace holds no model call, so {why}."
    code = "no_completed_calls" if removed else "no_model_calls"
    facts = {"removed": dict(removed)} if removed else {}
    return Judgement(Answer.NOT_APPLICABLE, code, headline, reason).with_evidence(
        Evidence(scope="trace", length=0, facts=facts),
        hash_of_inputs(slug, sorted(removed.items())),
    )


def parallel_calls(slug: str, calls: list[SerialSequence], known: int) -> Screening:
    """The one answer about calls of an owner that overlapped each other."""
    first = calls[0]
    steps = tuple([call.steps[0] for call in calls])
    said = Judgement(
        Answer.NOT_APPLICABLE,
        "parallel",
        f"{len(calls)} calls overlapped in time: no order",
        f"{len(calls)} calls ran at the same time as another one. Without an order "
        "there is no sequence, and none is made up.",
    )
    evidence = Evidence(
        scope=f"{first.owner}, parallel calls",
        invocation=first.invocation,
        agent=first.agent,
        began=first.began.value,
        ended=calls[-1].ended.value,
        order=_SERIAL_ORDERS[first.order],
        length=len(calls),
        usage_known=known,
        usage_missing=len(calls) - known,
        steps=steps,
    )
    return said.with_evidence(
        evidence, hash_of_inputs(slug, first.owner, "parallel", steps)
    )
