"""Steps and their texts as pages show them: one line each, texts cut and inert."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.engine.trace import (
    AgentInvocation,
    FinishReason,
    ModelCall,
    Step,
    StepKind,
    StepStatus,
    Usage,
)
from apps.traces.codec import StoredBody

PREVIEW = 600
SHOWN = 64 * 1024

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


class Part(msgspec.Struct, frozen=True):
    """One text of a step: what it is, the text, whether it was cut."""

    label: str
    text: str
    is_cut: bool
    size: int


class BodyText(msgspec.Struct, frozen=True):
    """The texts of a step in reading order, and all of them as one text."""

    parts: list[Part]
    whole: str


class StepLine(msgspec.Struct, frozen=True):
    """One step in an outline or transcript."""

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
    has_more: bool


def as_text(value: Any) -> str:
    """A JSON value as people read it: strings bare, the rest as indented JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _messages(value: Any) -> str:
    """A list of chat messages as a conversation; anything else as `as_text`."""
    if not isinstance(value, list) or not value:
        return as_text(value)
    if not all(isinstance(item, dict) and "role" in item for item in value):
        return as_text(value)
    lines = []
    for item in value:
        content = item.get("content", item.get("parts"))
        rest = {k: v for k, v in item.items() if k not in {"role", "content", "parts"}}
        text = "" if content is None else as_text(content)
        more = as_text(rest) if rest else ""
        lines.append(f"{item['role']}:\n{text}{chr(10) if text and more else ''}{more}")
    return "\n\n".join(lines)


def _part(label: str, value: Any) -> Part:
    text = _messages(value)
    return Part(label, text[:SHOWN], len(text) > SHOWN, len(text))


def body_text(kept: StoredBody) -> BodyText:
    """The texts of one step, each cut at 64 kB for the page and whole for download."""
    body = kept.body
    values: list[tuple[str, Any]] = []
    if kept.error_message:
        values.append(("Error", kept.error_message))
    if body is not None:
        values += [
            ("Input", body.input),
            ("Reasoning", body.reasoning),
            ("Output", body.output),
            ("Attributes", body.attributes),
        ]
    present = [(label, value) for label, value in values if value not in (None, "", {})]
    whole = "\n\n".join(f"{label}\n{_messages(value)}" for label, value in present)
    return BodyText([_part(label, value) for label, value in present], whole)


def _usage_words(usage: Usage) -> str:
    if usage.output_total is not None:
        return f"{usage.output_total} tokens out"
    words = {
        "missing": "usage not reported",
        "zero_suspect": "usage reported as zero: not trusted",
        "aggregate_only": "usage only as an aggregate",
    }
    return words.get(usage.state.value, "output length not reported")


def _preview(kept: StoredBody | None) -> tuple[str, bool, bool]:
    """The text shown at once, whether it is cut, whether opening the step shows more."""
    if kept is None or kept.body is None:
        return "", False, False
    body = kept.body
    for value in (body.output, body.input, body.reasoning):
        if value not in (None, "", [], {}):
            text = as_text(value).strip()
            others = sum(v not in (None, "", [], {}) for v in (body.output, body.input))
            is_cut = len(text) > PREVIEW
            more = is_cut or others > 1 or bool(body.reasoning or body.attributes)
            return text[:PREVIEW], is_cut, more
    return "", False, bool(body.attributes)


def _tool_name(step: Step, kept: StoredBody | None) -> str:
    if step.kind is not StepKind.TOOL_CALL or kept is None or kept.body is None:
        return step.name or ""
    arguments = kept.body.input
    text = arguments if isinstance(arguments, str) else as_text_line(arguments)
    return f"{step.name}({text[:160]}{'…' if len(text) > 160 else ''})"


def as_text_line(value: Any) -> str:
    """A JSON value on one line; nothing for None."""
    return "" if value is None else msgspec.json.encode(value).decode()


def step_lines(
    steps: list[Step],
    *,
    invocations: list[AgentInvocation],
    bodies: dict[int, StoredBody],
    evidence: dict[int, str],
) -> list[StepLine]:
    """Steps as lines; `evidence` gives the word shown beside an evidence step."""
    agents = {i.number: i.agent or "" for i in invocations}
    return [
        _line(step, agents.get(step.invocation or 0, ""), bodies, evidence)
        for step in steps
    ]


def _line(
    step: Step, agent: str, bodies: dict[int, StoredBody], evidence: dict[int, str]
) -> StepLine:
    kept = bodies.get(step.seq)
    preview, is_cut, has_more = _preview(kept)
    call = step.call if isinstance(step.call, ModelCall) else None
    timed = step.start_ns is not None and step.end_ns is not None
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
        usage=_usage_words(call.usage) if call else "",
        finish=(
            call.finish.value.replace("_", " ")
            if call and call.finish is not FinishReason.UNKNOWN
            else ""
        ),
        duration_ns=(step.end_ns or 0) - (step.start_ns or 0) if timed else None,
        preview=preview,
        is_cut=is_cut,
        has_more=has_more,
    )
