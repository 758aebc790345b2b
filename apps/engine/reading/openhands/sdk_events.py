"""Events of the OpenHands SDK ({"kind": "…Event"}), made into steps.

Actions and messages of one response carry its id; token usage is not in the events but
in the statistics of the conversation, listed by the same id.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.json_values import embedded
from apps.engine.reading.openhands.calls import Calls, Reply
from apps.engine.reading.openhands.plain_steps import PlainSteps
from apps.engine.reading.recorded import mapping, plain_text
from apps.engine.reading.transcript import Draft, ToolResult
from apps.engine.trace import StepKind, StepStatus

_OTHER_KINDS: Final = frozenset(
    {"Condensation", "CondensationRequest", "UserRejectObservation"}
)
_CERTAIN: Final = frozenset({"MessageEvent", "ActionEvent", "ObservationEvent"})
_SOURCES: Final = ("agent", "user", "environment", "hook")
_STATES: Final = ("execution_status", "agent_status")
_DONE: Final = {"completed": StepStatus.OK, "failed": StepStatus.ERROR}


def is_sdk_event(value: Any) -> bool:
    """Whether a value is an event of the SDK, by its kind and its source."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        return False
    if value.get("source") not in _SOURCES:
        return "source" not in value and kind in _CERTAIN
    return kind.endswith("Event") or kind in _OTHER_KINDS


