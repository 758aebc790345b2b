"""Steps out of OpenAI-style messages, shared by the readers whose files hold them.

Each assistant message is a model call without usage, each of its tool calls a step
of its own with the result joined by id. Whether a tool failed is not recorded in such
messages (an error is only text), so the status of a tool call stays unset.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.json_values import embedded
from apps.engine.reading.text_limits import IDENTIFIER, NAME, Remarks, clip
from apps.engine.trace import (
    AgentInvocation,
    Body,
    FinishReason,
    ModelCall,
    Step,
    StepKind,
    ToolCall,
    Via,
)

ROLES: Final = {
    "system": StepKind.SYSTEM,
    "developer": StepKind.SYSTEM,
    "user": StepKind.USER_MESSAGE,
    "assistant": StepKind.MODEL_CALL,
    "tool": StepKind.TOOL_CALL,
    "function": StepKind.TOOL_CALL,
}
_READ: Final = frozenset(
    {
        "role", "content", "name", "tool_calls", "tool_call_id", "function_call",
        "reasoning", "reasoning_content", "finish_reason", "model",
    }
)  # fmt: skip


def is_message(value: Any) -> bool:
    """Whether a value is a message: an object with a known role and some content."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and value["role"] in ROLES
        and any(key in value for key in ("content", "tool_calls", "function_call"))
    )


class _Requested:
    """A tool call of an assistant message that may still get its result."""

    __slots__ = ("arguments", "by", "call_id", "name", "output", "seq")

    def __init__(self, seq: int, by: int, call_id: str | None, name: str) -> None:
        self.seq = seq
        self.by = by
        self.call_id = call_id
        self.name = name
        self.arguments: Any = None
        self.output: Any = None


class Conversation:
    """Builds the steps of one conversation from its messages, in file order."""

    def __init__(self, remarks: Remarks) -> None:
        self._remarks = remarks
        self._slots: list[Step | _Requested] = []
        self._waiting: deque[_Requested] = deque()
        self._by_id: dict[str, _Requested] = {}
        self._agents: dict[str, int] = {}
        self._authors: dict[int, str] = {}

    def add(self, message: dict[str, Any]) -> None:
        """Add one message; `is_message` must hold for it."""
        kind = ROLES[message["role"]]
        if kind is StepKind.MODEL_CALL:
            self._add_answer(message)
        elif kind is StepKind.TOOL_CALL:
            self._add_result(message)
        else:
            self._slots.append(
                Step(
                    seq=len(self._slots),
                    kind=kind,
                    name=clip(message.get("name"), NAME, self._remarks),
                    native_kind=message["role"],
                    body=_body(message),
                )
            )

    def finished(self) -> tuple[tuple[Step, ...], tuple[AgentInvocation, ...]]:
        """Return the steps and the agent invocations of the conversation.

        Without names there is one unnamed invocation. One name names it. Several names
        give one invocation each under an unnamed root, because a flat list of messages
        does not say when an agent was invoked anew.
        """
        names = list(self._agents)
        invocations = [
            AgentInvocation(number=0, agent=names[0] if len(names) == 1 else None)
        ]
        if len(names) > 1:
            invocations += [
                AgentInvocation(number=index, agent=name, parent=0, via=Via.MANAGED)
                for index, name in enumerate(names, 1)
            ]
        numbers = {one.agent: one.number for one in invocations if one.agent}
        steps = []
        for slot in self._slots:
            by = slot.by if isinstance(slot, _Requested) else slot.seq
            number = numbers.get(self._authors.get(by, ""), 0)
            steps.append(_settled(slot, number))
        return tuple(steps), tuple(invocations)

    def _add_answer(self, message: dict[str, Any]) -> None:
        remarks = self._remarks
        seq = len(self._slots)
        author = clip(message.get("name"), NAME, remarks)
        if author:
            self._agents.setdefault(author, len(self._agents))
            self._authors[seq] = author
        requested = [
            self._requested(call, seq, seq + 1 + index)
            for index, call in enumerate(_tool_calls(message))
        ]
        finish, finish_raw = finish_of(message.get("finish_reason"))
        self._slots.append(
            Step(
                seq=seq,
                kind=StepKind.MODEL_CALL,
                name=author,
                native_kind="assistant",
                call=ModelCall(
                    model=clip(message.get("model"), NAME, remarks),
                    finish=finish if finish_raw else FinishReason.UNKNOWN,
                    finish_raw=clip(finish_raw, IDENTIFIER, remarks),
                    tool_call_ids=tuple(
                        one.call_id for one in requested if one.call_id
                    ),
                ),
                body=_body(message),
            )
        )
        self._slots.extend(requested)
        self._waiting = deque(requested)

    def _requested(self, call: dict[str, Any], by: int, seq: int) -> _Requested:
        function = call.get("function")
        function = function if isinstance(function, dict) else call
        name = clip(function.get("name"), NAME, self._remarks)
        call_id = clip(call.get("id"), IDENTIFIER, self._remarks)
        made = _Requested(seq, by, call_id, name or "(unnamed tool)")
        made.arguments = embedded(function.get("arguments"))
        if call_id:
            self._by_id[call_id] = made
        return made

    def _add_result(self, message: dict[str, Any]) -> None:
        call = self._call_of(message)
        if call is not None and call.output is None:
            call.output = message.get("content")
            return
        self._remarks.add("Tool messages that answer no recorded tool call: {n}.")
        self._slots.append(
            Step(
                seq=len(self._slots),
                kind=StepKind.OTHER,
                name=clip(message.get("name"), NAME, self._remarks),
                native_id=clip(message.get("tool_call_id"), IDENTIFIER, self._remarks),
                native_kind=message["role"],
                body=_body(message),
            )
        )

    def _call_of(self, message: dict[str, Any]) -> _Requested | None:
        call_id = message.get("tool_call_id")
        if isinstance(call_id, str) and call_id:
            return self._by_id.get(call_id[:IDENTIFIER])
        while self._waiting and self._waiting[0].output is not None:
            self._waiting.popleft()
        if not self._waiting:
            return None
        self._remarks.add(
            "Tool messages without a call id, joined to the calls before them in order: "
            "{n}."
        )
        return self._waiting.popleft()


def _settled(slot: Step | _Requested, invocation: int) -> Step:
    if isinstance(slot, _Requested):
        return Step(
            seq=slot.seq,
            kind=StepKind.TOOL_CALL,
            invocation=invocation,
            parent=slot.by,
            name=slot.name,
            native_id=slot.call_id,
            native_kind="tool_call",
            call=ToolCall(name=slot.name, call_id=slot.call_id, requested_by=slot.by),
            body=Body(input=slot.arguments, output=slot.output),
        )
    return Step(
        seq=slot.seq,
        kind=slot.kind,
        invocation=invocation,
        name=slot.name,
        native_id=slot.native_id,
        native_kind=slot.native_kind,
        call=slot.call,
        body=slot.body,
    )


def _tool_calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        return [call for call in calls if isinstance(call, dict)]
    legacy = message.get("function_call")
    return [legacy] if isinstance(legacy, dict) else []


def _body(message: dict[str, Any]) -> Body | None:
    content = message.get("content")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    attributes = {key: item for key, item in message.items() if key not in _READ}
    if content is None and reasoning is None and not attributes:
        return None
    return Body(output=content, reasoning=reasoning, attributes=attributes or None)
