"""Chat histories of AG2 (and of AutoGen up to 0.2), as `ChatResult` keeps them.

A message says who spoke; its role only says from whose side the history was written.
What a person or an executor of tools said is no model call, what another speaker said
is taken for one. Usage is recorded only as a total, in `cost`.
Source: https://docs.ag2.ai/latest/docs/api-reference/autogen/ChatResult/.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.answers import Answer, add_answer, chat_tool_calls
from apps.engine.reading.recorded import listed, mapping
from apps.engine.reading.transcript import Draft, ToolResult, Transcript
from apps.engine.trace import StepKind

_HUMANS: Final = frozenset(
    {"", "user", "human", "admin", "user_proxy", "userproxy", "chat_manager"}
)
_SPEAKERS: Final = (
    "The history names speakers, not calls: every message of an agent is taken for one "
    "model call, and usage is recorded only as a total."
)


def history_in(value: Any) -> list[dict[str, Any]] | None:
    """Return the messages of a chat result, else `None`."""
    held = mapping(value)
    history = listed(held.get("chat_history"))
    is_result = bool(history) and not held.keys().isdisjoint({"cost", "summary"})
    if not is_result or not all(map(_is_message, history)):
        return None
    return history


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def add_history(transcript: Transcript, history: list[dict[str, Any]]) -> None:
    """Add the steps of a chat history; each speaker is one invocation."""
    transcript.remarks.add(_SPEAKERS)
    for message in history:
        name = message.get("name")
        speaker = name if isinstance(name, str) else ""
        responses = listed(message.get("tool_responses"))
        asked = chat_tool_calls(message)
        if responses:
            for one in responses:
                transcript.give(_result(mapping(one)))
        elif speaker.casefold() in _HUMANS and not asked:
            _say(transcript, message)
        else:
            answer = Answer(
                text=message.get("content"), asked=asked, role=message["role"]
            )
            add_answer(transcript, answer, transcript.speaker(speaker or None))


def _say(transcript: Transcript, message: dict[str, Any]) -> None:
    is_system = message["role"] == "system"
    transcript.add(
        Draft(
            kind=StepKind.SYSTEM if is_system else StepKind.USER_MESSAGE,
            name=message.get("name"),
            native_kind=message["role"],
            output=message.get("content"),
        )
    )


def _result(response: dict[str, Any]) -> ToolResult:
    return ToolResult(
        output=response.get("content"),
        call_id=response.get("tool_call_id"),
        native_kind="tool_responses",
    )
