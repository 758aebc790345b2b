"""Reader of LangChain messages and LangGraph states.

Messages come in three spellings (dumpd, messages_to_dict, model_dump), as a list, in a
state, or in the history of a thread, which is newest first and repeats itself: each
message is read once. A message names its agent; nothing says when an agent was invoked
anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.answers import Answer, Asked, add_answer, chat_tool_calls
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.ground_truth import parted
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.langchain_chunks import lengthened, whole
from apps.engine.reading.langchain_records import (
    is_listed_snapshot,
    is_message,
    is_pair,
    is_update,
    messages_in,
    plain,
    snapshot_of,
    thread_of,
)
from apps.engine.reading.recorded import listed, mapping, word
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks, clip
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.reading.transcript import Draft, Invoked, ToolResult, Transcript
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import StepKind, StepStatus, Trace, Via

_STATUSES: Final = {"error": StepStatus.ERROR, "success": StepStatus.OK}
_THINKING: Final = frozenset({"thinking", "reasoning", "redacted_thinking"})
_READ: Final = frozenset(
    {
        "content", "type", "name", "id", "tool_calls", "invalid_tool_calls",
        "usage_metadata", "tool_call_id", "status", "example", "tool_call_chunks",
        "chunk_position",
    }
)  # fmt: skip


class LangChain:
    """The format `langchain-messages`."""

    slug = "langchain-messages"
    label = "LangChain messages and LangGraph state"
    version = 1
    description = (
        "Messages of LangChain (human, ai, tool) in any of their three spellings, a "
        "LangGraph state that holds them, or the state history of a thread. Each "
        "message is read once, however often the history repeats it."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a message, a state or a list of them."""
        values = first_values(source)
        first = values[0] if values else None
        if isinstance(first, list) and not is_pair(first):
            first = snapshot_of(first) or (first[0] if first else None)
        if isinstance(first, list):
            return is_pair(first) or is_listed_snapshot(first)
        return is_message(first) or messages_in(first) is not None

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each conversation or thread; `UnreadableTrace` without."""
        return demand_a_trace(
            _items(source), nothing="The file holds no LangChain messages."
        )


def _items(source: Source) -> Iterator[Item]:
    values = first_values(source)
    first = values[0] if values else None
    taker = _Taker()
    is_one = is_pair(first) or is_listed_snapshot(first)
    yield from read_each(source, taker, unroll=not is_one)
    yield from taker.traces()


class _Taker:
    """Takes messages and states out of the records, by thread."""

    def __init__(self) -> None:
        self._loose: _Thread | None = None
        self._states: dict[str, _Thread] = {}
        self._threads: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        snapshot = snapshot_of(value)
        if snapshot is not None:
            thread = thread_of(snapshot) or ""
            self._threads.setdefault(thread, []).append(snapshot)
        elif is_message(value) or is_pair(value) or is_update(value):
            self._take_loose(value)
        elif isinstance(value, list):
            made = _Thread()
            made.take_all(value)
            yield made.trace(f"conversation {record.number}")
        else:
            self._take_state(value, record.number)

    def _take_loose(self, value: Any) -> None:
        """Add what stands alone: a message, one with metadata, or an update."""
        self._loose = self._loose or _Thread(skips_repeats=not is_message(value))
        if is_message(value):
            self._loose.take(value)
        elif is_pair(value):
            self._loose.take(value[0])
            self._loose.facts |= value[1]
        else:
            for message in messages_in(value) or []:
                self._loose.take_if_message(message)

    def _take_state(self, value: Any, number: int) -> None:
        """Add a state; one that begins like an earlier one is a later state of it."""
        messages = messages_in(value)
        if messages is None:
            raise RefusedRecord("This is no LangChain message and no state.", "$")
        first = plain(messages[0]) if messages else None
        own_id = first[1].get("id") if first else None
        key = own_id if isinstance(own_id, str) else f"record {number}"
        if key not in self._states:
            self._states[key] = _Thread(skips_repeats=isinstance(own_id, str))
        self._states[key].take_all(messages)

    def traces(self) -> Iterator[Item]:
        """Yield what needed the whole file: states, loose messages and threads."""
        for number, made in enumerate(self._states.values(), 1):
            yield made.trace(f"conversation {number}")
        if self._loose is not None:
            yield self._loose.trace("conversation")
        for thread, snapshots in self._threads.items():
            made = _Thread(skips_repeats=True)
            made.take_history(snapshots)
            yield made.trace(f"thread {thread}" if thread else "thread")


class _Thread:
    """One conversation while it is being read."""

    def __init__(self, *, skips_repeats: bool = False) -> None:
        self.facts: dict[str, Any] = {}
        self._skips_repeats = skips_repeats
        self._chunked: dict[str, dict[str, Any]] = {}
        self._remarks = Remarks()
        self._transcript = Transcript(self._remarks)
        self._authors: dict[str, list[Draft]] = {}
        self._seen: set[str] = set()
        self._snapshots: list[dict[str, Any]] = []

    def take_history(self, snapshots: list[dict[str, Any]]) -> None:
        """Take the messages of all snapshots, oldest first, each once."""
        oldest_first = snapshots[::-1]
        oldest_first.sort(key=lambda one: any_time_ns(one.get("created_at")) or 0)
        self._snapshots = oldest_first
        for snapshot in self._snapshots:
            for message in messages_in(snapshot) or []:
                self.take_if_message(message)
        for snapshot in self._snapshots:
            for task in listed(snapshot.get("tasks")):
                self._take_failure(mapping(task))

    def _take_failure(self, task: dict[str, Any]) -> None:
        if task.get("error"):
            self._transcript.add(
                Draft(
                    kind=StepKind.OTHER,
                    name=task.get("name"),
                    native_kind="task",
                    status=StepStatus.ERROR,
                    error_type="task failed",
                    error_message=str(task["error"]),
                )
            )

    def take_all(self, messages: list[Any]) -> None:
        """Add all messages; `RefusedRecord` for what is none."""
        if not messages:
            raise RefusedRecord("The conversation has no messages.", "$")
        for index, message in enumerate(messages):
            if not is_message(message):
                raise RefusedRecord("This is no LangChain message.", f"$[{index}]")
            self.take(message)

    def take_if_message(self, message: Any) -> None:
        """Add one entry of a list of messages; what is none is remarked on."""
        if is_message(message):
            self.take(message)
        else:
            self._remarks.add("Entries of states that are no messages, not read: {n}.")

    def take(self, message: Any) -> None:
        """Add one message, unless one with its id was added before."""
        found = plain(message)
        if found is None:
            return
        kind, fields = found
        own_id = fields.get("id")
        if kind == "chunk":
            self._chunk(str(own_id), fields)
            return
        self._end_chunks()
        mark = own_id if isinstance(own_id, str) else json.dumps(fields, sort_keys=True)
        if self._skips_repeats and mark in self._seen:
            return
        self._seen.add(mark)
        self._add(kind, fields)

    def _chunk(self, own_id: str, fields: dict[str, Any]) -> None:
        if self._skips_repeats and own_id in self._seen:
            return
        before = self._chunked.get(own_id, {})
        self._chunked[own_id] = lengthened(before, fields)

    def _end_chunks(self) -> None:
        """Add the answers whose chunks were read."""
        for own_id, fields in self._chunked.items():
            self._seen.add(own_id)
            self._answer(whole(fields))
        self._chunked = {}

    def _add(self, kind: str, fields: dict[str, Any]) -> None:
        if kind == "ai":
            self._answer(fields)
        elif kind == "tool":
            self._result(fields)
        elif kind == "remove":
            self._remarks.add("Messages that remove others, not read: {n}.")
        else:
            self._say(kind, fields)

    def _say(self, kind: str, fields: dict[str, Any]) -> None:
        is_user = kind == "human" or fields.get("role") == "user"
        self._transcript.add(
            Draft(
                kind=StepKind.USER_MESSAGE if is_user else StepKind.SYSTEM,
                name=fields.get("name"),
                native_kind=kind,
                native_id=fields.get("id"),
                output=fields["content"],
            )
        )

    def _answer(self, fields: dict[str, Any]) -> None:
        before = len(self._transcript.drafts)
        draft = add_answer(self._transcript, _answer_in(fields))
        draft.name = fields.get("name")
        draft.native_id = fields.get("id")
        draft.attributes = {k: v for k, v in fields.items() if k not in _READ and v}
        for call in listed(fields.get("invalid_tool_calls")):
            self._invalid(mapping(call), before)
        author = clip(fields.get("name"), NAME, self._remarks)
        if author:
            mine = self._transcript.drafts[before:]
            self._authors.setdefault(author, []).extend(mine)

    def _invalid(self, call: dict[str, Any], by: int) -> None:
        draft = self._transcript.ask(
            name=call.get("name"),
            call_id=call.get("id"),
            arguments=call.get("args"),
            by=by,
        )
        draft.status = StepStatus.ERROR
        draft.error_type = "invalid tool call"
        draft.error_message = call.get("error")

    def _result(self, fields: dict[str, Any]) -> None:
        status = _STATUSES.get(str(fields.get("status")), StepStatus.UNSET)
        content = fields["content"]
        failed = status is StepStatus.ERROR
        self._transcript.give(
            ToolResult(
                output=content,
                call_id=fields.get("tool_call_id"),
                status=status,
                error_message=content if failed and isinstance(content, str) else None,
                native_kind="tool",
            )
        )

    def trace(self, name: str) -> Trace:
        """Return the trace; `name` is used where nothing names it."""
        self._end_chunks()
        remarks, transcript = self._remarks, self._transcript
        names = list(self._authors)
        if len(names) == 1:
            transcript.invocations[0].agent = names[0]
        for author in names if len(names) > 1 else ():
            number = transcript.invoke(Invoked(agent=author, parent=0, via=Via.MANAGED))
            for draft in self._authors[author]:
                draft.invocation = number
        steps, invocations, order = transcript.finished()
        facts, labels = parted(self._facts())
        times = [any_time_ns(one.get("created_at")) for one in self._snapshots]
        known = [time for time in times if time is not None]
        last = self._snapshots[-1] if self._snapshots else {"metadata": self.facts}
        return Trace(
            name=clip(name, NAME, remarks) or "conversation",
            steps=steps,
            invocations=invocations,
            session=clip(thread_of(last), IDENTIFIER, remarks),
            start_ns=min(known, default=None),
            end_ns=max(known, default=None),
            order=order,
            task=clip(facts.get("task", facts.get("task_id")), LABEL, remarks),
            trial=whole_number(facts.get("trial")),
            metadata=facts,
            labels=labels,
            notes=remarks.sentences(),
        )

    def _facts(self) -> dict[str, Any]:
        found = dict(self.facts)
        for snapshot in self._snapshots:
            found |= mapping(snapshot.get("metadata"))
        return {key: item for key, item in found.items() if key != "writes"}


def _answer_in(fields: dict[str, Any]) -> Answer:
    told = mapping(fields.get("response_metadata"))
    extra = mapping(fields.get("additional_kwargs"))
    text, reasoning = _parted(fields["content"])
    calls = listed(fields.get("tool_calls"))
    asked = [
        Asked(call.get("name"), call.get("id"), call.get("args"))
        for call in calls
        if isinstance(call, dict)
    ]
    return Answer(
        text=text,
        reasoning=extra.get("reasoning_content") or reasoning,
        asked=asked or ([] if calls else chat_tool_calls(extra)),
        finish=told.get("finish_reason") or told.get("stop_reason")
        or told.get("done_reason"),
        model=told.get("model_name") or told.get("model"),
        response_id=told.get("id") or fields.get("id"),
        counts=_counts(fields, told),
        role="ai",
    )  # fmt: skip


def _counts(fields: dict[str, Any], told: dict[str, Any]) -> Counts:
    """Return LangChain's own counts, in which the input includes the cache."""
    own = usage_counts(fields.get("usage_metadata"), "usage_metadata")
    if own.output_total is not None or own.input_total is not None:
        return own
    for key in ("token_usage", "usage"):
        if told.get(key):
            return usage_counts(told[key], f"response_metadata.{key}")
    return own


def _parted(content: Any) -> tuple[Any, Any]:
    """Return the content without its reasoning parts, and the reasoning."""
    if not isinstance(content, list):
        return (content or None), None
    thought = [
        part.get("thinking") or part.get("reasoning") or part.get("summary")
        for part in content
        if isinstance(part, dict) and word(part.get("type")) in _THINKING
    ]
    rest = [
        part
        for part in content
        if not (isinstance(part, dict) and word(part.get("type")) in _THINKING)
    ]
    texts = [told for told in thought if isinstance(told, str)]
    return rest or None, "\n".join(texts) or (thought or None)
