"""Reader of OpenAI-style chat messages, as one conversation or many.

It takes a list of messages, a list of conversations, and {"messages": [...]} as JSON
or JSON lines; a first line {"metadata": ...} belongs to all that follow. A file of
bare messages, one a line, is one conversation. Messages record neither usage nor
times: usage is always missing and the order is the file's. Version 3 keeps the names
of the tools that stand beside the messages with each answer, as what it was offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.format import Item, Source
from apps.engine.reading.ground_truth import parted
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.messages import Conversation, is_message
from apps.engine.reading.offered import beside, offered_tools
from apps.engine.reading.recorded import first_text
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks
from apps.engine.reading.token_counts import whole_number
from apps.engine.trace import OrderSource, StepKind, Trace

_SESSION_KEYS: Final = ("session_id", "conversation_id", "thread_id")
_TASK_KEYS: Final = ("task", "task_id")
_ID_KEYS: Final = ("name", "id", "custom_id")


_OTHER_RECORDS: Final = {
    "response": "a log of requests and responses",
    "choices": "a log of requests and responses",
    "trajectory_format": "a mini-swe-agent trajectory",
}
_ONE_A_LINE: Final = (
    "The file holds one message a line, so it was read as one conversation."
)
_ANTHROPIC_PARTS: Final = frozenset({"tool_use", "tool_result", "thinking"})


def is_conversation(value: Any) -> bool:
    """Whether a value is a non-empty list of messages, as far as its first ones say."""
    return (
        isinstance(value, list)
        and bool(value)
        and is_message(value[0])
        and not any(_is_anthropic(message) for message in value)
    )


def _is_anthropic(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") in _ANTHROPIC_PARTS
        for part in content
    )


def _holds_messages(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and is_conversation(value.get("messages"))
        and value.keys().isdisjoint(_OTHER_RECORDS)
    )


def _is_bare(value: Any) -> bool:
    """Whether a value is a message that stands alone, as on a line of its own."""
    return (
        is_message(value)
        and not _is_anthropic(value)
        and value.keys().isdisjoint({"messages", "parts", "type", *_OTHER_RECORDS})
        and isinstance(value.get("content"), str | list | None)
    )


def _is_metadata_line(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("metadata"), dict)
        and "messages" not in value
        and not is_message(value)
    )


class OpenAIChat:
    """The format `openai-chat`."""

    slug = "openai-chat"
    label = "OpenAI chat messages"
    version = 3
    description = (
        "Chat messages (role, content, tool_calls) as a JSON list, as "
        '{"messages": [...]}, or as JSON lines with one conversation a line; a file '
        "with one message a line is one conversation. Token usage is never recorded."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a conversation, perhaps after its metadata."""
        values = first_values(source)
        if values and _is_metadata_line(values[0]):
            values = values[1:]
        first = values[0] if values else None
        if is_conversation(first) or _holds_messages(first) or _is_bare(first):
            return True
        element = first[0] if isinstance(first, list) and first else None
        return is_conversation(element) or _holds_messages(element)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each conversation; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source),
            nothing="The file holds no conversation: no message was found in it.",
        )


def _items(source: Source) -> Iterator[Item]:
    lines = _Lines()
    yield from read_each(source, lines, unroll=_is_list_of_conversations(source))
    yield from lines.bare_conversation()


def _is_list_of_conversations(source: Source) -> bool:
    values = first_values(source)
    first = values[0] if values else None
    return isinstance(first, list) and bool(first) and not is_conversation(first)


class _Lines:
    """Makes traces of records, remembering the metadata line that came before."""

    def __init__(self) -> None:
        self._shared: dict[str, Any] = {}
        self._bare: list[dict[str, Any]] = []

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if _is_metadata_line(value):
            self._shared = value["metadata"]
            return
        if _is_bare(value):
            self._bare.append(value)
            return
        if isinstance(value, list):
            value = {"messages": value}
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            raise RefusedRecord(
                "This is neither a list of messages nor an object with one.", "$"
            )
        yield trace_of(value, shared=self._shared, number=record.number)

    def bare_conversation(self) -> Iterator[Trace]:
        """Yield the one conversation that messages on lines of their own make."""
        if self._bare:
            trace = trace_of({"messages": self._bare}, shared=self._shared, number=1)
            yield msgspec.structs.replace(trace, notes=(_ONE_A_LINE, *trace.notes))


def trace_of(
    conversation: dict[str, Any], *, shared: dict[str, Any], number: int
) -> Trace:
    """Return the trace of one {"messages": ...}; `RefusedRecord` for a bad message.

    `shared` is metadata of the whole file, `number` names a conversation without id.
    """
    messages = conversation["messages"]
    if not messages:
        raise RefusedRecord("The conversation has no messages.", "$.messages")
    _refuse_other_records(conversation)
    remarks = Remarks()
    made = Conversation(remarks)
    offered = offered_tools(conversation, conversation.get("metadata"), shared)
    for index, message in enumerate(messages):
        if not is_message(message):
            raise RefusedRecord(
                "This is not a message: it needs a role (system, developer, user, "
                "assistant, tool) and a content.",
                f"$.messages[{index}]",
            )
        draft = made.add(message)
        if draft.kind is StepKind.MODEL_CALL:
            draft.attributes = beside(draft.attributes, offered)
    steps, invocations = made.finished()
    own = conversation.get("metadata")
    metadata = {
        **shared,
        **{key: item for key, item in conversation.items() if key not in {"messages", "metadata"}},
        **(own if isinstance(own, dict) else {}),
    }  # fmt: skip
    metadata, labels = parted(metadata)
    return Trace(
        name=first_text(metadata, _ID_KEYS, NAME, remarks) or f"conversation {number}",
        steps=steps,
        invocations=invocations,
        session=first_text(metadata, _SESSION_KEYS, IDENTIFIER, remarks),
        order=OrderSource.FILE,
        task=first_text(metadata, _TASK_KEYS, LABEL, remarks),
        trial=whole_number(metadata.get("trial")),
        metadata=metadata,
        labels=labels,
        notes=remarks.sentences(),
    )


def _refuse_other_records(conversation: dict[str, Any]) -> None:
    """Refuse what would lose its tool calls or its usage when read as messages."""
    for key, words in _OTHER_RECORDS.items():
        if key in conversation:
            raise RefusedRecord(
                f"This is {words}, which another reader reads; read as chat messages "
                "its usage would be lost.",
                f"$.{key}",
            )
    for index, message in enumerate(conversation["messages"]):
        if _is_anthropic(message):
            raise RefusedRecord(
                "This is a message with Anthropic content parts, which another reader "
                "reads; read as chat messages its tool calls would be lost.",
                f"$.messages[{index}].content",
            )
