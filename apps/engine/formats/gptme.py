"""Reader of gptme conversations (conversation.jsonl): one message a line.

The usage of an answer stands in its metadata, its input without what the cache holds.
Tools are called in the text of an answer; only calls in gptme's own `@name(id): {...}`
form are read as tool calls, code blocks are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.messages import Conversation, is_message
from apps.engine.reading.recorded import time_range
from apps.engine.reading.text_limits import NAME, Remarks, clip
from apps.engine.reading.token_counts import Counts, usage_of, whole_number, with_cache
from apps.engine.reading.transcript import ToolResult, with_call
from apps.engine.trace import OrderSource, StepKind, Trace, Usage

_MARKS: Final = frozenset({"pinned", "hide", "quiet", "call_id"})
_CALL: Final = re.compile(r"^@([\w.-]+)\(([\w-]+)\):\s*(?=\{)", re.MULTILINE)


class Gptme:
    """The format `gptme`."""

    slug = "gptme"
    label = "gptme conversation"
    version = 1
    description = (
        "A conversation.jsonl of gptme: one message a line, the whole file one "
        "conversation. Tools that are called in code blocks are left in the text."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first messages have times and a mark that gptme writes."""
        values = first_values(source)
        return bool(values) and all(map(_is_line, values)) and any(map(_is_own, values))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield the trace of the conversation; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no message of a conversation."
        )


def _is_line(value: Any) -> bool:
    return is_message(value) and isinstance(value.get("timestamp"), str)


def _is_own(value: dict[str, Any]) -> bool:
    metadata = value.get("metadata")
    answered = isinstance(metadata, dict) and "model" in metadata
    return answered or not _MARKS.isdisjoint(value)


def _items(source: Source) -> Iterator[Item]:
    log = _Log()
    yield from read_each(source, log, unroll=False)
    if log.made.transcript.drafts:
        yield log.trace()


class _Log:
    """Collects the messages of one conversation."""

    def __init__(self) -> None:
        self.remarks = Remarks()
        self.made = Conversation(self.remarks)

    def __call__(self, record: Record) -> Iterator[Trace]:
        message = record.value
        if not is_message(message):
            raise RefusedRecord("This is no message: it needs a role and content.", "$")
        time = any_time_ns(message.get("timestamp"))
        if self._is_result(message):
            self.made.transcript.give(
                ToolResult(
                    output=message.get("content"),
                    call_id=message["call_id"],
                    end_ns=time,
                    native_kind=message["role"],
                )
            )
        else:
            self._add(message, time)
        yield from ()

    def _is_result(self, message: dict[str, Any]) -> bool:
        if message["role"] == "assistant" or "call_id" not in message:
            return False
        return self.made.transcript.asked(message["call_id"]) is not None

    def _add(self, message: dict[str, Any], time: int | None) -> None:
        metadata = message.get("metadata")
        draft = self.made.add({k: v for k, v in message.items() if k != "timestamp"})
        if draft.start_ns is None:
            draft.start_ns = time
        draft.end_ns = time
        if draft.kind is not StepKind.MODEL_CALL:
            return
        number = len(self.made.transcript.drafts) - 1
        if isinstance(metadata, dict):
            model = clip(metadata.get("model"), NAME, self.remarks)
            draft.name = draft.name or model
            with_call(draft, usage=_usage(metadata), model=model)
        for name, own_id, arguments in _calls(message.get("content")):
            self.made.transcript.ask(
                name=name, call_id=own_id, arguments=arguments, by=number
            )

    def trace(self) -> Trace:
        """Return the trace; call it once."""
        steps, invocations = self.made.finished()
        start, end = time_range(steps)
        return Trace(
            name="gptme conversation",
            steps=steps,
            invocations=invocations,
            start_ns=start,
            end_ns=end,
            order=OrderSource.FILE,
            notes=self.remarks.sentences(),
        )


def _calls(content: Any) -> Iterator[tuple[str, str, Any]]:
    """The tool calls in the text of an answer: name, id and arguments."""
    if not isinstance(content, str):
        return
    for found in _CALL.finditer(content):
        try:
            arguments, _ = json.JSONDecoder().raw_decode(content, found.end())
        except (ValueError, RecursionError):
            continue
        yield found.group(1), found.group(2), arguments


def _usage(metadata: dict[str, Any]) -> Usage:
    usage = metadata.get("usage")
    # Older versions wrote the counts beside the model.
    counts = usage if isinstance(usage, dict) else metadata
    cached = whole_number(counts.get("cache_read_tokens"))
    written = whole_number(counts.get("cache_creation_tokens"))
    return usage_of(
        Counts(
            input_total=with_cache(
                whole_number(counts.get("input_tokens")), cached, written
            ),
            input_cached=cached,
            input_cache_write=written,
            output_total=whole_number(counts.get("output_tokens")),
            output_reasoning=whole_number(counts.get("reasoning_tokens")),
            source="metadata.usage.output_tokens",
        )
    )
