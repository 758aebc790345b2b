"""Reader of logs of model requests and their responses, as proxies and batches write.

Each record is one model call: {request, response}, {messages, response} (LiteLLM),
{custom_id, response: {body}} (batch output), or a response alone. The messages of a
request repeat what was said before; they are kept as the input of the call and are
never counted as calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.answers import (
    Answer,
    add_answer,
    answer_of,
    is_chat_completion,
)
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import word
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks, clip
from apps.engine.reading.token_counts import whole_number
from apps.engine.reading.transcript import Draft, ToolResult, Transcript, with_call
from apps.engine.trace import StepKind, StepStatus, Trace

_SESSIONS: Final = (
    "session_id", "conversation_id", "thread_id", "litellm_session_id",
    "litellm_trace_id", "trace_id",
)  # fmt: skip
_TASKS: Final = ("task", "task_id")
_TIMES: Final = ("timestamp", "start_time", "startTime", "created_at", "time")
_ENDS: Final = ("end_time", "endTime", "completed_at")
_SECONDS: Final = (("latency_ms", 10**6), ("duration_ms", 10**6), ("latency_sec", 10**9),
                   ("latency", 10**9), ("duration", 10**9))  # fmt: skip
_INPUTS: Final = ("messages", "input", "prompt")
_KEPT_BESIDE: Final = frozenset(
    {"request", "response", "messages", "input", "body", "kwargs", "tools"}
)
_TOGETHER: Final = (
    "Nothing in the records says which calls belong together, so they are one trace in "
    "the order of the file."
)
_APART: Final = (
    "The requests of a batch are independent of each other, so no sequence is made of "
    "them."
)


class RequestLog:
    """The format `request-log`."""

    slug = "request-log"
    label = "Request and response log"
    version = 1
    description = (
        "Records of model requests with their responses, as LiteLLM, gateways and "
        "batch outputs write them, or chat completion objects alone; JSON or JSON "
        "lines. Each response is one model call; calls are joined by session id, or by "
        "the earlier answers that a request repeats."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first record holds a response, or is a chat completion."""
        record = first_record(source)
        return _response_in(record) is not None or _is_failed(record)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each conversation; `UnreadableTrace` without any."""
        return demand_a_trace(
            _items(source), nothing="The file holds no response of a model."
        )


def _items(source: Source) -> Iterator[Item]:
    log = _Log()
    yield from read_each(source, log, unroll=True)
    for number, group in enumerate(log.groups.values(), 1):
        yield group.trace(number)


def _response_in(record: Any) -> Any:
    """Return the response that a record holds or is, else `None`."""
    if not isinstance(record, dict):
        return None
    if is_chat_completion(record):
        return record
    for key in ("response", "response_body", "original_response", "result"):
        held = embedded(record.get(key))
        for inner in ("body", "message"):
            if isinstance(held, dict) and isinstance(held.get(inner), dict):
                held = held[inner]
        if answer_of(held) is not None:
            return held
    return None


def _is_failed(record: Any) -> bool:
    """Whether a record is a request that got an error for an answer."""
    return (
        isinstance(record, dict)
        and ("request" in record or "custom_id" in record)
        and _error_in(record) is not None
    )


def _error_in(record: dict[str, Any]) -> dict[str, Any] | None:
    response = record.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    for holder in (record, response, body):
        error = holder.get("error") if isinstance(holder, dict) else None
        if isinstance(error, dict):
            return error
        if isinstance(error, str) and error:
            return {"message": error}
    return None


class _Log:
    """Makes calls of records and puts each into the conversation it belongs to."""

    def __init__(self) -> None:
        self.groups: dict[str, _Group] = {}
        self._said: dict[str, str] = {}

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        response = _response_in(value)
        if response is None and not _is_failed(value):
            raise RefusedRecord("This record holds no response of a model.", "$")
        answer = answer_of(response) or Answer()
        messages = _messages(value)
        key = self._key(value, messages, record.number)
        group = self.groups.setdefault(key, _Group())
        group.add(value, answer, messages)
        for one in answer.asked:
            if one.call_id:
                self._said[f"call {one.call_id}"] = key
        if answer.text:
            self._said[_mark(answer.text)] = key
        yield from ()

    def _key(self, value: dict[str, Any], messages: list[Any], number: int) -> str:
        session = _named(value, _SESSIONS)
        if session is not None:
            return f"session {session}"
        if not messages:
            return "file"
        for message in reversed(messages):
            if not isinstance(message, dict):
                continue
            known = self._said.get(f"call {message.get('tool_call_id')}")
            if known is None and message.get("role") == "assistant":
                known = self._said.get(_mark(message.get("content")))
            if known is not None:
                return known
        return f"record {number}"


def _mark(content: Any) -> str:
    return hashlib.sha256(repr(content).encode("utf-8", "replace")).hexdigest()


def _holders(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield value
    for key in ("metadata", "request", "body", "kwargs"):
        held = value.get(key)
        if isinstance(held, dict):
            yield held
            for inner in ("metadata", "body"):
                if isinstance(held.get(inner), dict):
                    yield held[inner]


def _named(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    for holder in _holders(value):
        for key in keys:
            if isinstance(holder.get(key), str | int) and holder[key] != "":
                return holder[key]
    return None


def _messages(value: dict[str, Any]) -> list[Any]:
    for holder in _holders(value):
        for key in _INPUTS:
            held = embedded(holder.get(key))
            if isinstance(held, list) and held:
                return held
            if isinstance(held, str) and held and key != "messages":
                return [{"role": "user", "content": held}]
    return []


class _Group:
    """One conversation while the log is being read."""

    def __init__(self) -> None:
        self._remarks = Remarks()
        self._transcript = Transcript(self._remarks)
        self._first: dict[str, Any] = {}
        self._seen = 0

    def add(self, value: dict[str, Any], answer: Answer, messages: list[Any]) -> None:
        """Add one record: what is new in its request, its call, its tool calls."""
        if not self._first:
            self._first = value
            if "custom_id" in value:
                self._remarks.add(_APART)
            elif not messages:
                self._remarks.add(_TOGETHER)
        self._take_new(messages)
        error = _error_in(value)
        if error is not None:
            answer.error_type = error.get("type") or error.get("code") or "error"
            answer.error_message = error.get("message")
        recorded = _time(value, _TIMES)
        answer.start_ns = answer.start_ns if recorded is None else recorded
        if "custom_id" in value:
            answer.conversation = value["custom_id"]
        draft = add_answer(self._transcript, answer)
        draft.end_ns = _end(value, recorded)
        draft.input = messages or None
        draft.attributes = {k: v for k, v in value.items() if k not in _KEPT_BESIDE and
                            not is_chat_completion(value)} or None  # fmt: skip
        if error is not None:
            draft.status = StepStatus.ERROR
        if draft.call is not None and answer.model is None:
            with_call(draft, model=clip(_named(value, ("model",)), NAME, self._remarks))

    def _take_new(self, messages: list[Any]) -> None:
        """Take the messages that earlier requests did not hold: results, users' words."""
        for message in messages[self._seen :]:
            role = word(message.get("role")) if isinstance(message, dict) else ""
            if role in {"tool", "function"} and self._transcript.asked(
                message.get("tool_call_id")
            ):
                self._transcript.give(
                    ToolResult(
                        output=message.get("content"),
                        call_id=message.get("tool_call_id"),
                    )
                )
            elif role in {"user", "system", "developer"}:
                kind = StepKind.USER_MESSAGE if role == "user" else StepKind.SYSTEM
                self._transcript.add(
                    Draft(kind=kind, native_kind=role, output=message.get("content"))
                )
        self._seen = max(self._seen, len(messages))

    def trace(self, number: int) -> Trace:
        """Return the trace; `number` names a conversation without a name."""
        remarks = self._remarks
        session = clip(_named(self._first, _SESSIONS), IDENTIFIER, remarks)
        steps, invocations, order = self._transcript.finished()
        starts = [step.start_ns for step in steps if step.start_ns is not None]
        ends = [step.end_ns for step in steps if step.end_ns is not None]
        return Trace(
            name=session or f"conversation {number}",
            steps=steps,
            invocations=invocations,
            session=session,
            start_ns=min(starts, default=None),
            end_ns=max(ends, default=None),
            order=order,
            task=clip(_named(self._first, _TASKS), LABEL, remarks),
            trial=whole_number(_named(self._first, ("trial",))),
            notes=remarks.sentences(),
        )


def _time(value: dict[str, Any], keys: tuple[str, ...]) -> int | None:
    times = (any_time_ns(value.get(key)) for key in keys)
    return next((time for time in times if time is not None), None)


def _end(value: dict[str, Any], start: int | None) -> int | None:
    end = _time(value, _ENDS)
    if end is not None or start is None:
        return end
    for key, factor in _SECONDS:
        took = value.get(key)
        if isinstance(took, int | float) and not isinstance(took, bool) and took >= 0:
            return start + round(min(took, 10**9) * factor)
    return None
