"""Messages and states of LangChain and LangGraph in all their spellings.

A message is written by dumpd, messages_to_dict or model_dump; a state stands alone, in
a snapshot, in a checkpoint or in what a node of a graph returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.reading.recorded import listed, mapping

Fields = dict[str, Any]

_TYPES: Final = {
    "human": "human", "HumanMessage": "human", "HumanMessageChunk": "human",
    "ai": "ai", "AIMessage": "ai", "AIMessageChunk": "chunk",
    "tool": "tool", "ToolMessage": "tool", "ToolMessageChunk": "tool",
    "function": "tool", "FunctionMessage": "tool",
    "system": "system", "SystemMessage": "system", "developer": "system",
    "chat": "chat", "ChatMessage": "chat", "remove": "remove",
    "RemoveMessage": "remove",
}  # fmt: skip
_SURE: Final = frozenset({"human", "ai", "AIMessageChunk", "HumanMessage", "AIMessage"})
_MARKS: Final = ("additional_kwargs", "response_metadata", "tool_call_id", "tool_calls")
_SNAPSHOT: Final = (
    "values", "next", "config", "metadata", "created_at", "parent_config", "tasks",
    "interrupts",
)  # fmt: skip


def plain(value: Any) -> tuple[str, Fields] | None:
    """Return (kind, fields) of a message in any spelling, else `None`.

    The kind is human, ai, chunk (of an answer), tool, system, chat or remove.
    """
    if not isinstance(value, dict):
        return None
    if value.get("type") == "constructor" and isinstance(value.get("id"), list):
        fields, name = mapping(value.get("kwargs")), str(value["id"][-1:])[2:-2]
    elif isinstance(value.get("data"), dict) and "content" in value["data"]:
        fields, name = value["data"], str(value.get("type"))
    else:
        fields, name = value, str(value.get("type"))
        if "role" in value and value.get("type") != "chat":
            return None
        if name not in _SURE and not any(mark in value for mark in _MARKS):
            return None
    kind = _TYPES.get(name)
    return (kind, fields) if kind and "content" in fields else None


def is_message(value: Any) -> bool:
    """Whether a value is a message in one of the spellings."""
    return plain(value) is not None


def is_pair(value: Any) -> bool:
    """Whether a value is (message, metadata), as a stream of messages yields it."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and is_message(value[0])
        and isinstance(value[1], dict)
        and not is_message(value[1])
    )


def messages_in(value: Any) -> list[Any] | None:
    """Return the messages of a state, snapshot or update, else `None`.

    A snapshot without messages has none: the list is empty.
    """
    if not isinstance(value, dict):
        return None
    for holder in _states(value):
        for held in holder.values():
            if isinstance(held, list) and held and is_message(held[0]):
                return held
    updates = [messages_in_update(node) for node in value.values()]
    if any(updates):
        return [message for held in updates for message in held]
    return [] if is_snapshot(value) else None


def _states(value: Fields) -> Iterator[Fields]:
    yield value
    for key in ("values", "channel_values", "state"):
        yield mapping(value.get(key))
    yield mapping(mapping(value.get("checkpoint")).get("channel_values"))


def messages_in_update(node: Any) -> list[Any]:
    """Return the messages that a node of a graph added, one or several."""
    held = mapping(node).get("messages")
    if is_message(held):
        return [held]
    messages = listed(held)
    return messages if messages and is_message(messages[0]) else []


def is_update(value: Any) -> bool:
    """Whether a value is {node: {messages}}, as a stream of updates yields it."""
    return isinstance(value, dict) and any(map(messages_in_update, value.values()))


def is_snapshot(value: Any) -> bool:
    """Whether a value is a snapshot of a thread."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("values"), dict)
        and ("next" in value or "config" in value)
    )


def snapshot_of(value: Any) -> Fields | None:
    """Return the snapshot of a value; one written as a tuple gets its names back."""
    if is_snapshot(value):
        return dict(value)
    if is_listed_snapshot(value):
        return dict(zip(_SNAPSHOT, value, strict=False))
    return None


def is_listed_snapshot(value: Any) -> bool:
    """Whether a value is a snapshot that was written as a list of its fields."""
    return (
        isinstance(value, list)
        and 6 <= len(value) <= len(_SNAPSHOT)
        and isinstance(value[0], dict)
        and not is_message(value[0])
        and isinstance(value[1], list)
        and "configurable" in mapping(value[2])
    )


def thread_of(snapshot: Fields) -> str | None:
    """Return the thread that a snapshot is of."""
    for key in ("config", "checkpoint"):
        held = mapping(snapshot.get(key))
        thread = mapping(held.get("configurable", held)).get("thread_id")
        if isinstance(thread, str):
            return thread
    thread = mapping(snapshot.get("metadata")).get("thread_id")
    return thread if isinstance(thread, str) else None
