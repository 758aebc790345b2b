"""One answer as chat completion or Response, whole or as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.model_server.answers import Answer, messages_of, text_in

MODEL = "test-model-1"


def usage_of(body: dict[str, Any], answer: Answer, *, is_chat: bool) -> dict[str, Any]:
    """Counts of words, which are the tokens of this model."""
    given = sum(len(text_in(one).split()) for one in messages_of(body))
    made = len((answer.text or "").split()) + 5 * len(answer.tools)
    made += len(answer.reasoning.split()) + len(answer.refusal.split())
    thought = len(answer.reasoning.split())
    first, second = ("prompt", "completion") if is_chat else ("input", "output")
    return {
        f"{first}_tokens": given,
        f"{second}_tokens": made,
        "total_tokens": given + made,
        f"{second}_tokens_details": {"reasoning_tokens": thought},
    }


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def chat_completion(
    answer: Answer, *, number: int, model: str, usage: Any
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.refusal:
        message["refusal"] = answer.refusal
    if answer.tools:
        message["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": _written(arguments)},
            }
            for name, arguments, call_id in answer.tools
        ]
    whole = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_796_000_000 + number,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": answer.ended}],
    }
    return whole if usage is None else whole | {"usage": usage}


def response(answer: Answer, *, number: int, model: str, usage: Any) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        output.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary})
    if answer.text is not None:
        parts = [{"type": "output_text", "text": answer.text, "annotations": []}]
        output.append(_said(number, parts))
    if answer.refusal:
        output.append(_said(number, [{"type": "refusal", "refusal": answer.refusal}]))
    for name, arguments, call_id in answer.tools:
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{call_id}",
                "call_id": call_id,
                "name": name,
                "arguments": _written(arguments),
                "status": "completed",
            }
        )
    is_cut = answer.finish == "length"
    whole: dict[str, Any] = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_796_000_000 + number,
        "model": model,
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "error": None,
        "output": output,
    }
    return whole if usage is None else whole | {"usage": usage}


def _said(number: int, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": parts,
    }


def chat_events(whole: dict[str, Any], *, has_usage: bool) -> Iterator[bytes]:
    """A chat completion as the chunks of a stream, its text word by word."""
    message = whole["choices"][0]["message"]
    head = {key: whole[key] for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event(head | {"choices": [choice]})

    yield chunk({"role": "assistant"})
    for key in ("reasoning_content", "refusal", "content"):
        for piece in _pieces(message.get(key) or ""):
            yield chunk({key: piece})
    for index, one in enumerate(message.get("tool_calls", [])):
        given = one["function"]["arguments"]
        start = one | {"index": index, "function": one["function"] | {"arguments": ""}}
        yield chunk({"tool_calls": [start]})
        for piece in _pieces(given):
            part = {"index": index, "function": {"arguments": piece}}
            yield chunk({"tool_calls": [part]})
    yield chunk({}, whole["choices"][0]["finish_reason"])
    if has_usage and "usage" in whole:
        yield _event(head | {"choices": [], "usage": whole["usage"]})
    yield b"data: [DONE]\n\n"


def response_events(whole: dict[str, Any]) -> Iterator[bytes]:
    """A Response as the events of a stream."""
    begun = whole | {"status": "in_progress", "output": []}
    begun.pop("usage", None)
    yield _named({"type": "response.created", "response": begun})
    for index, item in enumerate(whole["output"]):
        for part in item.get("content", []):
            for piece in _pieces(part.get("text", "")):
                yield _named(
                    {
                        "type": "response.output_text.delta",
                        "output_index": index,
                        "content_index": 0,
                        "delta": piece,
                    }
                )
        yield _named(
            {"type": "response.output_item.done", "output_index": index, "item": item}
        )
    yield _named({"type": f"response.{whole['status']}", "response": whole})


def _event(value: Any) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _named(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\n".encode() + _event(value)


def _pieces(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]
