"""Reader of Anthropic messages: transcripts, and answers of the Messages API alone.

A transcript records no usage. In an answer the input that was read from or written to
the cache stands beside `input_tokens` and is added to it. Version 2 keeps the names of the
tools of a request with each answer, as what it was offered, and an answer without
content as an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.answer_streams import StreamedMessage, is_message_event
from apps.engine.reading.answers import (
    Answer,
    add_answer,
    answer_of,
    is_anthropic_answer,
    note_emptiness,
    take_anthropic_parts,
)
from apps.engine.reading.ground_truth import parted
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.offered import beside, offered_tools
from apps.engine.reading.recorded import first_text, mapping, word
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks
from apps.engine.reading.token_counts import whole_number
from apps.engine.reading.transcript import Draft, ToolResult, Transcript, ending_of
from apps.engine.trace import StepKind, StepStatus, Trace

_PARTS: Final = frozenset(
    {
        "tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use",
        "web_search_tool_result", "mcp_tool_use", "mcp_tool_result",
    }
)  # fmt: skip
_ROLES: Final = frozenset({"user", "assistant", "system"})
_NAMES: Final = ("name", "id", "custom_id")
_SESSIONS: Final = ("session_id", "conversation_id", "thread_id")
_NO_START: Final = (
    "This event belongs to a streamed message of which the beginning (message_start) is "
    "not in the file."
)
_TOGETHER: Final = (
    "Nothing in the answers says which calls belong together, so they are one trace in "
    "the order of the file."
)


class Anthropic:
    """The format `anthropic-messages`."""

    slug = "anthropic-messages"
    label = "Anthropic messages"
    version = 2
    description = (
        "Messages with content parts (tool_use, tool_result, thinking) as a list or as "
        '{"messages": [...]}, one conversation a line or a file, or the answers of the '
        "Messages API or the events of its stream as JSON lines. Transcripts record no "
        "token usage; answers do."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with an Anthropic transcript or answer."""
        values = first_values(source)
        first = values[0] if values else None
        if isinstance(first, list) and first and not _is_transcript(first):
            first = first[0]
        is_alone = is_anthropic_answer(first) or is_message_event(first)
        return is_alone or _is_transcript(_messages_in(first))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each transcript, and one for all answers alone."""
        return demand_a_trace(
            _items(source), nothing="The file holds no Anthropic messages."
        )


def _items(source: Source) -> Iterator[Item]:
    values = first_values(source)
    first = values[0] if values else None
    is_one = isinstance(first, list) and _is_transcript(first)
    taker = _Taker()
    yield from read_each(source, taker, unroll=not is_one)
    taker.end_stream()
    if taker.answers.transcript.drafts:
        yield taker.answers.trace({}, "answers")


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and word(value.get("role")) in _ROLES
        and "content" in value
    )


def _is_transcript(value: Any) -> bool:
    """Whether a value is a list of messages, one of which has Anthropic's parts."""
    return (
        isinstance(value, list)
        and bool(value)
        and _is_message(value[0])
        and any(_has_parts(message) for message in value)
    )


def _has_parts(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(part, dict) and word(part.get("type")) in _PARTS for part in content
    )


def _is_error(value: Any) -> bool:
    """Whether a value is what the API answers when a request fails."""
    return (
        isinstance(value, dict)
        and value.get("type") == "error"
        and isinstance(value.get("error"), dict)
    )


def _messages_in(value: Any) -> Any:
    return value.get("messages") if isinstance(value, dict) else value


class _Taker:
    """Makes a trace of each transcript and collects the answers that stand alone."""

    def __init__(self) -> None:
        self.answers = _Conversation()
        self._streamed: StreamedMessage | None = None

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if is_message_event(value):
            self._event(value)
            return
        if is_anthropic_answer(value) or _is_error(value):
            self._alone(value)
            return
        messages = _messages_in(value)
        if not isinstance(messages, list) or not messages:
            raise RefusedRecord(
                "This is neither a list of messages nor an answer of a model.", "$"
            )
        facts = value if isinstance(value, dict) else {}
        made = _Conversation()
        made.take(messages, facts)
        yield made.trace(facts, f"conversation {record.number}")

    def _event(self, event: dict[str, Any]) -> None:
        if event["type"] == "message_start":
            self.end_stream()
            self._streamed = StreamedMessage(event)
        elif self._streamed is not None:
            self._streamed.add(event)
        elif event["type"] not in {"ping", "message_stop"}:
            raise RefusedRecord(_NO_START, "$.type")

    def end_stream(self) -> None:
        """Add the message whose events were read last, if there is one."""
        if self._streamed is not None:
            self._alone(self._streamed.whole())
        self._streamed = None

    def _alone(self, value: dict[str, Any]) -> None:
        """Add an answer, or the error that came for one."""
        self.answers.is_alone = True
        if _is_error(value):
            told = mapping(value["error"])
            error = Answer(
                error_type=told.get("type"), error_message=told.get("message")
            )
            add_answer(self.answers.transcript, error)
        else:
            self.answers.answer(value, {})


