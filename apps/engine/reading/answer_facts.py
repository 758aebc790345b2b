"""Facts of a model call that stand somewhere in the answer it recorded.

Platforms keep whatever the SDK returned, so the same fact has many places. Only keys
made for the purpose are looked for, near the top first, and nothing is guessed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

_FINISH: Final = (
    "finish_reason", "stop_reason", "finishReason", "stopReason", "done_reason",
)  # fmt: skip
_REASONING: Final = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
_RESPONSE_IDS: Final = ("chatcmpl-", "resp_", "msg_", "gen-")
_MOST_NODES: Final = 400


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a value from the top downwards, at most 400 values."""
    waiting = deque([value])
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        here = waiting.popleft()
        if isinstance(here, dict):
            yield here
            waiting.extend(here.values())
        elif isinstance(here, list):
            waiting.extend(here)


def finish_in(answer: Any) -> str | None:
    """Return the recorded reason why the model stopped; of several messages the last's."""
    if isinstance(answer, list) and answer and isinstance(answer[-1], dict):
        answer = answer[-1]
    for one in _objects(answer):
        for key in _FINISH:
            if isinstance(one.get(key), str) and one[key]:
                return str(one[key])
    return None


def reasoning_in(answer: Any) -> Any:
    """Return the recorded reasoning of an answer; a setting of that name is none."""
    for one in _objects(answer):
        for key in _REASONING:
            if isinstance(one.get(key), str) and one[key]:
                return one[key]
    return None


def response_id_in(answer: Any) -> str | None:
    """Return the id that the provider gave the answer, told by its known beginning."""
    for one in _objects(answer):
        found = one.get("id")
        if isinstance(found, str) and found.startswith(_RESPONSE_IDS):
            return found
    return None


def first_object_at(answer: Any, key: str) -> dict[str, Any] | None:
    """Return the first object at `key` that is not empty, from the top downwards."""
    for one in _objects(answer):
        if isinstance(one.get(key), dict) and one[key]:
            found: dict[str, Any] = one[key]
            return found
    return None
