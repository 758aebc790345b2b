"""Messages of the Claude Agent SDK, dumped from its classes, as lines of the CLI.

The SDK's classes hold what the stream of the CLI holds, without types and one level
flatter. Source: the types module of the package claude-agent-sdk.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.recorded import kind_of

_CLASSES: Final = {
    "AssistantMessage": "assistant",
    "UserMessage": "user",
    "SystemMessage": "system",
    "ResultMessage": "result",
}
_OWN: Final = {
    "assistant": {"model", "message_id", "parent_tool_use_id"},
    "user": {"parent_tool_use_id", "uuid"},
    "system": {"subtype"},
    "result": {"subtype"},
}
_TAGS: Final = ("type", "message_type", "_type", "__class__", "class")
_MESSAGE: Final = ("content", "model", "usage", "stop_reason")


def sdk_kind(value: Any) -> str | None:
    """Return the line type of a dumped SDK message, or `None` when it is none."""
    if not isinstance(value, dict) or isinstance(value.get("message"), dict):
        return None
    for tag in _TAGS:
        name = value.get(tag)
        if isinstance(name, str) and name in _CLASSES:
            # AutoGen has classes of the same names, with other fields.
            kind = _CLASSES[name]
            return kind if not _OWN[kind].isdisjoint(value) else None
    return _untagged(value) if "type" not in value else None


def _untagged(value: dict[str, Any]) -> str | None:
    """Tell a message without a tag by the fields that only its class has."""
    if isinstance(value.get("subtype"), str):
        if isinstance(value.get("data"), dict):
            return "system"
        return "result" if {"duration_ms", "num_turns"} <= value.keys() else None
    if "parent_tool_use_id" not in value or "content" not in value:
        return None
    return "assistant" if isinstance(value.get("model"), str) else "user"


def as_line(value: Any) -> dict[str, Any]:
    """Return a line of the CLI; raise `RefusedRecord` for what is no object."""
    if not isinstance(value, dict):
        raise RefusedRecord("A line of a session is an object.", "$")
    kind = sdk_kind(value)
    if kind is None:
        return value
    if kind in {"system", "result"}:
        data = value.get("data")
        return {**(data if isinstance(data, dict) else {}), **value, "type": kind}
    message = {key: value[key] for key in _MESSAGE if key in value}
    message["id"] = value.get("message_id")
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = [_block(block) for block in content]
    return {**value, "type": kind, "message": message}


def _block(block: Any) -> Any:
    """Give a block without a type the type that its fields say."""
    if not isinstance(block, dict) or kind_of(block) in _TYPES:
        return block
    for field, kind in (
        ("thinking", "thinking"),
        ("tool_use_id", "tool_result"),
        ("input", "tool_use"),
        ("text", "text"),
    ):
        if field in block:
            return {**block, "type": kind}
    return block


_TYPES: Final = frozenset(
    {"text", "thinking", "tool_use", "tool_result", "image", "document"}
)
