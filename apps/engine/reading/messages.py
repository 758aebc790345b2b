"""Steps out of OpenAI-style messages, shared by the readers whose files hold them.

Each assistant message is a model call without usage, each of its tool calls a step
of its own with the result joined by id. Whether a tool failed is not recorded in such
messages (an error is only text), so the status of a tool call stays unset.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.answers import chat_tool_calls
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.text_limits import IDENTIFIER, NAME, Remarks, clip
from apps.engine.reading.transcript import Draft, Invoked, ToolResult, Transcript
from apps.engine.trace import (
    AgentInvocation,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
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


class Conversation:
    """Builds the steps of one conversation from its messages, in file order.

    `add` gives back the draft of the message, so that a reader can complete it with
    what its format records beside the message: usage, times, ids.
    """

    def __init__(self, remarks: Remarks) -> None:
        self.transcript = Transcript(remarks)
        self._remarks = remarks
        self._authors: dict[str, list[Draft]] = {}

    def add(self, message: dict[str, Any]) -> Draft:
        """Add one message, for which `is_message` must hold; return its draft."""
        kind = ROLES[message["role"]]
        if kind is StepKind.MODEL_CALL:
            return self._add_answer(message)
        if kind is StepKind.TOOL_CALL:
            return self._add_result(message)
        draft = self._draft(message, kind)
        self.transcript.add(draft)
        return draft

    def finished(self) -> tuple[tuple[Step, ...], tuple[AgentInvocation, ...]]:
        """Return the steps and the agent invocations of the conversation.

        Without names there is one unnamed invocation. One name names it. Several names
        give one invocation each under an unnamed root, because a flat list of messages
        does not say when an agent was invoked anew.
        """
        steps, invocations, _ = self.ordered()
        return steps, invocations

    def ordered(
        self, *, by_time: bool = False
    ) -> tuple[tuple[Step, ...], tuple[AgentInvocation, ...], OrderSource]:
        """Return what `finished` returns and what the order rests on."""
        names = list(self._authors)
        if len(names) == 1:
            self.transcript.invocations[0].agent = names[0]
        elif names:
            for name in names:
                number = self.transcript.invoke(
                    Invoked(agent=name, parent=0, via=Via.MANAGED)
                )
                for draft in self._authors[name]:
                    draft.invocation = number
        return self.transcript.finished(by_time=by_time)

    def _add_answer(self, message: dict[str, Any]) -> Draft:
        remarks = self._remarks
        finish, finish_raw = finish_of(message.get("finish_reason"))
        draft = self._draft(message, StepKind.MODEL_CALL)
        draft.call = ModelCall(
            model=clip(message.get("model"), NAME, remarks),
            finish=finish,
            finish_raw=clip(finish_raw, IDENTIFIER, remarks),
        )
        number = self.transcript.add(draft)
        asked = [
            self.transcript.ask(
                name=call.name,
                call_id=call.call_id,
                arguments=call.arguments,
                by=number,
            )
            for call in chat_tool_calls(message)
        ]
        author = clip(message.get("name"), NAME, remarks)
        if author:
            self._authors.setdefault(author, []).extend([draft, *asked])
        return draft

    def _add_result(self, message: dict[str, Any]) -> Draft:
        draft = self.transcript.give(
            ToolResult(
                output=message.get("content"),
                call_id=message.get("tool_call_id"),
                native_kind=message["role"],
            )
        )
        if draft.kind is StepKind.OTHER:
            whole = self._draft(message, StepKind.OTHER)
            for field in ("name", "output", "attributes"):
                setattr(draft, field, getattr(whole, field))
        return draft

    def _draft(self, message: dict[str, Any], kind: StepKind) -> Draft:
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        return Draft(
            kind=kind,
            name=message.get("name"),
            native_kind=message["role"],
            output=message.get("content"),
            reasoning=reasoning,
            attributes={key: item for key, item in message.items() if key not in _READ},
        )
