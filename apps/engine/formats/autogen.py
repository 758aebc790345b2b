"""Reader of AutoGen: task results, team states, and the event log.

A message with `models_usage` is one model call; AutoGen writes 0/0 there when the
provider told nothing. In the event log a call is an `LLMCall`; the pairs of messages
sent and delivered are about the same calls and are not read. An agent keeps its
context from turn to turn, so its turns are one invocation.

Version 2 keeps an answer without content as an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Note, Source
from apps.engine.reading.ag2_history import add_history, history_in
from apps.engine.reading.answers import Answer, Asked, add_answer, answer_of
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import listed, mapping, objects_in, time_range, word
from apps.engine.reading.text_limits import IDENTIFIER, Remarks, clip
from apps.engine.reading.transcript import Draft, ToolResult, Transcript, ending_of
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import StepKind, StepStatus, Trace

_TYPES: Final = re.compile(r"(Message|Event)$")
_LOG_TYPES: Final = frozenset(
    {"LLMCall", "LLMStreamStart", "LLMStreamEnd", "ToolCall", "Message",
     "MessageDropped", "MessageHandlerException", "AgentConstructionException"}
)  # fmt: skip
_STREAM: Final = frozenset({"ModelClientStreamingChunkEvent", "LLMStreamStart"})
_RUN_ID: Final = re.compile(
    r"_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
_HANDOFF_TOOL: Final = "transfer_to_"
_SAVED: Final = frozenset(
    {"UserMessage", "SystemMessage", "AssistantMessage",
     "FunctionExecutionResultMessage"}
)  # fmt: skip
_CONTEXT: Final = (
    "The state of one agent holds what its model was told, without usage and without "
    "the calls that were dropped from its context."
)
_NOT_READ: Final = (
    "Lines of the event log about messages sent and delivered repeat what the calls say; "
    "of them only failures of tools were read."
)


class AutoGen:
    """The format `autogen`."""

    slug = "autogen"
    label = "AutoGen"
    version = 2
    description = (
        "AutoGen and AG2: task results (messages with source and type), saved team states and "
        "states of agents, and the JSON lines of its event log. Each message with models_usage, or each "
        "LLMCall of the log, is one model call of the agent that is its source."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a task result, a state or a log event."""
        record = first_record(source)
        is_kept = _thread_in(record) is not None or history_in(record) is not None
        return is_kept or _is_log(record)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each result, and one for a log; `UnreadableTrace` else."""
        return demand_a_trace(
            _items(source), nothing="The file holds no messages and no model calls."
        )


def _items(source: Source) -> Iterator[Item]:
    taker = _Taker()
    yield from read_each(source, taker, unroll=True)
    yield from taker.ends()


def _is_speech(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("source"), str)
        and isinstance(value.get("type"), str)
        and bool(_TYPES.search(value["type"]))
    )


def _is_log(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and word(value.get("type")) in _LOG_TYPES
        and not _is_speech(value)
        and any(
            key in value
            for key in (
                "agent_id",
                "delivery_stage",
                "tool_name",
                "payload",
                "prompt_tokens",
            )
        )
    )


def _thread_in(value: Any) -> list[Any] | None:
    """Return the messages of a result or of a saved team, else `None`."""
    if not isinstance(value, dict):
        return None
    if _is_speech(value):
        return [value]
    messages = listed(value.get("messages"))
    if messages and _is_speech(messages[0]):
        return messages
    for state in (value, *mapping(value.get("agent_states")).values()):
        thread = listed(mapping(state).get("message_thread"))
        if thread and _is_speech(thread[0]):
            return thread
    context = listed(mapping(value.get("llm_context")).get("messages"))
    if context and word(mapping(context[0]).get("type")) in _SAVED:
        return context
    return [] if value.get("type") == "TeamState" else None


class _Taker:
    """Makes traces of results, and one of all loose messages and log events."""

    def __init__(self) -> None:
        self._loose = _Team()
        self._skipped = 0

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if _is_speech(value):
            self._loose.take(value)
            return
        if _is_log(value):
            self._skipped += not self._loose.take_event(value)
            return
        if history_in(value) is None:
            yield _of_thread(value, record.number)
        else:
            chat = _Team()
            add_history(chat.transcript, history_in(value) or [])
            yield chat.trace(f"chat {record.number}", value)

    def ends(self) -> Iterator[Item]:
        """Yield the trace of what stood alone, and what was left out."""
        if self._skipped:
            yield Note("messages_not_read", _NOT_READ, self._skipped)
        if self._loose.transcript.drafts:
            yield self._loose.trace("run", {})


def _of_thread(value: Any, number: int) -> Trace:
    """Return the trace of a result or a saved state."""
    thread = _thread_in(value)
    if thread is None:
        raise RefusedRecord("This is no result, state or event of AutoGen.", "$")
    if not thread:
        raise RefusedRecord("The saved state holds no messages.", "$.agent_states")
    team = _Team()
    if "llm_context" in mapping(value):
        team.remarks.add(_CONTEXT)
    for index, message in enumerate(thread):
        if not isinstance(message, dict):
            raise RefusedRecord("This is not a message.", f"$.messages[{index}]")
        team.take(message)
    return team.trace(f"run {number}", mapping(value))


class _Team:
    """One run of a team while it is being read."""

    def __init__(self) -> None:
        self.remarks = Remarks()
        self.transcript = Transcript(self.remarks)
        self._open: dict[str, list[Draft]] = {}
        self._looked_at = 0
        self._thought: dict[str, Any] = {}

    def _agent(self, source: str) -> int:
        """Return the invocation of an agent, which lasts for the whole run."""
        return self.transcript.speaker(_RUN_ID.sub("", source.split("/", 1)[0]))

    def take(self, message: dict[str, Any]) -> None:
        """Add one message of a task result."""
        kind = str(message.get("type"))
        source = str(message.get("source") or "")
        if kind in _STREAM:
            self.remarks.add(
                "Chunks of a stream, which the whole message repeats: {n}."
            )
        elif kind == "ThoughtEvent":
            self._thought[source] = message.get("content")
        elif (
            kind == "ToolCallExecutionEvent" or kind == "FunctionExecutionResultMessage"
        ):
            for result in listed(message.get("content")):
                self.transcript.give(_result(mapping(result), message))
        elif kind == "CodeExecutionEvent":
            self._executed(message, self._agent(source))
        elif message.get("models_usage") is not None or kind == "AssistantMessage":
            self._call(message, self._agent(source))
        elif kind == "HandoffMessage" and self._handed_over(message):
            return
        else:
            self._say(message, source)

    def _executed(self, message: dict[str, Any], invocation: int) -> None:
        """Add the code that an agent ran as a tool; it failed by its exit code."""
        result = mapping(message.get("result"))
        failed = result.get("exit_code") not in (0, None)
        draft = self.transcript.ask(
            name="code_executor", call_id=None, arguments=None, by=None
        )
        draft.invocation = invocation
        draft.output = result.get("output")
        draft.end_ns = any_time_ns(message.get("created_at"))
        if failed:
            draft.status = StepStatus.ERROR
            draft.error_type = f"exit code {result['exit_code']}"

    def _handed_over(self, message: dict[str, Any]) -> bool:
        """Make the tool call by which an agent handed over the handoff that it is."""
        for draft in reversed(self.transcript.drafts):
            if draft.kind is StepKind.MODEL_CALL:
                return False
            is_tool = draft.kind is StepKind.TOOL_CALL
            if is_tool and str(draft.name).startswith(_HANDOFF_TOOL):
                draft.kind = StepKind.HANDOFF
                draft.attributes = {"target": message.get("target")}
                return True
        return False

    def _call(self, message: dict[str, Any], invocation: int) -> None:
        content = message.get("content")
        requests = isinstance(content, list) and word(message.get("type")) in {
            "ToolCallRequestEvent",
            "AssistantMessage",
        }
        answer = Answer(
            text=None if requests else content,
            reasoning=self._thought.pop(str(message.get("source")), None)
            or message.get("thought"),
            asked=_asked(content) if requests else [],
            counts=usage_counts(message.get("models_usage"), "models_usage"),
            start_ns=any_time_ns(message.get("created_at")),
            role=message.get("type"),
        )
        draft = add_answer(self.transcript, answer, invocation)
        draft.native_id = message.get("id")

    def _say(self, message: dict[str, Any], source: str) -> None:
        kind = StepKind.USER_MESSAGE if source == "user" else StepKind.OTHER
        if message.get("type") == "HandoffMessage":
            kind = StepKind.HANDOFF
        invocation = 0 if source == "user" else self._agent(source)
        self.transcript.add(
            Draft(
                kind=kind,
                invocation=invocation,
                name=message.get("target") or source,
                native_kind=message.get("type"),
                native_id=message.get("id"),
                start_ns=any_time_ns(message.get("created_at")),
                output=message.get("content"),
            )
        )

    def take_event(self, event: dict[str, Any]) -> bool:
        """Add one event of the log; whether it is of a kind that is read."""
        kind = word(event.get("type"))
        if kind in {"LLMCall", "LLMStreamEnd"}:
            self._logged_call(event)
        elif kind == "ToolCall":
            self._logged_tool(event)
        elif kind in {"MessageHandlerException", "AgentConstructionException"}:
            self.transcript.add(
                Draft(
                    kind=StepKind.OTHER,
                    native_kind=kind,
                    status=StepStatus.ERROR,
                    error_type=kind,
                    error_message=event.get("exception"),
                )
            )
        else:
            self._take_failures(embedded(event.get("payload")))
            return False
        return True

    def _take_failures(self, payload: Any) -> None:
        """Mark the tool calls of which a message says that they failed."""
        for held in objects_in(payload):
            draft = self.transcript.asked(held.get("call_id"))
            if draft is not None and held.get("is_error") is True:
                draft.status = StepStatus.ERROR
                draft.error_message = held.get("content")

    def _logged_call(self, event: dict[str, Any]) -> None:
        answer = answer_of(event.get("response")) or Answer(text=event.get("response"))
        if answer.counts.output_total is None:
            answer.counts = usage_counts(event, "LLMCall")
        messages = listed(event.get("messages"))
        for message in messages:
            held = mapping(message)
            if held.get("role") == "tool" and self._is_open(held.get("tool_call_id")):
                self.transcript.give(
                    ToolResult(
                        output=held.get("content"), call_id=held.get("tool_call_id")
                    )
                )
        owner = self._agent(str(event.get("agent_id") or "agent"))
        answer.start_ns = None
        add_answer(self.transcript, answer, owner).input = messages or None

    def _is_open(self, call_id: Any) -> bool:
        draft = self.transcript.asked(call_id)
        return draft is not None and draft.output is None

    def _logged_tool(self, event: dict[str, Any]) -> None:
        owner = self._agent(str(event.get("agent_id") or "agent"))
        arguments = embedded(event.get("arguments"))
        draft = self._requested(event.get("tool_name"), arguments)
        if draft is None:
            draft = self.transcript.ask(
                name=event.get("tool_name"), call_id=None, arguments=arguments, by=None
            )
            draft.invocation = owner
        draft.output = event.get("result")

    def _requested(self, name: Any, arguments: Any) -> Draft | None:
        """Return the open tool call that a logged execution carries out."""
        drafts = self.transcript.drafts
        for draft in drafts[self._looked_at :]:
            if draft.kind is StepKind.TOOL_CALL:
                self._open.setdefault(str(draft.name), []).append(draft)
        self._looked_at = len(drafts)
        waiting = self._open.get(str(name), [])
        waiting[:] = [draft for draft in waiting if draft.output is None]
        return next((draft for draft in waiting if draft.input == arguments), None)

    def trace(self, name: str, facts: dict[str, Any]) -> Trace:
        """Return the trace; `name` is used where nothing names it."""
        steps, invocations, order = self.transcript.finished()
        start, end = time_range(steps)
        stop = clip(facts.get("stop_reason"), IDENTIFIER, self.remarks)
        return Trace(
            name=name,
            steps=steps,
            invocations=invocations,
            start_ns=start,
            end_ns=end,
            order=order,
            metadata={
                key: item
                for key, item in (("stop_reason", stop), ("cost", facts.get("cost")))
                if item
            },
            notes=self.remarks.sentences(),
        )


def _asked(content: Any) -> list[Asked]:
    return [
        Asked(call.get("name"), call.get("id"), embedded(call.get("arguments")))
        for call in listed(content)
        if isinstance(call, dict)
    ]


def _result(result: dict[str, Any], message: dict[str, Any]) -> ToolResult:
    status = ending_of(result.get("is_error"))
    content = result.get("content")
    return ToolResult(
        output=content,
        call_id=result.get("call_id"),
        status=status,
        error_message=_words_of_failure(status, content),
        end_ns=any_time_ns(message.get("created_at")),
    )


def _words_of_failure(status: StepStatus, content: Any) -> str | None:
    failed = status is StepStatus.ERROR
    return content if failed and isinstance(content, str) else None