class _Conversation:
    """One transcript while it is being read."""

    def __init__(self) -> None:
        self.remarks = Remarks()
        self.transcript = Transcript(self.remarks)
        self.is_alone = False
        self._offered: list[Any] = []

    def take(self, messages: list[Any], facts: dict[str, Any]) -> None:
        """Add all messages; `RefusedRecord` for what is none."""
        self._offered = offered_tools(facts)
        if facts.get("system"):
            self._say(StepKind.SYSTEM, facts["system"], "system")
        for index, message in enumerate(messages):
            if not _is_message(message):
                raise RefusedRecord(
                    "This is not a message: it needs a role (user, assistant) and a "
                    "content.",
                    f"$.messages[{index}]",
                )
            if message["role"] == "assistant":
                self.answer(message, facts)
            else:
                self._user(message)

    def answer(self, message: dict[str, Any], facts: dict[str, Any]) -> None:
        """Add an answer with the results of tools that ran at the provider."""
        told = answer_of(message) if is_anthropic_answer(message) else None
        answer = told or Answer(finish=message.get("stop_reason"))
        if told is None:
            take_anthropic_parts(answer, message["content"])
            note_emptiness(answer)
        if answer.model is None:
            answer.model = message.get("model") or facts.get("model")
        draft = add_answer(self.transcript, answer)
        draft.name = message.get("name")
        draft.attributes = beside(draft.attributes, self._offered)
        self._server_results(message["content"])

    def _server_results(self, content: Any) -> None:
        """Join the results of tools that ran at the provider, within the answer."""
        for part in content if isinstance(content, list) else []:
            kind = part.get("type") if isinstance(part, dict) else None
            if kind != "tool_result" and str(kind).endswith("tool_result"):
                self.transcript.give(_result(part))

    def _user(self, message: dict[str, Any]) -> None:
        kind = StepKind.SYSTEM if message["role"] == "system" else StepKind.USER_MESSAGE
        content = message["content"]
        if not isinstance(content, list):
            self._say(kind, content, message["role"])
            return
        said = []
        for part in content:
            if isinstance(part, dict) and part.get("type") == "tool_result":
                self.transcript.give(_result(part))
            else:
                said.append(part)
        if said:
            self._say(kind, said, message["role"])

    def _say(self, kind: StepKind, content: Any, role: str) -> None:
        self.transcript.add(Draft(kind=kind, native_kind=role, output=content))

    def trace(self, facts: dict[str, Any], name: str) -> Trace:
        """Return the trace; `name` is used where the file gives none."""
        if self.is_alone:
            self.remarks.add(_TOGETHER)
        steps, invocations, order = self.transcript.finished()
        metadata = {
            key: item
            for key, item in facts.items()
            if key not in {"messages", "system", "tools", "metadata"}
        }
        own = facts.get("metadata")
        metadata |= own if isinstance(own, dict) else {}
        metadata, labels = parted(metadata)
        return Trace(
            name=first_text(metadata, _NAMES, NAME, self.remarks) or name,
            steps=steps,
            invocations=invocations,
            session=first_text(metadata, _SESSIONS, IDENTIFIER, self.remarks),
            order=order,
            task=first_text(metadata, ("task", "task_id"), LABEL, self.remarks),
            trial=whole_number(metadata.get("trial")),
            metadata=metadata,
            labels=labels,
            notes=self.remarks.sentences(),
        )


def _result(part: dict[str, Any]) -> ToolResult:
    """Return a tool result; it failed only where the message says so."""
    status = ending_of(part.get("is_error"))
    content = part.get("content")
    if isinstance(content, dict) and str(content.get("type")).endswith("_error"):
        status = StepStatus.ERROR
    failed = status is StepStatus.ERROR
    return ToolResult(
        output=content,
        call_id=part.get("tool_use_id"),
        status=status,
        error_message=content if failed and isinstance(content, str) else None,
        native_kind="tool_result",
    )
