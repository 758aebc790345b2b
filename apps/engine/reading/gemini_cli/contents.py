"""Contents of the Gemini API ({role, parts}), as checkpoints of Gemini CLI hold them.

They record neither usage nor times nor the model.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.gemini_cli.messages import parts_as_text, response_in
from apps.engine.reading.kinds import text_in
from apps.engine.reading.transcript import Draft, ToolResult, Transcript
from apps.engine.trace import ModelCall, StepKind

_ROLES: Final = frozenset({"user", "model", "function", "system"})
_PARTS: Final = frozenset(
    {"text", "functionCall", "functionResponse", "inlineData", "fileData", "thought"}
)


def contents_in(value: Any) -> list[Any] | None:
    """Return the contents of a checkpoint, a list or {history: [...]}, else `None`."""
    if isinstance(value, dict):
        value = value.get("history")
    if isinstance(value, list) and value and all(map(_is_content, value[:3])):
        return value
    return None


def _is_content(value: Any) -> bool:
    if not isinstance(value, dict) or text_in(value, "role") not in _ROLES:
        return False
    parts = value.get("parts")
    return isinstance(parts, list) and all(
        isinstance(part, dict) and "type" not in part and not _PARTS.isdisjoint(part)
        for part in parts[:3]
    )


def add_contents(made: Transcript, contents: list[Any]) -> None:
    """Add the steps of contents; what is none is counted in a remark."""
    for content in contents:
        if _is_content(content):
            _add(
                made,
                content["role"],
                [p for p in content["parts"] if isinstance(p, dict)],
            )
        else:
            made.remarks.add("Entries that are no contents, left out: {n}.")


def _add(made: Transcript, role: str, parts: list[dict[str, Any]]) -> None:
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    responses = [part for part in parts if "functionResponse" in part]
    thoughts = [part.get("text") for part in parts if part.get("thought") is True]
    rest = [
        part
        for part in parts
        if part.get("thought") is not True
        and part.keys().isdisjoint({"functionCall", "functionResponse"})
    ]
    for part in responses:
        response = part["functionResponse"]
        own_id = response.get("id") if isinstance(response, dict) else None
        made.give(ToolResult(output=response_in(part), call_id=own_id))
    if role == "model":
        number = made.add(
            Draft(
                kind=StepKind.MODEL_CALL,
                native_kind=role,
                output=parts_as_text(rest) if rest else None,
                reasoning="\n\n".join(t for t in thoughts if isinstance(t, str))
                or None,
                call=ModelCall(),
            )
        )
        for call in calls:
            if isinstance(call, dict):
                made.ask(
                    name=call.get("name"),
                    call_id=call.get("id"),
                    arguments=call.get("args"),
                    by=number,
                )
    elif rest:
        kind = StepKind.SYSTEM if role == "system" else StepKind.USER_MESSAGE
        made.add(Draft(kind=kind, native_kind=role, output=parts_as_text(rest)))
