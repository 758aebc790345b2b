"""The messages of one tau2-bench simulation, made into steps of two agents.

A message is stamped when it is finished: its time is the end of the call that made it,
and the start is known only where the time of the generation was recorded.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.local_times import before_ns, told_ns
from apps.engine.reading.text_limits import IDENTIFIER, NAME, Remarks, clip
from apps.engine.reading.token_counts import Counts, usage_of
from apps.engine.reading.transcript import (
    Draft,
    Invoked,
    ToolResult,
    Transcript,
    ending_of,
)
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import (
    AgentInvocation,
    ModelCall,
    Step,
    StepKind,
    Via,
)

USER_SIMULATOR: Final = "user simulator"
_ROLES: Final = ("system", "user", "assistant", "tool")
_READ: Final = frozenset(
    {"role", "content", "tool_calls", "usage", "raw_data", "timestamp", "tool_messages"}
)
_DUMMY: Final = "dummy_user"
_SCRIPTED: Final = (
    "Messages of the assistant that were written beforehand, not counted as model "
    "calls: {n}."
)
_TRUNCATED: Final = "Model calls whose context was cut to fit a limit: {n}."


class Talk:
    """Builds the steps of a simulation. `task` tells how many messages it began with."""

    def __init__(
        self,
        remarks: Remarks,
        *,
        agent: dict[str, Any],
        user: dict[str, Any],
        task: Any,
    ) -> None:
        self._remarks = remarks
        self._made = Transcript(remarks)
        self._models = {"assistant": agent.get("llm"), "user": user.get("llm")}
        name = clip(agent.get("implementation"), NAME, remarks) or "agent"
        self._owners = {
            "assistant": self._made.invoke(Invoked(agent=name, via=Via.MANAGED)),
            "user": self._made.invoke(Invoked(agent=USER_SIMULATOR, via=Via.MANAGED)),
        }
        self._user_is_model = user.get("implementation") != _DUMMY and bool(
            user.get("llm")
        )
        self._scripted = _history_length(task)
        self._place = 0
        self._answered = False

    def time(self, value: Any) -> int | None:
        """Return the nanoseconds of a recorded time."""
        return told_ns(value, self._remarks)

    def add(self, message: Any, path: str) -> None:
        """Add one message; raise `RefusedRecord` for what is none."""
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise RefusedRecord(
                "This is not a message: it needs a role (system, user, assistant, "
                "tool).",
                path,
            )
        role = message["role"]
        if role == "tool":
            self._add_results(message, path)
        elif role == "system":
            self._made.add(self._draft(message, StepKind.SYSTEM))
        elif self._is_call(message, role):
            self._add_call(message, role)
        else:
            self._add_text(message, role)
        self._place += 1
        self._answered = self._answered or role == "user"

    def finished(self) -> tuple[tuple[Step, ...], tuple[AgentInvocation, ...]]:
        """Return the steps and the invocations of the agent and the user."""
        steps, invocations, _ = self._made.finished()
        return steps, invocations

    def _is_call(self, message: dict[str, Any], role: str) -> bool:
        """Whether a model wrote the message.

        Messages of the initial state were given, and so was a greeting: an assistant's
        words before the user has spoken, without usage and without a price.
        """
        if message.get("usage") or message.get("raw_data"):
            return True
        if self._place < self._scripted:
            return False
        if role == "user":
            return self._user_is_model
        is_greeting = not self._answered and not message.get("tool_calls")
        return not (is_greeting and not message.get("cost"))

    def _add_text(self, message: dict[str, Any], role: str) -> None:
        if role == "user":
            self._made.add(self._draft(message, StepKind.USER_MESSAGE))
            return
        self._remarks.add(_SCRIPTED)
        draft = self._draft(message, StepKind.OTHER)
        draft.invocation = self._owners[role]
        draft.name = "scripted message"
        self._made.add(draft)

    def _add_call(self, message: dict[str, Any], role: str) -> None:
        raw = message.get("raw_data")
        raw = raw if isinstance(raw, dict) else {}
        choice = _first_choice(raw)
        finish, finish_raw = finish_of(choice.get("finish_reason"))
        draft = self._draft(message, StepKind.MODEL_CALL)
        draft.invocation = self._owners[role]
        draft.start_ns = before_ns(draft.end_ns, message.get("generation_time_seconds"))
        if message.get("context_truncation"):
            self._remarks.add(_TRUNCATED)
        told = choice.get("message")
        told = told if isinstance(told, dict) else {}
        draft.reasoning = told.get("reasoning_content")
        draft.call = ModelCall(
            model=clip(raw.get("model") or self._models[role], NAME, self._remarks),
            finish=finish,
            finish_raw=clip(finish_raw, IDENTIFIER, self._remarks),
            usage=usage_of(_counts(message.get("usage"), raw.get("usage"))),
            response_id=clip(raw.get("id"), IDENTIFIER, self._remarks),
        )
        number = self._made.add(draft)
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                self._made.ask(
                    name=call.get("name"),
                    call_id=call.get("id"),
                    arguments=call.get("arguments"),
                    by=number,
                )

    def _add_results(self, message: dict[str, Any], path: str) -> None:
        several = message.get("tool_messages")
        if isinstance(several, list):
            for index, one in enumerate(several):
                if not isinstance(one, dict):
                    raise RefusedRecord(
                        "This is not a result of a tool.",
                        f"{path}.tool_messages[{index}]",
                    )
                self._add_result(one)
        else:
            self._add_result(message)

    def _add_result(self, message: dict[str, Any]) -> None:
        failed = message.get("error")
        requestor = message.get("requestor")
        owner = self._owners["user" if requestor == "user" else "assistant"]
        self._made.give(
            ToolResult(
                output=message.get("content"),
                call_id=message.get("id"),
                status=ending_of(failed),
                error_message=message.get("content") if failed is True else None,
                end_ns=self.time(message.get("timestamp")),
                invocation=owner,
            )
        )

    def _draft(self, message: dict[str, Any], kind: StepKind) -> Draft:
        moment = self.time(message.get("timestamp"))
        return Draft(
            kind=kind,
            start_ns=None if kind is StepKind.MODEL_CALL else moment,
            end_ns=moment,
            native_kind=message["role"],
            output=message.get("content"),
            attributes={
                key: value
                for key, value in message.items()
                if key not in _READ and value is not None
            },
        )


def _history_length(task: Any) -> int:
    """Return how many messages the task itself begins with."""
    state = task.get("initial_state") if isinstance(task, dict) else None
    history = state.get("message_history") if isinstance(state, dict) else None
    return len(history) if isinstance(history, list) else 0


def _first_choice(raw: dict[str, Any]) -> dict[str, Any]:
    choices = raw.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _counts(usage: Any, raw: Any) -> Counts:
    """Return the counts of the message, from the fuller usage where both agree."""
    short, full = usage_counts(usage), usage_counts(raw, "raw_data.usage")
    same = short.output_total is None or short.output_total == full.output_total
    return full if full.output_total is not None and same else short
