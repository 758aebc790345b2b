"""What came to an agent invocation from elsewhere: other agents, stores, later users.

Only what stands before it in the trace counts as upstream, and of each other agent the
last thing that it said. A store that was read before is what it may remember.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.bodies.canonical import opened
from apps.engine.bodies.texts import said_in
from apps.engine.conduct import InvocationConduct
from apps.engine.sequences import steps_in_order
from apps.engine.trace import Step, StepKind, Trace

MOST_UPSTREAM: Final = 50
MOST_STORED: Final = 100
_STORES: Final = {StepKind.MEMORY: "memory", StepKind.RETRIEVAL: "retrieved"}


def said_before(trace: Trace, one: InvocationConduct) -> list[dict[str, Any]]:
    """What other agents said last before this one began: `agent`, `text` and `step`.

    In the order of the trace, at most the last 50. Empty for the whole system.
    """
    if one.number is None or not one.steps:
        return []
    begins = one.steps[0]
    last: dict[int, tuple[Step, str]] = {}
    for step in steps_in_order(trace):
        owner = step.invocation
        if owner is None or owner == one.number or not _is_over(step, begins):
            continue
        if not 0 <= owner < len(trace.invocations):
            continue
        text = said_in(step.body.output) if step.body is not None else ""
        if text.strip():
            last[owner] = (step, text)
    ordered = sorted(last.items(), key=lambda item: item[1][0].seq)
    return [
        {
            "agent": trace.invocations[owner].agent or "",
            "text": text,
            "step": step.seq,
        }
        for owner, (step, text) in ordered[-MOST_UPSTREAM:]
    ]


def _is_over(step: Step, begins: Step) -> bool:
    """Whether a step said something and was over when another began.

    A span of an agent stands where it began, so its answer counts by its end alone.
    """
    if step.kind is StepKind.MODEL_CALL:
        if step.end_ns is None or begins.start_ns is None:
            return step.seq < begins.seq
        return step.seq < begins.seq and step.end_ns <= begins.start_ns
    if step.kind is not StepKind.AGENT or begins.start_ns is None:
        return False
    return step.end_ns is not None and step.end_ns <= begins.start_ns


def handed_to(trace: Trace, one: InvocationConduct) -> dict[str, Any] | None:
    """The last handoff before the invocation: who handed over, and what was said.

    `None` where none is recorded, or where it began before any.
    """
    if one.number is None or not one.steps:
        return None
    begins = one.steps[0].seq
    found = None
    for step in steps_in_order(trace):
        if step.seq >= begins:
            break
        if step.kind is StepKind.HANDOFF and step.invocation != one.number:
            found = step
    if found is None:
        return None
    body = found.body
    attributes = (body.attributes if body is not None else None) or {}
    owner = found.invocation
    sender = attributes.get("from_agent")
    if not isinstance(sender, str) and owner is not None:
        is_known = 0 <= owner < len(trace.invocations)
        sender = trace.invocations[owner].agent if is_known else None
    given = None if body is None else opened(body.input)
    # Some instruments write the name of the agent that hands over where its words go.
    said = None if given == sender else given
    return {"from": sender or "", "said": said, "step": found.seq}


def stored_before(
    trace: Trace, one: InvocationConduct, first: Step | None
) -> dict[str, list[dict[str, Any]]] | None:
    """What stores gave before its first model call, `memory` and `retrieved`.

    Each entry has `name`, `asked`, `given` and `step`; at most the last 100 of a kind.
    `None` where nothing is recorded.
    """
    if not one.steps:
        return None
    end = one.steps[0].seq if first is None else first.seq
    found: dict[str, list[dict[str, Any]]] = {}
    for step in steps_in_order(trace):
        if step.seq >= end:
            break
        if step.kind in _STORES and step.body is not None:
            found.setdefault(_STORES[step.kind], []).append(
                {
                    "name": step.name or "",
                    "asked": opened(step.body.input),
                    "given": step.body.output,
                    "step": step.seq,
                }
            )
    return {kind: held[-MOST_STORED:] for kind, held in found.items()} or None


def later_words(one: InvocationConduct, first: Step | None) -> list[Any]:
    """What users said in the invocation after its first model call, in order."""
    if first is None:
        return []
    return [
        step.body.output if step.body.output is not None else step.body.input
        for step in one.steps
        if step.kind is StepKind.USER_MESSAGE
        and step.seq > first.seq
        and step.body is not None
    ]
