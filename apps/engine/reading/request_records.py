"""What one record of a request log holds: its response, error, messages, names, times.

LiteLLM, Helicone, Portkey, batch outputs and home-made logs use different keys for the
same things. A record is looked at from the outside inwards, and a name is taken from
the first place that has it.
Sources: https://docs.litellm.ai/docs/proxy/logging_spec,
https://docs.helicone.ai/rest/request/post-v1requestquery,
https://platform.openai.com/docs/guides/batch,
https://docs.anthropic.com/en/api/retrieving-message-batch-results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.reading.answer_parts import Answer
from apps.engine.reading.answer_streams import (
    completion_of,
    is_chunk,
    is_message_event,
    message_of,
)
from apps.engine.reading.answers import answer_of, is_chat_completion
from apps.engine.reading.clock import any_time_ns, later_ns
from apps.engine.reading.json_values import embedded
from apps.engine.reading.offered import offered_tools
from apps.engine.reading.other_answers import other_answer
from apps.engine.reading.recorded import mapping, word
from apps.engine.reading.token_counts import whole_number
from apps.engine.reading.usage_fields import tells_output, usage_counts

Fields = dict[str, Any]

SESSIONS: Final = (
    "session_id", "sessionId", "conversation_id", "conversationId", "thread_id",
    "litellm_session_id", "Helicone-Session-Id", "helicone-session-id", "chat_id",
)  # fmt: skip
TRACES: Final = ("litellm_trace_id", "trace_id", "traceId")
TASKS: Final = ("task", "task_id")
AGENTS: Final = ("agent_name", "agentName", "agent", "agent_id")
_RESPONSES: Final = (
    "fncall_response", "response", "response_body", "responseBody", "original_response",
    "result",
)  # fmt: skip
_HOLDERS: Final = (
    "metadata", "request", "body", "kwargs", "request_body", "requestBody",
    "properties", "request_properties", "request_metadata",
)  # fmt: skip
_INNER: Final = ("metadata", "body", "properties", "requester_metadata")
_GIVEN: Final = (
    "model_parameters", "optional_params", "config", "generationConfig", "generation_config",
)  # fmt: skip
_MESSAGES: Final = ("fncall_messages", "messages", "input", "contents", "prompt")
_TEXTS: Final = ("response", "response_text", "completion")
_ASKS: Final = frozenset(
    {"request", "custom_id", "request_body", "requestBody", "call_type", "messages"}
)
_TIMES: Final = (
    "timestamp", "start_time", "startTime", "request_created_at", "created_at", "time",
)  # fmt: skip
_ENDS: Final = (
    "end_time", "endTime", "completed_at", "response_created_at", "completionTime",
)  # fmt: skip
_TOOK: Final = (
    ("latency_ms", 10**6), ("duration_ms", 10**6), ("delay_ms", 10**6),
    ("latency_sec", 10**9), ("latency", 10**9), ("duration", 10**9),
)  # fmt: skip
_UNDONE: Final = frozenset({"errored", "canceled", "expired"})


def response_in(record: Any) -> Any:
    """Return the response that a record holds or is, else `None`."""
    if not isinstance(record, dict):
        return None
    if is_chat_completion(record) or other_answer(record) is not None:
        return record
    for key in _RESPONSES:
        held = _opened(embedded(record.get(key)))
        if answer_of(held) is not None:
            return held
    return None


def _opened(held: Any) -> Any:
    """Return what an envelope holds; the pieces of a stream are put together."""
    for inner in ("body", "message"):
        within = embedded(held.get(inner)) if isinstance(held, dict) else None
        if isinstance(within, dict) and not is_chat_completion(held):
            if other_answer(held) is not None:
                return held
            held = within
    if isinstance(held, list) and held and all(map(is_chunk, held)):
        return completion_of(held)
    if isinstance(held, list) and held and all(map(is_message_event, held)):
        return message_of(held)
    return held


def answer_in(record: Any) -> Answer | None:
    """Return the answer of a record; an empty one where its request failed.

    `None` for what is no record of a request. Where only the text of a response was
    kept, the counts beside it are its usage.
    """
    answer = answer_of(response_in(record))
    if answer is not None:
        return answer
    if not isinstance(record, dict):
        return None
    text = next((record[k] for k in _TEXTS if isinstance(record.get(k), str)), None)
    usage = record.get("usage")
    counted = usage if isinstance(usage, dict) else record
    counts = usage_counts(counted, "usage" if counted is usage else "record")
    is_call = not record.keys().isdisjoint(_ASKS | {"prompt"}) and (
        isinstance(usage, dict) or {"prompt_tokens", "model"} <= record.keys()
    )
    if is_call and (text is not None or tells_output(counted)):
        return Answer(text=text, counts=counts)
    return Answer() if is_failed(record) else None


def is_failed(record: Any) -> bool:
    """Whether a record is a request that got an error for an answer."""
    return (
        isinstance(record, dict)
        and not record.keys().isdisjoint(_ASKS)
        and error_in(record) is not None
    )


def error_in(record: Fields) -> Fields | None:
    """Return the error of a record as {type, message}, else `None`."""
    for error in _errors(record):
        if isinstance(error, str) and error:
            return {"message": error}
        if isinstance(error, dict) and error:
            while isinstance(error.get("error"), dict):
                error = error["error"]
            return {
                "type": error.get("type") or error.get("code")
                or error.get("error_class") or error.get("error_code"),
                "message": error.get("message") or error.get("error_message"),
            }  # fmt: skip
    undone = word(mapping(record.get("result")).get("type"))
    return {"type": undone} if undone in _UNDONE else None


def _errors(record: Fields) -> Iterator[Any]:
    yield record.get("error")
    for key in _RESPONSES:
        held = embedded(record.get(key))
        if isinstance(held, dict):
            yield held.get("error")
            yield mapping(embedded(held.get("body"))).get("error")
    if record.get("status") == "failure":
        told = mapping(record.get("error_information"))
        yield told if any(told.values()) else None
        yield record.get("error_str")


def _holders(record: Fields) -> Iterator[Fields]:
    yield record
    for key in _HOLDERS:
        held = embedded(record.get(key))
        if isinstance(held, dict):
            yield held
            for inner in _INNER:
                within = embedded(held.get(inner))
                if isinstance(within, dict):
                    yield within


def named(record: Fields, keys: tuple[str, ...]) -> Any:
    """Return the first text or number at one of `keys`, from the outside inwards."""
    for holder in _holders(record):
        for key in keys:
            if isinstance(holder.get(key), str | int) and holder[key] != "":
                return holder[key]
    return None


def trial_of(record: Fields) -> int | None:
    """Return the number of the repeat that a record belongs to."""
    return whole_number(named(record, ("trial",)))


def messages_in(record: Fields) -> list[Any]:
    """Return the messages that were sent; a prompt is one message of the user."""
    for holder in _holders(record):
        for key in _MESSAGES:
            held = embedded(holder.get(key))
            if isinstance(held, list) and held:
                return held
            if isinstance(held, str) and held and key not in {"messages", "contents"}:
                return [{"role": "user", "content": held}]
    return []


def offered_in(record: Fields) -> list[Any]:
    """Return the tools that were offered, as `offered_tools` gives them.

    They stand in the request, or in a response that repeats its request.
    """
    held = [mapping(holder.get(key)) for holder in _holders(record) for key in _GIVEN]
    return offered_tools(*_holders(record), *held, response_in(record))


def times_of(record: Fields) -> tuple[int | None, int | None]:
    """Return when the request began and ended, in nanoseconds."""
    start, end = _time(record, _TIMES), _time(record, _ENDS)
    if end is None and start is not None:
        for key, factor in _TOOK:
            took = record.get(key)
            if isinstance(took, int | float) and not isinstance(took, bool):
                took = round(min(max(took, 0), 10**9) * factor)
                return start, later_ns(start, took)
    return start, end


def _time(record: Fields, keys: tuple[str, ...]) -> int | None:
    times = (any_time_ns(record.get(key)) for key in keys)
    return next((time for time in times if time is not None), None)
