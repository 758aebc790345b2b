"""Answers of the APIs of Gemini, Ollama and Amazon Bedrock (Converse).

Sources: https://ai.google.dev/api/generate-content,
https://github.com/ollama/ollama/blob/main/docs/api.md,
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
"""

from __future__ import annotations

from typing import Any

from apps.engine.reading.answer_parts import Answer, Asked, joined, note_emptiness
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.recorded import either, listed, mapping, plain_text
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.reading.usage_fields import usage_counts


def other_answer(value: Any) -> Answer | None:
    """Return the answer in a value of one of these shapes, else `None`."""
    if not isinstance(value, dict):
        return None
    if is_gemini_answer(value):
        return _of_gemini(value)
    if _is_ollama(value):
        return _of_ollama(value)
    if isinstance(mapping(value.get("output")).get("message"), dict) and (
        "stopReason" in value
    ):
        return _of_bedrock(value)
    return None


def is_gemini_answer(value: dict[str, Any]) -> bool:
    """Whether an object is an answer of Gemini: candidates with contents."""
    candidates = listed(value.get("candidates"))
    if not candidates:
        blocked = either(value, "prompt_feedback", "promptFeedback")
        return bool(either(mapping(blocked), "block_reason", "blockReason"))
    first = mapping(candidates[0])
    return isinstance(first.get("content"), dict) or (
        either(first, "finish_reason", "finishReason") is not None
    )


def _of_gemini(value: dict[str, Any]) -> Answer:
    candidates = listed(value.get("candidates"))
    first = mapping(candidates[0]) if candidates else {}
    answer = gemini_parts(mapping(first.get("content")).get("parts"))
    feedback = mapping(either(value, "prompt_feedback", "promptFeedback"))
    answer.finish = either(first, "finish_reason", "finishReason") or either(
        feedback, "block_reason", "blockReason"
    )
    answer.model = either(value, "model_version", "modelVersion")
    answer.response_id = either(value, "response_id", "responseId")
    usage, name = value.get("usage_metadata"), "usage_metadata"
    if usage is None:
        usage, name = value.get("usageMetadata"), "usageMetadata"
    answer.counts = usage_counts(usage, name)
    answer.start_ns = any_time_ns(either(value, "create_time", "createTime"))
    answer.choices = max(len(candidates), 1)
    if isinstance(first.get("content"), dict):
        note_emptiness(answer)
    return answer


def gemini_parts(parts: Any) -> Answer:
    """Return an answer with the text, thoughts and calls of the parts of a content."""
    answer = Answer(role="model", asked=[])
    thoughts: list[str] = []
    shown: list[Any] = []
    for part in listed(parts):
        held = mapping(part)
        call = mapping(either(held, "function_call", "functionCall"))
        if call:
            answer.asked.append(
                Asked(call.get("name"), call.get("id"), call.get("args"))
            )
        elif held.get("thought") is True and isinstance(held.get("text"), str):
            thoughts.append(held["text"])
        elif held:
            shown.append(held)
    answer.text = plain_text(shown) if shown else None
    answer.reasoning = "\n".join(thoughts) or None
    return answer


def _is_ollama(value: dict[str, Any]) -> bool:
    return isinstance(value.get("done"), bool) and (
        isinstance(value.get("message"), dict) or isinstance(value.get("response"), str)
    )


def _of_ollama(value: dict[str, Any]) -> Answer:
    message = mapping(value.get("message"))
    asked = []
    for call in listed(message.get("tool_calls")):
        function = mapping(mapping(call).get("function"))
        asked.append(
            Asked(
                function.get("name"), mapping(call).get("id"), function.get("arguments")
            )
        )
    sent, received = value.get("prompt_eval_count"), value.get("eval_count")
    answer = Answer(
        text=message.get("content") or value.get("response") or None,
        reasoning=message.get("thinking") or value.get("thinking"),
        asked=asked,
        finish=value.get("done_reason"),
        model=value.get("model"),
        counts=Counts(
            input_total=whole_number(sent),
            output_total=whole_number(received),
            source="eval_count",
        ),
        start_ns=any_time_ns(value.get("created_at")),
    )
    if "content" in message or "response" in value:
        note_emptiness(answer)
    return answer


def _of_bedrock(value: dict[str, Any]) -> Answer:
    answer = Answer(
        asked=[],
        finish=value.get("stopReason"),
        counts=usage_counts(value.get("usage")),
        role="assistant",
    )
    for part in listed(value["output"]["message"].get("content")):
        held = mapping(part)
        use = mapping(held.get("toolUse"))
        thought = mapping(mapping(held.get("reasoningContent")).get("reasoningText"))
        if use:
            answer.asked.append(
                Asked(use.get("name"), use.get("toolUseId"), use.get("input"))
            )
        answer.reasoning = joined(answer.reasoning, thought.get("text"))
        answer.text = joined(answer.text, held.get("text"))
    note_emptiness(answer)
    return answer
