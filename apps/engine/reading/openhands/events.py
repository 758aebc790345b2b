"""Events of OpenHands before its SDK: actions and observations, made into steps.

An action of the agent came out of a model unless it belongs to the machinery around
it. `finish` and `reject` end the agent and run nothing: they are no tool calls. The
exit code of a command is part of its result; only an error observation is an error.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.openhands.calls import Calls, Reply
from apps.engine.reading.openhands.plain_steps import PlainSteps
from apps.engine.reading.recorded import mapping
from apps.engine.reading.text_limits import NAME, clip
from apps.engine.reading.transcript import Draft, Invoked
from apps.engine.trace import StepKind, StepStatus, Via

_SOURCES: Final = ("user", "agent", "environment")
_ENDINGS: Final = frozenset({"finish", "reject", "message"})
_STATES: Final = frozenset({"change_agent_state", "start", "pause", "resume", "stop"})
_MACHINERY: Final = frozenset(
    {"system", "recall", "condensation", "condensation_request", "null", "initialize",
     "loop_recovery", *_STATES}
)  # fmt: skip
_FAILURES: Final = {"error": "error", "user_rejected": "user_rejected"}
_ANSWERED_TWICE: Final = "Observations of an action that had one already: {n}."


def is_event(value: Any) -> bool:
    """Whether a value is an event: a source, and an action or an observation."""
    if not isinstance(value, dict) or value.get("source") not in _SOURCES:
        return False
    return isinstance(value.get("action"), str) or isinstance(
        value.get("observation"), str
    )


class Events:
    """Adds the events of one run in order; `unread` counts kinds that make no step."""

    def __init__(self, calls: Calls) -> None:
        self._plain = PlainSteps(calls)
        self.unread = self._plain.unread
        self._calls = calls
        self._made = calls.made
        self._owners = self._plain.owners
        self._drafts: dict[Any, Draft] = {}
        self._answered: set[int] = set()

    def add(self, event: dict[str, Any]) -> None:
        """Add one event, for which `is_event` must hold."""
        metrics = event.get("llm_metrics")
        if isinstance(metrics, dict):
            self._calls.metrics.take(metrics)
        action = event.get("action")
        if isinstance(action, str) and not isinstance(event.get("observation"), str):
            self._add_action(event, action)
        else:
            self._add_observation(event, event["observation"])

    def _add_action(self, event: dict[str, Any], action: str) -> None:
        args = mapping(event.get("args"))
        if action in _MACHINERY:
            self._add_machinery(event, action, args)
        elif event.get("source") == "agent":
            self._add_answer(event, action, args)
        elif action == "message":
            self._plain.add(event, StepKind.USER_MESSAGE, output=_said(event, args))
        else:
            self._plain.add(event, StepKind.OTHER, name=action, output=args)

    def _add_answer(
        self, event: dict[str, Any], action: str, args: dict[str, Any]
    ) -> None:
        told = mapping(event.get("tool_call_metadata"))
        response = mapping(told.get("model_response"))
        choices = response.get("choices")
        choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
        message = mapping(choice.get("message"))
        number = self._calls.of(
            Reply(
                response=response.get("id"),
                usage=response.get("usage"),
                model=response.get("model"),
                finish=choice.get("finish_reason"),
                text=message.get("content") or _said(event, args),
                reasoning=message.get("reasoning_content"),
                timestamp=event.get("timestamp"),
                event_id=event.get("id"),
            ),
            self._owners[-1],
        )
        if action in _ENDINGS:
            return
        draft = self._made.ask(
            name=told.get("function_name") or action,
            call_id=told.get("tool_call_id"),
            arguments={key: args[key] for key in args if key != "thought"},
            by=number,
        )
        draft.start_ns = self._plain.moment(event)
        self._remember(event, draft)
        if action == "delegate":
            self._owners.append(
                self._made.invoke(
                    Invoked(
                        agent=args.get("agent"),
                        parent=self._owners[-1],
                        via=Via.SUBAGENT,
                        start_ns=draft.start_ns,
                    )
                )
            )

    def _add_machinery(
        self, event: dict[str, Any], action: str, args: dict[str, Any]
    ) -> None:
        if action == "system":
            self._plain.add(event, StepKind.SYSTEM, output=_said(event, args))
        elif action == "recall":
            draft = self._plain.add(event, StepKind.RETRIEVAL, name="recall")
            draft.input = args
            self._remember(event, draft)
        elif action == "condensation":
            self._calls.reset(self._owners[-1])
            self._plain.add(
                event, StepKind.MEMORY, name="context condensed", output=args
            )
        elif action in _STATES:
            state = args.get("agent_state") or action
            self._add_state(event, state, None)
        else:
            self._plain.count(action)

    def _add_observation(self, event: dict[str, Any], observation: str) -> None:
        extras = mapping(event.get("extras"))
        if observation == "agent_state_changed":
            self._add_state(event, extras.get("agent_state"), extras.get("reason"))
            return
        if observation == "delegate" and len(self._owners) > 1:
            ended = self._made.invocations[self._owners.pop()]
            ended.end_ns = self._plain.moment(event)
        draft = self._asked(event)
        if draft is None and observation == "null":
            self._plain.count("null")
            return
        if draft is None or id(draft) in self._answered:
            if draft is not None:
                self._made.remarks.add(_ANSWERED_TWICE)
            draft = self._plain.add(event, StepKind.OTHER, name=observation)
        self._answered.add(id(draft))
        draft.output = event.get("content")
        draft.end_ns = self._plain.moment(event)
        draft.attributes = {**(draft.attributes or {}), **extras}
        if observation in _FAILURES:
            draft.status = StepStatus.ERROR
            draft.error_type = _FAILURES[observation]
            draft.error_message = event.get("content")

    def _asked(self, event: dict[str, Any]) -> Draft | None:
        told = mapping(event.get("tool_call_metadata"))
        cause = event.get("cause")
        by_cause = self._drafts.get(cause) if isinstance(cause, int | str) else None
        return by_cause or self._made.asked(told.get("tool_call_id"))

    def _remember(self, event: dict[str, Any], draft: Draft) -> None:
        own_id = event.get("id")
        if isinstance(own_id, int | str):
            self._drafts[own_id] = draft

    def _add_state(self, event: dict[str, Any], state: Any, reason: Any) -> None:
        words = clip(state, NAME // 2, self._made.remarks) or "unknown"
        draft = self._plain.add(event, StepKind.SYSTEM, name=f"agent state: {words}")
        if words == "error":
            draft.status = StepStatus.ERROR
            draft.error_message = reason or event.get("content")


def _said(event: dict[str, Any], args: dict[str, Any]) -> Any:
    return args.get("content") or args.get("thought") or event.get("message")
