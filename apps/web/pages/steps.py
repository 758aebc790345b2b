"""Steps and their texts as pages show them: one line each, texts cut and inert."""

from __future__ import annotations

import msgspec

from apps.engine.trace import (
    AgentInvocation,
    FinishReason,
    ModelCall,
    Step,
    StepKind,
    StepStatus,
)
from apps.traces.codec import StoredBody
from apps.web.pages.bodies import in_one_line, preview
from apps.web.pages.replay_words import SOURCES, StateWord
from apps.web.pages.usage import usage_in_short

ARGUMENTS = 160

ICONS = {
    StepKind.MODEL_CALL: "bot",
    StepKind.TOOL_CALL: "wrench",
    StepKind.HANDOFF: "arrow-right-left",
    StepKind.AGENT: "user-cog",
    StepKind.RETRIEVAL: "search",
    StepKind.GUARDRAIL: "shield",
    StepKind.USER_MESSAGE: "message-square",
    StepKind.SYSTEM: "settings",
    StepKind.MEMORY: "database",
    StepKind.OTHER: "circle",
}

KIND_WORDS = {
    StepKind.MODEL_CALL: "model call",
    StepKind.TOOL_CALL: "tool call",
    StepKind.HANDOFF: "handoff",
    StepKind.AGENT: "agent",
    StepKind.RETRIEVAL: "retrieval",
    StepKind.GUARDRAIL: "guardrail",
    StepKind.USER_MESSAGE: "user",
    StepKind.SYSTEM: "system",
    StepKind.MEMORY: "memory",
    StepKind.OTHER: "other",
}


class StepLine(msgspec.Struct, frozen=True):
    """One step in an outline or transcript; `stub` says what answered a tool call alone."""

    seq: int
    kind: str
    icon: str
    name: str
    agent: str
    is_error: bool
    error: str
    is_evidence: bool
    value: str
    usage: str
    finish: str
    duration_ns: int | None
    preview: str
    is_cut: bool
    asked: str
    more: str
    stub: StateWord | None = None


def _tool_name(step: Step, kept: StoredBody | None) -> str:
    if step.kind is not StepKind.TOOL_CALL or kept is None or kept.body is None:
        return step.name or ""
    return f"{step.name}({in_one_line(kept.body.input, ARGUMENTS)})"


def duration_between(start_ns: int | None, end_ns: int | None) -> int | None:
    """How long something took in nanoseconds; None where that is not recorded.

    Formats with one time a line have the same time as start and end. Nothing takes
    no time at all, so a duration of exactly 0 is taken for not recorded.
    """
    if start_ns is None or end_ns is None or start_ns == end_ns:
        return None
    return end_ns - start_ns


def step_lines(
    steps: list[Step],
    *,
    invocations: list[AgentInvocation],
    bodies: dict[int, StoredBody],
    evidence: dict[int, str],
    is_replay: bool = False,
) -> list[StepLine]:
    """Steps as lines; `evidence` gives the word shown beside an evidence step.

    In a replay tool calls say what answered them.
    """
    agents = {i.number: i.agent or "" for i in invocations}
    lines = [
        _line(step, agents.get(step.invocation or 0, ""), bodies, evidence)
        for step in steps
    ]
    if not is_replay:
        return lines
    return [
        msgspec.structs.replace(line, stub=_stub(bodies.get(line.seq)))
        for line in lines
    ]


def _stub(kept: StoredBody | None) -> StateWord | None:
    said = kept.body.attributes if kept and kept.body else None
    name = said.get("stub") if isinstance(said, dict) else None
    return SOURCES.get(name) if isinstance(name, str) else None


def _line(
    step: Step, agent: str, bodies: dict[int, StoredBody], evidence: dict[int, str]
) -> StepLine:
    kept = bodies.get(step.seq)
    text = preview(kept, step)
    call = step.call if isinstance(step.call, ModelCall) else None
    return StepLine(
        seq=step.seq,
        kind=KIND_WORDS[step.kind],
        icon=ICONS[step.kind],
        name=(call.model or "") if call else _tool_name(step, kept),
        agent=agent if step.invocation is not None else "",
        is_error=step.status is StepStatus.ERROR,
        error=(kept.error_message if kept else None) or step.error_type or "",
        is_evidence=step.seq in evidence,
        value=evidence.get(step.seq, ""),
        usage=usage_in_short(call.usage) if call else "",
        finish=(
            call.finish.value.replace("_", " ")
            if call and call.finish is not FinishReason.UNKNOWN
            else ""
        ),
        duration_ns=duration_between(step.start_ns, step.end_ns),
        preview=text.text,
        is_cut=text.is_cut,
        asked=text.asked,
        more=text.more,
    )
