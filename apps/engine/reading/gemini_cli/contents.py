"""Contents of the Gemini API ({role, parts}), as checkpoints of Gemini CLI hold them.

They record neither usage nor times nor the model.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.answers import add_answer
from apps.engine.reading.gemini_cli.messages import response_in
from apps.engine.reading.other_answers import gemini_parts
from apps.engine.reading.recorded import mapping, plain_text, text_in
from apps.engine.reading.transcript import Draft, ToolResult, Transcript
from apps.engine.trace import StepKind

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
    for part in parts:
        if "functionResponse" in part:
            own_id = mapping(part["functionResponse"]).get("id")
            made.give(ToolResult(output=response_in(part), call_id=own_id))
    rest = [part for part in parts if "functionResponse" not in part]
    if role == "model":
        add_answer(made, gemini_parts(rest))
    elif rest:
        kind = StepKind.SYSTEM if role == "system" else StepKind.USER_MESSAGE
        made.add(Draft(kind=kind, native_kind=role, output=plain_text(rest)))
