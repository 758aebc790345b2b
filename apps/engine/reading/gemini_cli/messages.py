"""Messages of Gemini CLI's chat files, made into steps."""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.recorded import plain_text
from apps.engine.reading.text_limits import NAME, clip
from apps.engine.reading.token_counts import Counts, usage_of, whole_number
from apps.engine.reading.transcript import Draft, Transcript
from apps.engine.trace import ModelCall, StepKind, StepStatus, Usage

_KINDS: Final = {
    "user": StepKind.USER_MESSAGE,
    "gemini": StepKind.MODEL_CALL,
    "info": StepKind.SYSTEM,
    "warning": StepKind.SYSTEM,
    "error": StepKind.SYSTEM,
}
_ENDINGS: Final = {
    "success": StepStatus.OK,
    "error": StepStatus.ERROR,
    "cancelled": StepStatus.UNFINISHED,
}


def add_message(
    made: Transcript, message: dict[str, Any], *, resets: bool
) -> str | None:
    """Add one message and its tool calls; return its type, `None` for an unknown one."""
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        return None
    time = any_time_ns(message.get("timestamp"))
    draft = Draft(
        kind=_KINDS[kind],
        start_ns=time,
        end_ns=time,
        status=StepStatus.ERROR if kind == "error" else StepStatus.UNSET,
        native_id=message.get("id"),
        native_kind=kind,
        output=plain_text(message.get("content")),
    )
    if kind == "error" and isinstance(draft.output, str):
        draft.error_type, draft.error_message = "error", draft.output
    if kind != "gemini":
        made.add(draft)
        return kind
    model = clip(message.get("model"), NAME, made.remarks)
    draft.name = model
    draft.reasoning = _thoughts(message.get("thoughts"))
    draft.call = ModelCall(
        model=model, usage=_usage(message.get("tokens")), resets_context=resets
    )
    number = made.add(draft)
    calls = message.get("toolCalls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            _add_tool(made, call, number)
    return kind


def _usage(tokens: Any) -> Usage:
    if not isinstance(tokens, dict):
        return usage_of(Counts())
    return usage_of(
        Counts(
            input_total=whole_number(tokens.get("input")),
            input_cached=whole_number(tokens.get("cached")),
            output_total=whole_number(tokens.get("output")),
            output_reasoning=whole_number(tokens.get("thoughts")),
            total=whole_number(tokens.get("total")),
            source="tokens.output",
        )
    )


def _thoughts(thoughts: Any) -> str | None:
    told = []
    for one in thoughts if isinstance(thoughts, list) else []:
        if isinstance(one, dict):
            parts = (one.get("subject"), one.get("description"))
            told.append(": ".join(part for part in parts if isinstance(part, str)))
    return "\n\n".join(text for text in told if text) or None


def _add_tool(made: Transcript, call: dict[str, Any], by: int) -> None:
    asked = made.ask(
        name=call.get("name"), call_id=call.get("id"), arguments=call.get("args"), by=by
    )
    status = call.get("status")
    ending = _ENDINGS.get(status, StepStatus.UNSET) if isinstance(status, str) else None
    result = _result(call.get("result"))
    if result is None and ending in {None, StepStatus.UNSET}:
        return
    shown = call.get("resultDisplay")
    # The result stands in the call itself, so it needs no id to be joined by.
    asked.output = shown if result is None else result
    asked.status = ending or StepStatus.UNSET
    asked.error_message = shown if ending is StepStatus.ERROR else None
    asked.end_ns = any_time_ns(call.get("timestamp"))


def _result(result: Any) -> Any:
    """Return what a tool answered, out of the function responses around it."""
    if not isinstance(result, list):
        return result
    told = [response_in(part) for part in result]
    told = [one for one in told if one is not None]
    return told[0] if len(told) == 1 else (told or None)


def response_in(part: Any) -> Any:
    """Return the response in a part, plain where it is one output or one error."""
    holder = part.get("functionResponse") if isinstance(part, dict) else None
    if not isinstance(holder, dict):
        return part
    response = holder.get("response")
    if isinstance(response, dict) and len(response) == 1:
        for key in ("output", "error"):
            if key in response:
                return response[key]
    return response
