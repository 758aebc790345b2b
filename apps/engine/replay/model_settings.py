"""The settings that a recorded model call was asked with: temperature, limits, seed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.bodies.canonical import opened
from apps.engine.trace import Step

_NAMES: Final = {
    "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "seed": "seed",
    "max_tokens": "max_tokens", "max_completion_tokens": "max_completion_tokens",
    "max_output_tokens": "max_tokens", "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty", "parallel_tool_calls": "parallel_tool_calls",
    "tool_choice": "tool_choice", "response_format": "response_format",
    "reasoning_effort": "reasoning_effort", "stop": "stop", "stop_sequences": "stop",
}  # fmt: skip
_NUMBERS: Final = frozenset(
    {
        "temperature", "top_p", "top_k", "seed", "max_tokens", "max_completion_tokens",
        "frequency_penalty", "presence_penalty",
    }
)  # fmt: skip
_SKIPPED: Final = frozenset(
    {"messages", "contents", "tools", "output", "events", "metadata.lc_versions"}
)
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DEEPEST: Final = 4


def model_settings(call: Step | None) -> dict[str, Any]:
    """The settings of a model call under the names of chat completions.

    Sought in its attributes, then in its request; the first of a name counts. Numbers
    in texts are numbers, and a value of another kind than expected is left out.
    """
    body = None if call is None else call.body
    found: dict[str, Any] = {}
    if body is None:
        return found
    for holder in (body.attributes, body.input):
        for name, value in _settings(opened(holder), 0):
            kept = _number(value) if name in _NUMBERS else value
            if kept is not None:
                found.setdefault(name, kept)
    return found


def _settings(holder: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Named settings near the top of a value, its own before those inside of it."""
    if not isinstance(holder, dict) or depth > _DEEPEST:
        return
    inside = []
    for key, item in holder.items():
        own = _HUMP.sub("_", str(key).rpartition(".")[2]).casefold()
        if own in _NAMES:
            yield _NAMES[own], opened(item)
        elif key not in _SKIPPED and isinstance(item, dict | str):
            inside.append(item)
    for item in inside:
        yield from _settings(opened(item), depth + 1)


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
        value = int(value) if value == value // 1 and abs(value) < 2**53 else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 2**63 else None
