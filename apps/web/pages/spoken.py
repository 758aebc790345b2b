"""What people said in a recorded value: its messages, told by shape, and their texts.

Values are kept as they were recorded; this only reads them for a page. What it does
not know it says nothing about: the page shows the JSON then.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from apps.web.pages.spoken_parts import (
    DEEPEST,
    EMPTY,
    Heard,
    call_key,
    first_of,
    hear_call,
    hear_content,
    hear_thought,
    is_part,
    one_line,
)

_CHAIN_ROLES: Final = {
    "human": "user", "humanmessage": "user", "humanmessagechunk": "user",
    "ai": "assistant", "aimessage": "assistant", "aimessagechunk": "assistant",
    "system": "system", "systemmessage": "system", "developer": "developer",
    "tool": "tool", "toolmessage": "tool", "function": "tool",
    "functionmessage": "tool", "chat": "chat", "chatmessage": "chat",
}  # fmt: skip
_ITEMS: Final = {
    "message": "", "reasoning": "assistant", "function_call": "assistant",
    "function_call_output": "tool", "custom_tool_call": "assistant",
    "custom_tool_call_output": "tool", "mcp_call": "assistant",
}  # fmt: skip
_ROLES: Final = frozenset({*_CHAIN_ROLES.values(), "model"})
_ANSWERERS: Final = frozenset({"assistant", "model"})
_CONTENTS: Final = ("contents", "parts", "content", "text", "refusal")
_CALLS: Final = ("tool_calls", "toolCalls")
_THINKING: Final = ("reasoning_content", "reasoning", "thinking")
_HOLDS: Final = frozenset({*_CONTENTS, *_CALLS, *_THINKING, "function_call"})
# Where a request, an answer or a state keeps its messages, the surest name first.
_LISTS: Final = (
    "choices", "candidates", "generations", "messages", "output", "contents",
    "new_message", "response", "content", "responseParts",
)  # fmt: skip


class Conversation(msgspec.Struct, frozen=True):
    """The messages of a value as recorded, and the names of fields beside them."""

    messages: list[Any]
    beside: tuple[str, ...] = ()


class Saying(msgspec.Struct, frozen=True):
    """What one message says. `thought` is apart; `beside` names fields in neither."""

    role: str
    text: str
    thought: str
    is_cut: bool
    beside: tuple[str, ...]


def conversation(value: Any) -> Conversation | None:
    """The messages that a value holds; None for what is no message to this module.

    A bare text is one message without a role.
    """
    if isinstance(value, str):
        return Conversation([value]) if value.strip() else None
    return _found(value, 0)


def saying(message: Any, *, most: int) -> Saying:
    """The text of one message of a `Conversation`, of `most` characters at most."""
    heard = Heard(most=most)
    role = _hear_message(message, heard, 0)
    return Saying(
        role=role,
        text="\n".join(heard.said),
        thought="\n".join(heard.thought),
        is_cut=heard.is_cut,
        beside=tuple(sorted(heard.beside)),
    )


def new_from(messages: list[Any]) -> int:
    """Where what is new to the model begins: behind its own last answer.

    Without an answer before, or with one at the end, the last message of a user.
    """
    roles = [role_of(message) for message in messages]
    answers = [n for n, role in enumerate(roles) if role in _ANSWERERS]
    if answers and answers[-1] + 1 < len(roles):
        return answers[-1] + 1
    users = [n for n, role in enumerate(roles) if role == "user"]
    return users[-1] if users else 0


def role_of(message: Any) -> str:
    """Who speaks, in the words of the chat APIs where the record has other ones."""
    if not isinstance(message, dict):
        return ""
    inner = _inner(message)
    if inner is not None:
        return role_of(inner) or _class_role(message) or "assistant"
    role = message.get("role")
    if isinstance(role, str) and role:
        return _CHAIN_ROLES.get(role.lower(), role)
    kind = message.get("type")
    if not isinstance(kind, str):
        return ""
    return _CHAIN_ROLES.get(kind.lower()) or _ITEMS.get(kind, "")


def _class_role(message: dict[str, Any]) -> str:
    """The role of a serialised message, whose class is the last part of its `id`."""
    name = message.get("id")
    if isinstance(name, list) and name:
        return _CHAIN_ROLES.get(str(name[-1]).lower(), "")
    return _CHAIN_ROLES.get(str(message.get("type")).lower(), "")


def _inner(message: dict[str, Any], depth: int = 0) -> dict[str, Any] | None:
    """The message inside a choice, a candidate or a serialised object."""
    for key in ("message", "kwargs", "data", "content"):
        held = message.get(key)
        if isinstance(held, dict) and _is_inside(key, held, message, depth):
            return held
    return None


def _is_inside(
    key: str, held: dict[str, Any], message: dict[str, Any], depth: int
) -> bool:
    if key == "content":
        return "parts" in held
    if key == "data":
        return bool(_class_role(message)) and "content" in held
    if key == "kwargs":
        return "content" in held
    if "role" in held and _is_message(held):
        return True
    return depth < DEEPEST and _inner(held, depth + 1) is not None


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("role"), str):
        return not _HOLDS.isdisjoint(value) or value["role"] in _ROLES
    kind = value.get("type")
    if not isinstance(kind, str):
        return value.keys() <= _HOLDS and ("content" in value or "text" in value)
    if kind in _ITEMS:
        return True
    return kind.lower() in _CHAIN_ROLES and "content" in value


def _is_spoken(value: Any) -> bool:
    return isinstance(value, dict) and (
        _is_message(value) or is_part(value) or _inner(value) is not None
    )


def _found(value: Any, depth: int) -> Conversation | None:
    if depth >= DEEPEST:
        return None
    if isinstance(value, list):
        return _found_in_list(value, depth)
    if not isinstance(value, dict):
        return None
    if _is_spoken(value):
        return Conversation([value])
    return _found_in_fields(value, depth) or _only_text(value)


def _found_in_list(value: list[Any], depth: int) -> Conversation | None:
    if value and all(isinstance(one, list) for one in value):
        return _found_in_list([one for inner in value for one in inner], depth + 1)
    if not value or not all(isinstance(one, str) or _is_spoken(one) for one in value):
        return None
    if any(isinstance(one, dict) and not _has_speaker(one) for one in value) or all(
        isinstance(one, str) for one in value
    ):
        return Conversation([{"content": value}])
    return Conversation(value)


def _has_speaker(value: dict[str, Any]) -> bool:
    return _is_message(value) or _inner(value) is not None


def _found_in_fields(value: dict[str, Any], depth: int) -> Conversation | None:
    for key in _LISTS:
        held = value.get(key)
        if not isinstance(held, list | dict) or not _may_hold(key, held):
            continue
        found = _found(held, depth + 1)
        if found is not None and (key != "response" or _has_roles(found)):
            rest = (k for k, v in value.items() if k != key and v not in EMPTY)
            return Conversation(found.messages, (*found.beside, *sorted(rest)))
    return None


def _may_hold(key: str, held: list[Any] | dict[str, Any]) -> bool:
    """A tool may call anything `content`; only parts of messages are read there."""
    return bool(held) and (key != "content" or all(map(is_part, held)))


def _has_roles(found: Conversation) -> bool:
    return all(role_of(message) for message in found.messages)


def _only_text(value: dict[str, Any]) -> Conversation | None:
    """An answer that is one text in a field of its own: `{"output": "Done."}`."""
    filled = {key: held for key, held in value.items() if held not in EMPTY}
    key = next((key for key in ("output", "raw", "contents") if key in filled), "")
    is_known = len(filled) == 1 or key == "contents" or "json_dict" in value
    if not isinstance(filled.get(key), str) or not is_known:
        return None
    return Conversation([filled[key]], tuple(sorted(filled.keys() - {key})))


def _hear_message(message: Any, heard: Heard, depth: int) -> str:
    """Hear a message with all that it carries; returns who speaks."""
    if not isinstance(message, dict) or depth >= DEEPEST:
        hear_content(message, heard, depth)
        return ""
    inner = _inner(message)
    if inner is not None:
        _hear_message(inner, heard, depth + 1)
        heard.note_rest(message)
        return role_of(message)
    role = role_of(message)
    if "role" not in message and message.get("type") != "message" and is_part(message):
        hear_content([message], heard, depth)
        return role
    for key in _THINKING:
        if message.get(key):
            hear_thought(message[key], heard)
    for key in _CONTENTS:
        if message.get(key) not in heard.said:
            hear_content(message.get(key), heard, depth)
    _hear_calls(message, heard)
    heard.note_rest(message)
    name = message.get("name")
    return f"tool {name}" if role == "tool" and isinstance(name, str) else role


def _hear_calls(message: dict[str, Any], heard: Heard) -> None:
    """Hear the calls beside the content, but none that the content held already."""
    calls = first_of(message, _CALLS)
    extra = message.get("additional_kwargs")
    if not calls and isinstance(extra, dict):
        calls = first_of(extra, _CALLS)
    before = frozenset(heard.calls)
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict) and call_key(call) not in before:
            hear_call(call, heard)
        elif not isinstance(call, dict):
            heard.say(one_line(call))
    if isinstance(message.get("function_call"), dict):
        hear_call(message["function_call"], heard)
