"""Reader of Mistral Vibe sessions (messages.jsonl): OpenAI-style messages with ids.

The messages record neither usage nor times; the totals in meta.json beside the file
are of the whole session.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.engine.format import Item, Source
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.messages import Conversation, is_message
from apps.engine.reading.text_limits import Remarks
from apps.engine.trace import OrderSource, Trace


class MistralVibe:
    """The format `mistral-vibe`."""

    slug = "mistral-vibe"
    label = "Mistral Vibe session"
    version = 1
    description = (
        "A messages.jsonl of Mistral Vibe: one message a line, the whole file one "
        "conversation. Token usage is not recorded in it."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first values are messages with message ids."""
        values = first_values(source)
        return (
            bool(values)
            and all(map(is_message, values))
            and any("message_id" in value and "id" not in value for value in values)
        )

    def read(self, source: Source) -> Iterator[Item]:
        """Yield the trace of the session; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no message of a session."
        )


def _items(source: Source) -> Iterator[Item]:
    remarks = Remarks()
    made = Conversation(remarks)

    def take(record: Record) -> Iterator[Item]:
        message: Any = record.value
        if not is_message(message):
            raise RefusedRecord("This is no message: it needs a role and content.", "$")
        draft = made.add(message)
        draft.native_id = draft.native_id or message.get("message_id")
        yield from ()

    yield from read_each(source, take, unroll=False)
    steps, invocations = made.finished()
    if steps:
        yield Trace(
            name="Mistral Vibe session",
            steps=steps,
            invocations=invocations,
            order=OrderSource.FILE,
            notes=remarks.sentences(),
        )
