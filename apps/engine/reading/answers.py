"""One answer of a model as an API returned it: many shapes made into one.

Chat completions (`choices`), Responses (`output`), Anthropic messages (`content`) and
the shapes of `other_answers` hold the same facts under different names.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.answer_parts import Answer, Asked, joined, note_emptiness
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.json_values import embedded
from apps.engine.reading.other_answers import other_answer
from apps.engine.reading.recorded import mapping, plain_text, word
from apps.engine.reading.text_limits import IDENTIFIER, NAME, clip
from apps.engine.reading.token_counts import usage_of
from apps.engine.reading.transcript import Draft, Transcript
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import ModelCall, StepKind, StepStatus

__all__ = [
    "Answer",
    "Asked",
    "add_answer",
    "answer_of",
    "chat_tool_calls",
    "is_anthropic_answer",
    "is_chat_completion",
    "is_response",
    "note_emptiness",
    "requested_item",
    "response_finish",
    "take_anthropic_parts",
    "take_output_item",
]

_CHOICES: Final = (
    "Answers with several choices, of which the first is shown: {n}. Their usage is of "
    "all choices."
)


def is_chat_completion(value: Any) -> bool:
    """Whether a value is a chat completion: choices that hold messages."""
    if not isinstance(value, dict):
        return False
    choice = _first_choice(value)
    return isinstance(choice.get("message"), dict) or "text" in choice


def is_response(value: Any) -> bool:
    """Whether a value is a response of OpenAI's Responses API."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("output"), list)
        and (value.get("object") == "response" or "output_text" in value)
    )


def is_anthropic_answer(value: Any) -> bool:
    """Whether a value is an answer of Anthropic's Messages API."""
    if not isinstance(value, dict) or value.get("role") != "assistant":
        return False
    if not isinstance(value.get("content"), list):
        return False
    has_usage, has_stop = "usage" in value, "stop_reason" in value
    if value.get("type") == "message":
        # A stream or a gateway may leave the usage out.
        return has_usage or has_stop
    return value.get("type") is None and has_usage and has_stop


def answer_of(value: Any) -> Answer | None:
    """Return the answer in a value of one of the known shapes, else `None`."""
    if is_chat_completion(value):
        return _of_completion(value)
    if is_response(value):
        return _of_response(value)
    if is_anthropic_answer(value):
        return _of_anthropic(value)
    return other_answer(value)


def add_answer(transcript: Transcript, answer: Answer, invocation: int = 0) -> Draft:
    """Add the model call of an answer and the tool calls that it asks for."""
    remarks = transcript.remarks
    if answer.choices > 1:
        remarks.add(_CHOICES)
    finish, finish_raw = finish_of(answer.finish)
    failed = answer.error_message is not None or answer.error_type is not None
    draft = Draft(
        kind=StepKind.MODEL_CALL,
        invocation=invocation,
        native_kind=answer.role or "assistant",
        start_ns=answer.start_ns,
        status=StepStatus.ERROR if failed else StepStatus.UNSET,
        error_type=answer.error_type,
        error_message=answer.error_message,
        output=answer.text,
        reasoning=answer.reasoning,
        call=ModelCall(
            model=clip(answer.model, NAME, remarks),
            finish=finish,
            finish_raw=clip(finish_raw, IDENTIFIER, remarks),
            usage=usage_of(answer.counts),
            response_id=clip(answer.response_id, IDENTIFIER, remarks),
            conversation=clip(answer.conversation, IDENTIFIER, remarks),
        ),
    )
    number = transcript.add(draft)
    for one in answer.asked:
        transcript.ask(
            name=one.name, call_id=one.call_id, arguments=one.arguments, by=number
        )
    return draft


def _first_choice(value: dict[str, Any]) -> dict[str, Any]:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _of_completion(value: dict[str, Any]) -> Answer:
    choice = _first_choice(value)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {"content": choice.get("text")}
    # OpenRouter writes the error of a provider that broke off into the choice.
    error = mapping(choice.get("error"))
    answer = Answer(
        text=message.get("content") or message.get("refusal"),
        reasoning=message.get("reasoning_content") or message.get("reasoning"),
        asked=chat_tool_calls(message),
        finish=choice.get("finish_reason"),
        model=value.get("model"),
        response_id=value.get("id"),
        counts=usage_counts(value.get("usage")),
        start_ns=any_time_ns(value.get("created")),
        error_type=error.get("code") if error else None,
        error_message=error.get("message") if error else None,
        choices=len(value["choices"]),
    )
    if "content" in message and not error:
        note_emptiness(answer)
    return answer


