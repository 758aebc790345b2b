"""Reads bytes the way the product does, and counts what came out."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

from apps.engine.format import Item, Note, Opened, Rejected, UnreadableTrace
from apps.engine.formats import detect, open_source, read_file
from apps.engine.trace import Step, StepKind, StepStatus, Trace, UsageState


def items_of(data: bytes, slug: str | None = None, **options: Any) -> list[Item]:
    """Everything that a reader yields for `data`; raises as the product would."""
    items = read_file(io.BytesIO(data), format_override=slug or "", **options)
    return [item for item in items if not isinstance(item, Opened)]


def traces_of(data: bytes, slug: str | None = None) -> list[Trace]:
    return [item for item in items_of(data, slug) if isinstance(item, Trace)]


def rejected_of(items: Iterable[Item]) -> list[Rejected]:
    return [item for item in items if isinstance(item, Rejected)]


def notes_of(items: Iterable[Item]) -> dict[str, Note]:
    return {item.code: item for item in items if isinstance(item, Note)}


def refusal_of(data: bytes, slug: str | None = None, **options: Any) -> str:
    """The sentence with which `data` is refused; fails when it is read."""
    try:
        items_of(data, slug, **options)
    except UnreadableTrace as refusal:
        return str(refusal)
    raise AssertionError("The file was read, though it should have been refused.")


def slug_of(data: bytes) -> str | None:
    """The format that is recognised in `data`, `None` where none is."""
    found = detect(open_source(io.BytesIO(data)))
    return found.slug if found else None


def counts_of(traces: list[Trace]) -> dict[str, int]:
    """The counts of the index. It counts a handoff as a tool call, and a tool that
    failed twice: as a failed span and as a failed tool call."""
    steps = [step for trace in traces for step in trace.steps]
    calls = [step.call for step in steps if step.kind is StepKind.MODEL_CALL]
    tools = [
        step for step in steps if step.kind in {StepKind.TOOL_CALL, StepKind.HANDOFF}
    ]
    states = [call.usage.state for call in calls]
    return {
        "n_traces": len(traces),
        "model_calls": len(calls),
        "tool_calls": len(tools),
        "usage_known": sum(
            state in {UsageState.REPORTED, UsageState.PARTIAL} for state in states
        ),
        "usage_missing": states.count(UsageState.MISSING),
        "usage_zero": states.count(UsageState.ZERO_SUSPECT),
        "errors": _failed(steps) + _failed(tools),
    }


def _failed(steps: list[Step]) -> int:
    return sum(step.status is StepStatus.ERROR for step in steps)


def messages(*contents: str) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [
        {"role": roles[index % 2], "content": content}
        for index, content in enumerate(contents)
    ]


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def lines(*values: Any) -> bytes:
    return b"".join(as_json(value) + b"\n" for value in values)
