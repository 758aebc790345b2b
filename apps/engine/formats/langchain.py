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
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.recorded import listed, mapping, word
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks, clip
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.reading.transcript import Draft, Invoked, ToolResult, Transcript
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import StepKind, StepStatus, Trace, Via

_TYPES: Final = {
    "human": "human", "HumanMessage": "human", "HumanMessageChunk": "human",
    "ai": "ai", "AIMessage": "ai", "AIMessageChunk": "ai",
    "tool": "tool", "ToolMessage": "tool", "ToolMessageChunk": "tool",
    "function": "tool", "FunctionMessage": "tool",
    "system": "system", "SystemMessage": "system", "developer": "system",
    "chat": "chat", "ChatMessage": "chat", "remove": "remove",
    "RemoveMessage": "remove",
}  # fmt: skip
_SURE: Final = frozenset({"human", "ai", "AIMessageChunk", "HumanMessage", "AIMessage"})
_MARKS: Final = ("additional_kwargs", "response_metadata", "tool_call_id", "tool_calls")
_STATUSES: Final = {"error": StepStatus.ERROR, "success": StepStatus.OK}
_THINKING: Final = frozenset({"thinking", "reasoning", "redacted_thinking"})
_READ: Final = frozenset(
    {
        "content", "type", "name", "id", "tool_calls", "invalid_tool_calls",
        "usage_metadata", "tool_call_id", "status", "example",
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
        if isinstance(first, list):
            first = first[0] if first else None
        return _is_message(first) or _messages_in(first) is not None

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each conversation or thread; `UnreadableTrace` without."""
        return demand_a_trace(
            _items(source), nothing="The file holds no LangChain messages."
        )


def _items(source: Source) -> Iterator[Item]:
    taker = _Taker()
    yield from read_each(source, taker, unroll=True)
    yield from taker.traces()


def _plain(value: Any) -> tuple[str, dict[str, Any]] | None:
    """Return (type, fields) of a message in any spelling, else `None`."""
    if not isinstance(value, dict):
        return None
    if value.get("type") == "constructor" and isinstance(value.get("id"), list):
        fields, name = mapping(value.get("kwargs")), str(value["id"][-1:])[2:-2]
    elif isinstance(value.get("data"), dict) and "content" in value["data"]:
        fields, name = value["data"], str(value.get("type"))
    else:
        fields, name = value, str(value.get("type"))
        if "role" in value and value.get("type") != "chat":
            return None
        if name not in _SURE and not any(mark in value for mark in _MARKS):
            return None
    kind = _TYPES.get(name)
    return (kind, fields) if kind and "content" in fields else None


def _is_message(value: Any) -> bool:
    return _plain(value) is not None


def _messages_in(value: Any) -> list[Any] | None:
    """Return the messages of a state or snapshot, else `None`."""
    if not isinstance(value, dict):
        return None
    values = value.get("values", value)
    for held in mapping(values).values():
        if isinstance(held, list) and held and _is_message(held[0]):
            return held
    is_snapshot = "values" in value and ("next" in value or "config" in value)
    return [] if is_snapshot and isinstance(values, dict) else None


class _Taker:
    """Takes messages and states out of the records, by thread."""

    def __init__(self) -> None:
        self._loose: list[Any] = []
        self._threads: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if isinstance(value, list):
            yield from self._conversation(value, record.number)
            return
        if _is_message(value):
            self._loose.append(value)
            return
        messages = _messages_in(value)
        if messages is None:
            raise RefusedRecord("This is no LangChain message and no state.", "$")
        if "values" in value:
            self._threads.setdefault(_thread_of(value) or "", []).append(value)
            return
        yield from self._conversation(messages, record.number)

    def _conversation(self, messages: list[Any], number: int) -> Iterator[Item]:
        made = _Thread()
        for index, message in enumerate(messages):
            if not _is_message(message):
                raise RefusedRecord("This is no LangChain message.", f"$[{index}]")
            made.take(message)
        if not messages:
            raise RefusedRecord("The conversation has no messages.", "$")
        yield made.trace(f"conversation {number}")

    def traces(self) -> Iterator[Item]:
        """Yield what needed the whole file: loose messages and threads."""
        if self._loose:
            made = _Thread()
            for message in self._loose:
                made.take(message)
            yield made.trace("conversation")
        for thread, snapshots in self._threads.items():
            made = _Thread()
            made.take_history(snapshots)
            yield made.trace(f"thread {thread}" if thread else "thread")


def _thread_of(snapshot: dict[str, Any]) -> str | None:
    for key in ("config", "checkpoint"):
        held = mapping(snapshot.get(key))
        thread = mapping(held.get("configurable", held)).get("thread_id")
        if isinstance(thread, str):
            return thread
    thread = mapping(snapshot.get("metadata")).get("thread_id")
    return thread if isinstance(thread, str) else None


class _Thread:
    """One conversation while it is being read."""

    def __init__(self) -> None:
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
            for message in _messages_in(snapshot) or []:
                if _is_message(message):
                    self.take(message)
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

    def take(self, message: Any) -> None:
        """Add one message, unless one with its id was added before."""
        plain = _plain(message)
        if plain is None:
            return
        kind, fields = plain
        own_id = fields.get("id")
        mark = own_id if isinstance(own_id, str) else json.dumps(fields, sort_keys=True)
        if self._snapshots and mark in self._seen:
            return
        self._seen.add(mark)
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
        remarks, transcript = self._remarks, self._transcript
        names = list(self._authors)
        if len(names) == 1:
            transcript.invocations[0].agent = names[0]
        for author in names if len(names) > 1 else ():
            number = transcript.invoke(Invoked(agent=author, parent=0, via=Via.MANAGED))
            for draft in self._authors[author]:
                draft.invocation = number
        steps, invocations, order = transcript.finished()
        facts = self._facts()
        times = [any_time_ns(one.get("created_at")) for one in self._snapshots]
        known = [time for time in times if time is not None]
        thread = _thread_of(self._snapshots[-1]) if self._snapshots else None
        return Trace(
            name=clip(name, NAME, remarks) or "conversation",
            steps=steps,
            invocations=invocations,
            session=clip(thread, IDENTIFIER, remarks),
            start_ns=min(known, default=None),
            end_ns=max(known, default=None),
            order=order,
            task=clip(facts.get("task", facts.get("task_id")), LABEL, remarks),
            trial=whole_number(facts.get("trial")),
            metadata=facts,
            notes=remarks.sentences(),
        )

    def _facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
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