def chat_tool_calls(message: dict[str, Any]) -> list[Asked]:
    """Return the tool calls of a chat message, in the old form and the new one."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        legacy = message.get("function_call")
        calls = [legacy] if isinstance(legacy, dict) else []
    made = []
    for call in calls:
        if not isinstance(call, dict):
            continue
        function = call.get("function") or call.get("custom") or call
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments", function.get("input"))
        made.append(Asked(function.get("name"), call.get("id"), embedded(arguments)))
    return made


def _of_response(value: dict[str, Any]) -> Answer:
    answer = Answer(
        finish=response_finish(value),
        model=value.get("model"),
        response_id=value.get("id"),
        conversation=_id_in(value.get("conversation")),
        counts=usage_counts(value.get("usage")),
        start_ns=any_time_ns(value.get("created_at")),
    )
    error = value.get("error")
    if isinstance(error, dict):
        answer.error_type, answer.error_message = (
            error.get("code"),
            error.get("message"),
        )
    for item in value["output"]:
        if isinstance(item, dict):
            take_output_item(answer, item)
    if answer.asked and answer.finish == "completed":
        answer.finish = "tool_calls"
    note_emptiness(answer)
    return answer


def response_finish(value: dict[str, Any]) -> Any:
    """Return why a response ended: the reason it is incomplete, else its status."""
    details = value.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return reason or value.get("status")


def _id_in(value: Any) -> Any:
    return value.get("id") if isinstance(value, dict) else value


def take_output_item(answer: Answer, item: dict[str, Any]) -> None:
    """Put one output item of the Responses API into `answer`.

    Lists of tools, requests for approval and compactions are neither words of the
    model nor calls of tools; they are left out.
    """
    kind = item.get("type")
    if kind == "reasoning":
        told = item.get("summary") or item.get("content")
        answer.reasoning = joined(answer.reasoning, plain_text(told))
    elif kind == "message" or (kind is None and "content" in item):
        answer.text = joined(answer.text, plain_text(item.get("content")))
    elif word(kind).endswith("_call"):
        answer.asked.append(requested_item(item))


def requested_item(item: dict[str, Any]) -> Asked:
    """Return the tool call of an output item; a built-in tool is named by its type."""
    name = item.get("name") or str(item.get("type") or "").removesuffix("_call")
    for key in ("arguments", "input", "action", "queries", "code"):
        if item.get(key) is not None:
            return Asked(
                name, item.get("call_id") or item.get("id"), embedded(item[key])
            )
    return Asked(name, item.get("call_id") or item.get("id"), None)


def _of_anthropic(value: dict[str, Any]) -> Answer:
    answer = Answer(
        finish=value.get("stop_reason"),
        model=value.get("model"),
        response_id=value.get("id"),
        counts=usage_counts(value.get("usage")),
    )
    take_anthropic_parts(answer, value["content"])
    note_emptiness(answer)
    return answer


def take_anthropic_parts(answer: Answer, content: Any) -> None:
    """Put the content parts of an Anthropic assistant message into `answer`."""
    if not isinstance(content, list):
        answer.text = content
        return
    others: list[Any] = []
    for part in content:
        kind = word(part.get("type")) if isinstance(part, dict) else ""
        if kind in {"tool_use", "server_tool_use", "mcp_tool_use"}:
            answer.asked.append(
                Asked(part.get("name"), part.get("id"), part.get("input"))
            )
        elif kind in {"thinking", "redacted_thinking"}:
            answer.reasoning = joined(answer.reasoning, part.get("thinking") or None)
        elif not kind.endswith("tool_result"):
            others.append(part)
    # No part at all is an answer that says nothing, and not one that was not kept.
    answer.text = plain_text(others) if content else ""
