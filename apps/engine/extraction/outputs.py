"""The answer inside a recorded output: a JSON value, or else a text.

Outputs come in the messages of all vendors, with JSON in texts and in fences. What is
a message is opened; an object of any other shape is taken for an answer of a structure
that somebody asked for.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from apps.engine.bodies.canonical import opened
from apps.engine.bodies.texts import said_in, texts_of

MOST_TEXT: Final = 65_536
"""Characters of an answer that are read, from its end."""

_DEEPEST: Final = 12
_FENCE: Final = re.compile(
    r"```[ \t]{0,4}(?:json|JSON)?[ \t]{0,4}\r?\n(.*?)\r?\n?[ \t]{0,8}```", re.DOTALL
)
_THOUGHTS: Final = ("think", "thinking", "reasoning", "scratchpad")
_ROLES: Final = frozenset(
    {
        "assistant", "ai", "model", "user", "human", "system", "developer", "tool",
        "function",
    }
)  # fmt: skip
_MESSAGES: Final = frozenset(
    {
        "message", "ai", "human", "system", "tool", "constructor", "AIMessage",
        "AIMessageChunk", "HumanMessage", "ToolMessage", "SystemMessage", "reasoning",
        "function_call", "function_call_output",
    }
)  # fmt: skip
_PARTS: Final = frozenset(
    {
        "text", "output_text", "thinking", "tool_use", "tool_call", "redacted_thinking",
        "image", "image_url",
    }
)  # fmt: skip
_CONTENT: Final = (
    "content",
    "contents",
    "parts",
    "text",
    "tool_calls",
    "data",
    "kwargs",
)
_LISTS: Final = ("messages", "choices", "candidates", "generations")
_WRAPS: Final = (
    "final_output", "output", "result", "response", "completion", "message", "content",
    "text", "output_text", "generated_text", "raw", "contents", "parts",
)  # fmt: skip
_GENAI_PART: Final = frozenset({"text", "function_call", "function_response"})
_CREWAI: Final = frozenset({"raw", "pydantic", "json_dict"})
_BESIDE: Final = frozenset(
    {
        "input", "inputs", "question", "query", "chat_history", "intermediate_steps",
        "role", "type", "id", "finish_reason", "index", "logprobs", "refusal",
        "tool_calls", "usage", "usage_metadata", "token_usage", "response_metadata",
        "model", "created", "object", "stop_reason", "additional_kwargs", "author",
    }
)  # fmt: skip


class Given(msgspec.Struct, frozen=True):
    """What an agent gave back.

    `value` is the JSON value; `None` where the answer is a text or nothing. `text` is
    all that it says, at most 65,536 characters. `way` says in what the value stood.
    """

    value: Any
    text: str
    way: str

    @property
    def is_text(self) -> bool:
        """Whether it is a text and holds no JSON value."""
        return self.value is None and bool(self.text)


def given_in(output: Any) -> Given:
    """The answer in a recorded output. Never raises for a JSON value."""
    inner = _unwrapped(output, 0)
    if isinstance(inner, _Text):
        return _of_text(inner.text)
    if inner is None:
        return Given(None, "", "")
    words = "\n".join(texts_of(inner, MOST_TEXT))
    return Given(inner, words, "the output")


class _Text(msgspec.Struct, frozen=True):
    """The words of a message, which may hold JSON."""

    text: str


def _of_text(text: str) -> Given:
    text = without_thoughts(text[-MOST_TEXT:]).strip()
    held = opened(text)
    if held is not text and isinstance(held, dict | list):
        return Given(held, "\n".join(texts_of(held)), "the JSON in the output")
    if "```" in text:
        for fenced in reversed(_FENCE.findall(text)):
            held = opened(fenced)
            if isinstance(held, dict | list):
                way = "the last JSON in a fence in the output"
                return Given(held, text, way)
    return Given(None, text, "the output")


def without_thoughts(text: str) -> str:
    """The text without what stands between tags for thinking."""
    if "<" not in text:
        return text
    for name in _THOUGHTS:
        opening, closing = f"<{name}>", f"</{name}>"
        kept, at = [], 0
        while (start := text.find(opening, at)) >= 0:
            end = text.find(closing, start)
            if end < 0:
                break
            kept.append(text[at:start])
            at = end + len(closing)
        text = "".join([*kept, text[at:]])
    return text


def _unwrapped(value: Any, depth: int) -> Any:
    """The last message as `_Text`, or a value that is no message."""
    if isinstance(value, str):
        held = opened(value)
        if held is value or depth > _DEEPEST:
            return _Text(value)
        inner = _unwrapped(held, depth + 1)
        return inner if inner is not None else _Text(value)
    if depth > _DEEPEST:
        return value
    if isinstance(value, list | tuple):
        return _of_list(list(value), depth)
    if isinstance(value, dict):
        return _of_object(value, depth)
    return value


def _of_list(items: list[Any], depth: int) -> Any:
    objects = [item for item in items if isinstance(item, dict)]
    if not objects or len(objects) < len(items):
        return items
    if any(map(_is_message, objects)):
        for item in reversed(objects):
            if said_in(item).strip():
                return _unwrapped(item, depth + 1)
        return None
    if all(map(_is_part, objects)):
        return _words(objects)
    return items


def _of_object(value: dict[str, Any], depth: int) -> Any:
    if _CREWAI.issubset(value):
        found = value["json_dict"] or value["pydantic"] or value["raw"]
        return _unwrapped(found, depth + 1)
    if _is_event(value):
        return _words(value)
    for key in _LISTS:
        held = value.get(key)
        if isinstance(held, list) and held and isinstance(held[0], dict | list):
            taken = held if key == "messages" else held[0]
            return _unwrapped(taken, depth + 1)
    if _is_part(value):
        return _words(value)
    wraps = [key for key in _WRAPS if value.get(key) is not None]
    if len(wraps) == 1 and _BESIDE.issuperset(key for key in value if key != wraps[0]):
        return _unwrapped(value[wraps[0]], depth + 1)
    return _words(value) if _is_message(value) else value


def _is_event(value: dict[str, Any]) -> bool:
    """Whether it is a response of OpenAI, or an event of the Google ADK."""
    if value.get("object") == "response":
        return True
    content = value.get("content")
    return isinstance(content, dict) and isinstance(content.get("parts"), list)


def _words(value: Any) -> _Text | None:
    text = said_in(value)
    return _Text(text) if text.strip() else None


def _is_message(value: dict[str, Any]) -> bool:
    if "generation_info" in value:
        return True
    has_content = any(key in value for key in _CONTENT)
    role, kind = value.get("role"), value.get("type")
    if isinstance(role, str) and role in _ROLES:
        return has_content
    return isinstance(kind, str) and kind in _MESSAGES


def _is_part(value: dict[str, Any]) -> bool:
    if _GENAI_PART.issubset(value):
        return True
    kind = value.get("type")
    return isinstance(kind, str) and kind in _PARTS
