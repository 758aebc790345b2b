"""Chunks of LangChain's streamed answers, put together into one message.

LangChain adds chunks up: texts and arguments are joined, and the counts of usage are
summed, because each chunk records only what it adds.
Source: https://python.langchain.com/api_reference/core/messages/.
"""

from __future__ import annotations

from typing import Any

from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import listed, mapping
from apps.engine.reading.token_counts import whole_number

Fields = dict[str, Any]


def lengthened(message: Fields, chunk: Fields) -> Fields:
    """Return a message with one chunk more; neither is changed."""
    made = {**message, **{k: v for k, v in chunk.items() if v not in (None, [], {})}}
    for key in ("content", "tool_call_chunks"):
        made[key] = _added(message.get(key), chunk.get(key))
    for key in ("additional_kwargs", "response_metadata"):
        made[key] = _merged(mapping(message.get(key)), mapping(chunk.get(key)))
    made["usage_metadata"] = _summed(
        message.get("usage_metadata"), chunk.get("usage_metadata")
    )
    return made


def whole(message: Fields) -> Fields:
    """Return the message that its chunks make, with the tool calls they spell."""
    calls: dict[Any, Fields] = {}
    for number, piece in enumerate(listed(message.get("tool_call_chunks"))):
        held = mapping(piece)
        index = held.get("index")
        key = str(number) if index is None else f"index {index}"
        call = calls.setdefault(key, {"name": None, "id": None, "args": ""})
        call["name"] = call["name"] or held.get("name")
        call["id"] = call["id"] or held.get("id")
        call["args"] += held["args"] if isinstance(held.get("args"), str) else ""
    if not calls:
        return message
    asked = [call | {"args": embedded(call["args"])} for call in calls.values()]
    return message | {"tool_calls": asked, "invalid_tool_calls": []}


def _added(before: Any, after: Any) -> Any:
    if not before or not after:
        return after or before or ""
    if isinstance(before, str) and isinstance(after, str):
        return before + after
    return [*_parts(before), *_parts(after)]


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _merged(before: Fields, after: Fields) -> Fields:
    made = before | after
    told = before.get("reasoning_content"), after.get("reasoning_content")
    if any(told):
        made["reasoning_content"] = _added(*told)
    return made


def _summed(before: Any, after: Any) -> Any:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after or before
    made = before | after
    for key in before.keys() & after.keys():
        first, second = whole_number(before[key]), whole_number(after[key])
        if first is not None and second is not None:
            made[key] = first + second
        elif isinstance(before[key], dict):
            made[key] = _summed(before[key], after[key])
    return made
