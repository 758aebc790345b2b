"""The texts inside a JSON value, and the words a model said in an answer.

Answers come in the shapes of all vendors. What is said stands under a few names;
reasoning, requested tools, usage and the like stand beside it and are not said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.bodies.canonical import opened

_DEEPEST: Final = 40
MOST_TEXT: Final = 65_536
"""Characters of text that one derivation reads of one trace, unless it says more."""

_SAID: Final = (
    "content", "text", "parts", "message", "messages", "choices", "output",
    "output_text", "generations", "response", "candidates", "kwargs", "data", "answer",
)  # fmt: skip
_NOT_SAID: Final = frozenset(
    {
        "thinking", "reasoning", "redacted_thinking", "tool_call", "tool_use",
        "function_call", "tool-call", "toolCall", "thought", "tool_result",
        "tool_call_response", "human", "system",
    }
)  # fmt: skip
_IMAGES: Final = frozenset(
    {
        "image", "image_url", "input_image", "input_audio", "audio", "video", "document",
        "file", "input_file", "screenshot", "blob", "computer_screenshot",
    }
)  # fmt: skip
_OTHERS: Final = frozenset({"user", "human", "system", "developer", "tool", "function"})
_FRAME: Final = frozenset(
    {
        "role", "type", "id", "finish_reason", "index", "logprobs", "refusal", "name",
        "tool_calls", "toolCalls", "function_call", "reasoning", "reasoning_content",
        "usage", "usage_metadata", "response_metadata", "additional_kwargs", "model",
        "annotations", "audio", "status", "thinking", "lc", "tool_call_id",
        "invalid_tool_calls", "created", "object", "stop_reason", "stop_sequence",
    }
)  # fmt: skip


def texts_of(value: Any, most: int = MOST_TEXT) -> Iterator[str]:
    """Yield every text of a JSON value that holds no JSON itself, numbers as texts.

    Names of fields are not texts of the value. Stops after `most` characters.
    """
    left = most
    for text in _leaves(value, 0):
        if left <= 0:
            return
        yield text[:left]
        left -= len(text)


def _leaves(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        value = opened(value)
        if isinstance(value, str):
            yield value
            return
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield repr(value)


def holds_images(value: Any) -> bool:
    """Whether a value has parts that are no text: an image, a sound, a file."""
    return _has_kind(value, 0)


def _has_kind(value: Any, depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    if isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and kind in _IMAGES:
            return True
        return any(_has_kind(item, depth + 1) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_has_kind(item, depth + 1) for item in value)
    return False


def said_in(output: Any) -> str:
    """The words of an answer as one text; empty where nothing was said.

    An object of an unknown shape counts as said with all its texts: it is an answer
    of a structure that somebody asked for.
    """
    return "\n".join(text for text in _said(output, 0) if text and not text.isspace())


def _said(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth > _DEEPEST:
        return
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _said(item, depth + 1)
    elif isinstance(value, dict):
        yield from _said_in_object(value, depth)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield repr(value)


def _said_in_object(value: dict[str, Any], depth: int) -> Iterator[str]:
    if _is_of_others(value):
        return
    found = [key for key in _SAID if value.get(key) is not None]
    # A generation of LangChain holds its text twice, the second time as a message.
    if "text" in found and "message" in found and value["text"]:
        found.remove("message")
    if found:
        for key in found:
            yield from _said(value[key], depth + 1)
    elif not _FRAME.issuperset(value):
        for key, item in value.items():
            if key not in _FRAME:
                yield from _said(item, depth + 1)


def _is_of_others(value: dict[str, Any]) -> bool:
    """Whether an object is reasoning, a request for a tool, or somebody else's words."""
    kind, role = value.get("type"), value.get("role")
    return (
        (isinstance(kind, str) and kind in _NOT_SAID)
        or (isinstance(role, str) and role in _OTHERS)
        or "tool.name" in value
    )
