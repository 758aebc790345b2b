"""What a run was asked: the input by which trials of one task are found.

Two traces with the same root input are taken for trials of one task where the file
names no task. Only what the user said counts; system prompts often hold the date.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.sequences import steps_in_order
from apps.engine.trace import Step, StepKind, Trace

_USERS: Final = frozenset({"user", "human"})
_DEEPEST: Final = 6
_SHORTEST: Final = 12


def root_input(trace: Trace) -> Any:
    """Return the first thing that the user said, or what the first step was given.

    `None` where no body was kept or nothing was recorded.
    """
    steps = steps_in_order(trace)
    for step in steps:
        if step.kind is StepKind.USER_MESSAGE and step.body is not None:
            said = step.body.output if step.body.output is not None else step.body.input
            if said is not None:
                return said
    for step in steps:
        given = _given(step)
        if given is not None:
            return given
    return None


def _given(step: Step) -> Any:
    if step.body is None or step.body.input is None:
        return None
    if step.kind not in {StepKind.AGENT, StepKind.MODEL_CALL, StepKind.OTHER}:
        return None
    return next(said_by_user(step.body.input, 0), step.body.input)


def said_by_user(value: Any, depth: int) -> Iterator[Any]:
    """Yield the contents of messages of a user, wherever they stand in `value`."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        role = value.get("role", value.get("type"))
        if isinstance(role, str) and role in _USERS:
            for key in ("content", "parts", "text"):
                if value.get(key):
                    yield value[key]
                    return
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from said_by_user(item, depth + 1)


def root_input_hash(trace: Trace) -> str | None:
    """Return 16 hex digits of SHA-256 over the root input; `None` without one.

    Blanks at the ends and runs of blanks do not count. Texts of fewer than 12
    characters ("hi", "continue") begin unrelated runs and give `None`.
    """
    said = root_input(trace)
    text = said if isinstance(said, str) else json.dumps(said, sort_keys=True)
    words = " ".join(text.split())
    if said is None or len(words) < _SHORTEST:
        return None
    return hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:16]
