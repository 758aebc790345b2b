"""Reader of logs of model requests and their responses, as proxies and batches write.

Each record is one model call: {request, response}, {messages, response} (LiteLLM),
{custom_id, response: {body}} (batch output), or a response alone, whole or as the
pieces of a stream. The messages of a request repeat what was said before; they are
kept as the input of the call and are never counted as calls. Version 2 keeps the names
of the tools of a request, as what was offered, and an answer without content as an
empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading import request_records as records
from apps.engine.reading.answer_parts import Answer
from apps.engine.reading.answer_pieces import AnswerPieces
from apps.engine.reading.answer_streams import is_chunk
from apps.engine.reading.answers import add_answer, is_chat_completion
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.offered import beside
from apps.engine.reading.recorded import time_range
from apps.engine.reading.request_messages import (
    NewMessages,
    answers_said,
    beginning_of,
    mark_of,
)
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks, clip
from apps.engine.reading.transcript import Draft, Invoked, Transcript, with_call
from apps.engine.trace import Trace, Via

_KEPT_BESIDE: Final = frozenset(
    {
        "request", "response", "messages", "input", "body", "kwargs", "tools",
        "functions",
        "request_body", "response_body", "requestBody", "responseBody", "prompt",
        "fncall_messages", "fncall_response", "result", "contents",
    }
)  # fmt: skip
_LOOSE: Final = "file"
_TOGETHER: Final = (
    "Nothing in the records says which calls belong together, so they are one trace in "
    "the order of the file."
)
_APART: Final = (
    "The requests of a batch are independent of each other, so no sequence is made of "
    "them."
)
_AGENTS: Final = (
    "The requests begin with different system messages and name no agents; each of "
    "these beginnings was taken for a conversation of its own."
)


class RequestLog:
    """The format `request-log`."""

    slug = "request-log"
    label = "Request and response log"
    version = 2
    description = (
        "Records of model requests with their responses, as LiteLLM, gateways and "
        "batch outputs write them, or answers of an API alone (chat completions and "
        "their chunks, Gemini, Ollama, Bedrock); JSON or JSON lines. Each response is "
        "one model call; calls are joined by session id, or by the earlier answers "
        "that a request repeats."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first record holds a response, or is one or a piece of one."""
        record = first_record(source)
        return is_chunk(record) or records.answer_in(record) is not None

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each conversation; `UnreadableTrace` without any."""
        return demand_a_trace(
            _items(source), nothing="The file holds no response of a model."
        )


def _items(source: Source) -> Iterator[Item]:
    log = _Log()
    yield from read_each(source, log, unroll=True)
    log.end()
    for number, group in enumerate(log.groups.values(), 1):
        yield group.trace(number)


class _Log:
    """Makes calls of records and puts each into the conversation it belongs to."""

    def __init__(self) -> None:
        self.groups: dict[str, _Group] = {}
        self._said: dict[str, str] = {}
        self._pieces = AnswerPieces()

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if self._pieces.take(value):
            return
        answer = records.answer_in(value)
        if answer is None:
            raise RefusedRecord("This record holds no response of a model.", "$")
        self._add(value, answer, record.number)
        yield from ()

    def end(self) -> None:
        """Add the answers that the pieces of streams make."""
        for number, answer in enumerate(self._pieces.answers(), 1):
            self._add({}, answer, number)

    def _add(self, value: dict[str, Any], answer: Answer, number: int) -> None:
        messages = records.messages_in(value)
        key = self._key(value, messages, number)
        group = self.groups.setdefault(key, _Group())
        group.is_loose = key == _LOOSE
        group.add(value, answer, messages)
        for one in answer.asked:
            if one.call_id:
                self._said[f"call {one.call_id}"] = key
        if answer.text:
            self._said[mark_of(answer.text)] = key

    def _key(self, value: dict[str, Any], messages: list[Any], number: int) -> str:
        session = records.named(value, records.SESSIONS)
        if session is not None:
            return f"session {session}"
        for message in reversed(messages):
            for said in answers_said(message):
                if said in self._said:
                    return self._said[said]
        # The trace id of a gateway often names one request and its retries only.
        trace = records.named(value, records.TRACES)
        if trace is not None:
            return f"trace {trace}"
        return f"record {number}" if messages else _LOOSE


class _Group:
    """One conversation while the log is being read."""

    def __init__(self) -> None:
        self._remarks = Remarks()
        self._transcript = Transcript(self._remarks)
        self._new = NewMessages(self._transcript)
        self._first: dict[str, Any] | None = None
        self._failed: tuple[str, int] | None = None
        self.is_loose = False
        self._agents: dict[str, int] = {}
        self._beginnings: dict[str, list[Draft]] = {}

    def add(self, value: dict[str, Any], answer: Answer, messages: list[Any]) -> None:
        """Add one record: what is new in its request, its call, its tool calls."""
        if self._first is None:
            self._first = value
            if "custom_id" in value:
                self._remarks.add(_APART)
        invocation = self._agent(value)
        self._new.take(messages, invocation)
        error = records.error_in(value)
        if error is not None:
            answer.error_type = error.get("type") or "error"
            answer.error_message = error.get("message")
        start, end = records.times_of(value)
        answer.start_ns = answer.start_ns if start is None else start
        if "custom_id" in value:
            answer.conversation = value["custom_id"]
        number = len(self._transcript.drafts)
        draft = add_answer(self._transcript, answer, invocation)
        sent = mark_of(messages)
        if self._failed is not None and self._failed[0] == sent and messages:
            with_call(draft, retry_of=self._failed[1])
        self._failed = None if error is None else (sent, number)
        self._complete(draft, value, messages)
        draft.end_ns = end
        if draft.call is not None and answer.model is None:
            model = records.named(value, ("model", "request_model", "ai_model"))
            with_call(draft, model=clip(model, NAME, self._remarks))

    def _complete(
        self, draft: Draft, value: dict[str, Any], messages: list[Any]
    ) -> None:
        draft.input = messages or None
        if not is_chat_completion(value):
            rest = {k: v for k, v in value.items() if k not in _KEPT_BESIDE}
            draft.attributes = rest or None
        draft.attributes = beside(draft.attributes, records.offered_in(value))
        beginning = beginning_of(messages)
        if beginning is not None:
            self._beginnings.setdefault(beginning, []).append(draft)

    def _agent(self, value: dict[str, Any]) -> int:
        name = records.named(value, records.AGENTS)
        if not isinstance(name, str):
            return 0
        if not self._agents:
            self._transcript.invocations[0].agent = name
            self._agents[name] = 0
        elif name not in self._agents:
            self._agents[name] = self._transcript.invoke(
                Invoked(agent=name, parent=0, via=Via.MANAGED)
            )
        return self._agents[name]

    def _tell_agents_apart(self) -> None:
        """Give calls with different system messages different conversations."""
        if self._agents or len(self._beginnings) < 2:
            return
        self._remarks.add(_AGENTS)
        for number, drafts in enumerate(self._beginnings.values(), 1):
            for draft in drafts:
                with_call(draft, conversation=f"system message {number}")

    def trace(self, number: int) -> Trace:
        """Return the trace; `number` names a conversation without a name."""
        remarks, first = self._remarks, self._first or {}
        if "custom_id" not in first:
            self._tell_agents_apart()
            if self.is_loose and len(self._transcript.drafts) > 1:
                self._remarks.add(_TOGETHER)
        session = clip(records.named(first, records.SESSIONS), IDENTIFIER, remarks)
        steps, invocations, order = self._transcript.finished()
        start, end = time_range(steps)
        return Trace(
            name=session or f"conversation {number}",
            steps=steps,
            invocations=invocations,
            session=session,
            start_ns=start,
            end_ns=end,
            order=order,
            task=clip(records.named(first, records.TASKS), LABEL, remarks),
            trial=records.trial_of(first),
            notes=remarks.sentences(),
        )