class SdkEvents:
    """Adds the events of one conversation; `unread` counts kinds that make no step."""

    def __init__(self, calls: Calls) -> None:
        self._plain = PlainSteps(calls)
        self.unread = self._plain.unread
        self._calls = calls
        self._made = calls.made
        self._acp: dict[str, Draft] = {}
        self._actions: dict[str, Draft] = {}
        self._ways = {
            "SystemPromptEvent": self._system,
            "MessageEvent": self._message,
            "ActionEvent": self._action,
            "ObservationEvent": self._observation,
            "UserRejectObservation": self._rejection,
            "AgentErrorEvent": self._tool_error,
            "ConversationErrorEvent": self._error,
            "Condensation": self._condensation,
            "CondensationSummaryEvent": self._summary,
            "ConversationStateUpdateEvent": self._state,
            "PauseEvent": self._pause,
            "ACPToolCallEvent": self._acp_tool,
        }

    def add(self, event: dict[str, Any]) -> None:
        """Add one event, for which `is_sdk_event` must hold."""
        way = self._ways.get(event["kind"])
        if way is None:
            self._plain.count(event["kind"])
        else:
            way(event)

    def _system(self, event: dict[str, Any]) -> None:
        self._plain.add(
            event, StepKind.SYSTEM, output=plain_text(event.get("system_prompt"))
        )

    def _message(self, event: dict[str, Any]) -> None:
        message = mapping(event.get("llm_message"))
        roles = {"assistant": "agent"}
        source = event.get("source") or roles.get(str(message.get("role")), "user")
        if source != "agent":
            is_user = source == "user"
            kind = StepKind.USER_MESSAGE if is_user else StepKind.OTHER
            self._plain.add(event, kind, output=plain_text(message.get("content")))
            return
        self._calls.of(
            Reply(
                response=event.get("llm_response_id"),
                text=plain_text(message.get("content")),
                reasoning=message.get("reasoning_content"),
                timestamp=event.get("timestamp"),
                event_id=event.get("id"),
            ),
            0,
        )

    def _action(self, event: dict[str, Any]) -> None:
        number = self._calls.of(
            Reply(
                response=event.get("llm_response_id"),
                text=plain_text(event.get("thought")) or None,
                reasoning=event.get("reasoning_content"),
                timestamp=event.get("timestamp"),
                event_id=event.get("id"),
            ),
            0,
        )
        asked = mapping(event.get("tool_call"))
        function = mapping(asked.get("function"))
        arguments = embedded(asked.get("arguments") or function.get("arguments"))
        draft = self._made.ask(
            name=event.get("tool_name") or asked.get("name") or function.get("name"),
            call_id=event.get("tool_call_id") or asked.get("id"),
            arguments=arguments or event.get("action"),
            by=number,
        )
        draft.start_ns = self._plain.moment(event)
        if isinstance(event.get("id"), str):
            self._actions[event["id"]] = draft
        draft.attributes = {
            key: event[key]
            for key in ("security_risk", "summary")
            if event.get(key) is not None
        }

    def _observation(self, event: dict[str, Any]) -> None:
        seen = mapping(event.get("observation"))
        failed = seen.get("is_error") is True or bool(seen.get("error"))
        content = seen.get("content", seen.get("output"))
        output = seen if content is None else plain_text(content)
        words = seen.get("error") if isinstance(seen.get("error"), str) else output
        self._give(event, output, words if failed else None, status=failed)

    def _rejection(self, event: dict[str, Any]) -> None:
        reason = event.get("rejection_reason")
        self._give(event, reason, reason, status=True, kind="rejected")

    def _tool_error(self, event: dict[str, Any]) -> None:
        self._give(event, event.get("error"), event.get("error"), status=True)

    def _give(
        self,
        event: dict[str, Any],
        output: Any,
        message: Any,
        *,
        status: bool,
        kind: str | None = None,
    ) -> None:
        self._made.give(
            ToolResult(
                output=output,
                call_id=event.get("tool_call_id") or self._id_of_action(event),
                status=StepStatus.ERROR if status else StepStatus.OK,
                error_type=kind,
                error_message=message,
                end_ns=self._plain.moment(event),
                native_kind=event["kind"],
            )
        )

    def _id_of_action(self, event: dict[str, Any]) -> Any:
        """Return the id of the tool call that an observation's action asked for."""
        action = event.get("action_id")
        draft = self._actions.get(action) if isinstance(action, str) else None
        return draft.native_id if draft is not None else None

    def _error(self, event: dict[str, Any]) -> None:
        draft = self._plain.add(event, StepKind.SYSTEM, name="conversation error")
        draft.status = StepStatus.ERROR
        draft.error_type = event.get("code")
        draft.error_message = event.get("detail")

    def _condensation(self, event: dict[str, Any]) -> None:
        self._calls.reset(0)
        draft = self._plain.add(
            event,
            StepKind.MEMORY,
            name="context condensed",
            output=event.get("summary"),
        )
        forgotten = event.get("forgotten_event_ids")
        if isinstance(forgotten, list):
            draft.attributes = {"forgotten_events": len(forgotten)}

    def _summary(self, event: dict[str, Any]) -> None:
        self._plain.add(
            event, StepKind.MEMORY, name="summary", output=event.get("summary")
        )

    def _state(self, event: dict[str, Any]) -> None:
        key, value = event.get("key"), event.get("value")
        if key in _STATES and isinstance(value, str):
            draft = self._plain.add(event, StepKind.SYSTEM, name=f"state: {value}")
            if value == "error":
                draft.status = StepStatus.ERROR
            return
        if key not in ("stats", "full_state"):
            self._plain.count(event["kind"])

    def _pause(self, event: dict[str, Any]) -> None:
        self._plain.add(event, StepKind.SYSTEM, name="paused")

    def _acp_tool(self, event: dict[str, Any]) -> None:
        """Add a tool call that another agent reports; later reports complete it."""
        call_id = event.get("tool_call_id")
        draft = self._acp.get(call_id) if isinstance(call_id, str) else None
        if draft is None:
            draft = self._made.ask(
                name=event.get("title") or event.get("tool_kind"),
                call_id=call_id,
                arguments=event.get("raw_input"),
                by=None,
            )
            draft.start_ns = self._plain.moment(event)
            if isinstance(call_id, str):
                self._acp[call_id] = draft
        draft.output = event.get("raw_output") or event.get("content") or draft.output
        draft.end_ns = self._plain.moment(event)
        told = event.get("status")
        draft.status = (
            _DONE.get(told, draft.status) if isinstance(told, str) else (draft.status)
        )
        if event.get("is_error") is True:
            draft.status = StepStatus.ERROR
