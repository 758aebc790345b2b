"""The events of an Inspect sample, made into steps.

Events are stamped when they begin and have `completed` when they end; in logs from
before `completed` existed they are stamped when they end, and the start is known only
where the model's time was recorded.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.inspect_ai.calls import (
    answer_of,
    call_of_event,
    first_choice,
)
from apps.engine.reading.inspect_ai.owners import Owners, Scope
from apps.engine.reading.inspect_ai.texts import Texts
from apps.engine.reading.local_times import before_ns, told_ns
from apps.engine.reading.recorded import mapping
from apps.engine.reading.text_limits import IDENTIFIER, NAME, Remarks, clip
from apps.engine.reading.transcript import UNNAMED_TOOL, Draft, Transcript, with_call
from apps.engine.trace import ModelCall, StepKind, StepStatus, ToolCall

_DEEPEST: Final = 40
_CACHED: Final = "Answers that came out of Inspect's cache: {n}."
_RETRIED: Final = "Model calls that were sent again inside one event: {n}."
_BROKEN: Final = "Events that are no events of Inspect, not read: {n}."
_TOO_DEEP: Final = "Lists of events nested too deep, not read: {n}."


class SampleEvents:
    """Adds the events of one sample to a transcript.

    `output_tokens` sums what the calls of models recorded, without the cache.
    """

    def __init__(self, made: Transcript, texts: Texts, remarks: Remarks) -> None:
        self.output_tokens = 0
        self.unread: dict[str, int] = {}
        self.has_error = False
        self._made = made
        self._texts = texts
        self._remarks = remarks
        self._owners = Owners(made)
        self._asked: dict[str, int] = {}
        self._sent: dict[int, list[Any]] = {}
        self._resets: set[int] = set()
        self._stamped_late = True
        self._ways = {
            "model": self._model,
            "tool": self._tool,
            "span_begin": self._span_begin,
            "span_end": self._span_end,
            "step": self._older_step,
            "subtask": self._subtask,
            "sample_init": self._begin,
            "input": self._human_input,
            "error": self._error,
            "sample_limit": self._limit,
            "compaction": self._compaction,
            "approval": self._approval,
        }

    def add_all(self, events: list[Any]) -> None:
        """Add all events; of two with the same id the later one is the whole one."""
        self._stamped_late = not any(map(_is_of_newer_log, events))
        last: dict[str, int] = {}
        for index, event in enumerate(events):
            own_id = event.get("uuid") if isinstance(event, dict) else None
            if isinstance(own_id, str):
                last[own_id] = index
        for index, event in enumerate(events):
            own_id = event.get("uuid") if isinstance(event, dict) else None
            if not isinstance(own_id, str) or last[own_id] == index:
                self._add(event, 0)

    def _add(self, event: Any, depth: int) -> None:
        kind = event.get("event") if isinstance(event, dict) else None
        if not isinstance(kind, str):
            self._remarks.add(_BROKEN)
            return
        way = self._ways.get(kind)
        if way is None:
            self.unread[kind] = self.unread.get(kind, 0) + 1
            return
        way(event)
        nested = event.get("events")
        if isinstance(nested, list) and nested and kind in {"tool", "subtask"}:
            self._add_nested(event, nested, depth)

    def _add_nested(self, event: dict[str, Any], nested: list[Any], depth: int) -> None:
        """Add the events of an older tool or subtask below the step made of it."""
        if depth >= _DEEPEST:
            self._remarks.add(_TOO_DEEP)
            return
        agent = event.get("agent")
        is_tool = event["event"] == "tool"
        outer = Scope(
            type="tool" if is_tool else event.get("type") or "subtask",
            name=event.get("function") if is_tool else event.get("name"),
            parent=self._owners.of_event(event),
            start_ns=self._moment(event.get("timestamp")),
            step=len(self._made.drafts) - 1 if is_tool else None,
        )
        end = self._moment(event.get("completed"))
        self._owners.begin(outer)
        if agent:
            self._owners.begin(
                Scope(type="agent", name=agent, parent=outer, agent=agent)
            )
        for one in nested:
            self._add(one, depth + 1)
        if agent:
            self._owners.end(end)
        self._owners.end(end)

    def _moment(self, value: Any) -> int | None:
        return told_ns(value, self._remarks)

    def _times(self, event: dict[str, Any], seconds: Any) -> tuple[Any, Any]:
        stamped = self._moment(event.get("timestamp"))
        if self._stamped_late:
            return before_ns(stamped, seconds), stamped
        return stamped, self._moment(event.get("completed"))

    def _model(self, event: dict[str, Any]) -> None:
        scope = self._owners.of_event(event)
        owner = self._owners.invocation(scope, calls_model=True)
        output = mapping(event.get("output"))
        call = call_of_event(event, self._remarks)
        start, end = self._times(event, output.get("time"))
        error = event.get("error") or output.get("error")
        said, reasoning = answer_of(mapping(first_choice(output).get("message")))
        draft = Draft(
            kind=StepKind.MODEL_CALL,
            invocation=owner,
            parent=self._owners.step(scope),
            start_ns=start,
            end_ns=end,
            status=_status(event, failed=bool(error)),
            error_message=self._texts.resolved(error),
            native_id=event.get("uuid"),
            native_kind="model",
            call=call,
            input=self._new_messages(event, owner),
            output=self._texts.resolved(said),
            reasoning=self._texts.resolved(reasoning),
            attributes=_kept(event, ("role", "cache", "retries", "working_time")),
        )
        number = self._made.add(draft)
        if owner in self._resets:
            self._resets.discard(owner)
            with_call(draft, resets_context=True)
        for one in call.tool_call_ids:
            self._asked[one] = number
        self._count(event, call)

    def _count(self, event: dict[str, Any], call: ModelCall) -> None:
        if event.get("cache") == "read":
            self._remarks.add(_CACHED)
        else:
            self.output_tokens += call.usage.output_total or 0
        if event.get("retries"):
            self._remarks.add(_RETRIED)

    def _new_messages(self, event: dict[str, Any], owner: int) -> Any:
        """Return the messages that the call before in this invocation was not sent."""
        sent = self._texts.messages_sent(event)
        before = self._sent.get(owner, [])
        self._sent[owner] = sent
        if before and sent[: len(before)] == before:
            sent = sent[len(before) :]
        return self._texts.resolved(sent) if sent else None

    def _tool(self, event: dict[str, Any]) -> None:
        scope = self._owners.of_event(event)
        self._owners.name_agent(event.get("agent_span_id"), event.get("agent"))
        call_id = clip(event.get("id"), IDENTIFIER, self._remarks)
        by = self._asked.get(call_id) if call_id else None
        name = clip(event.get("function"), NAME, self._remarks) or UNNAMED_TOOL
        error = event.get("error")
        failed = bool(error) or event.get("failed") is True
        start, end = self._times(event, event.get("working_time"))
        self._made.add(
            Draft(
                kind=StepKind.TOOL_CALL,
                invocation=(
                    self._owners.invocation(scope, calls_model=False)
                    if by is None
                    else self._made.drafts[by].invocation
                ),
                parent=self._owners.step(scope) if by is None else by,
                name=name,
                start_ns=start,
                end_ns=end,
                status=_status(event, failed=failed),
                error_type=mapping(error).get("type"),
                error_message=self._texts.resolved(
                    error if isinstance(error, str) else mapping(error).get("message")
                ),
                native_id=event.get("uuid"),
                native_kind="tool",
                call=ToolCall(name=name, call_id=call_id, requested_by=by),
                input=self._texts.resolved(event.get("arguments")),
                output=self._texts.resolved(event.get("result")),
                attributes=_kept(event, ("agent", "truncated", "working_time")),
            )
        )

    def _span_begin(self, event: dict[str, Any]) -> None:
        self._owners.begin_span(event, self._moment(event.get("timestamp")))

    def _span_end(self, event: dict[str, Any]) -> None:
        self._owners.end_span(event, self._moment(event.get("timestamp")))

    def _older_step(self, event: dict[str, Any]) -> None:
        moment = self._moment(event.get("timestamp"))
        if event.get("action") == "end":
            self._owners.end(moment)
            return
        kind = event.get("type")
        self._owners.begin(
            Scope(
                type=kind if isinstance(kind, str) else "",
                name=event.get("name"),
                parent=None,
                start_ns=moment,
            )
        )

    def _subtask(self, event: dict[str, Any]) -> None:
        start, end = self._times(event, None)
        self._plain(
            event,
            Draft(
                kind=StepKind.OTHER,
                name=event.get("name"),
                start_ns=start,
                end_ns=end,
                input=event.get("input"),
                output=event.get("result"),
            ),
        )

    def _begin(self, event: dict[str, Any]) -> None:
        self.add_input(mapping(event.get("sample")).get("input"), event)

    def add_input(self, given: Any, event: dict[str, Any]) -> None:
        """Add what the sample asks, a text or a list of messages."""
        for one in given if isinstance(given, list) else [given]:
            message = one if isinstance(one, dict) else {"content": one}
            role = message.get("role", "user")
            kind = StepKind.SYSTEM if role == "system" else StepKind.USER_MESSAGE
            if role in ("assistant", "tool"):
                kind = StepKind.OTHER
            self._plain(
                event,
                Draft(
                    kind=kind,
                    name="input" if kind is StepKind.OTHER else None,
                    output=message.get("content"),
                ),
            )

    def _human_input(self, event: dict[str, Any]) -> None:
        self._plain(event, Draft(kind=StepKind.USER_MESSAGE, output=event.get("input")))

    def _error(self, event: dict[str, Any]) -> None:
        self.add_error(event.get("error"), event)

    def add_error(self, error: Any, event: dict[str, Any]) -> None:
        """Add the error that ended a sample."""
        self.has_error = True
        self._plain(
            event,
            Draft(
                kind=StepKind.SYSTEM,
                name="error of the sample",
                status=StepStatus.ERROR,
                error_message=mapping(error).get("message"),
                output=mapping(error).get("traceback"),
            ),
        )

    def _limit(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        words = kind if isinstance(kind, str) else "limit"
        self._plain(
            event,
            Draft(
                kind=StepKind.SYSTEM,
                name=f"limit reached: {words}",
                output=event.get("message"),
            ),
        )

    def _compaction(self, event: dict[str, Any]) -> None:
        scope = self._owners.of_event(event)
        self._resets.add(self._owners.invocation(scope, calls_model=False))
        self._plain(
            event,
            Draft(
                kind=StepKind.MEMORY,
                name="context compacted",
                attributes=_kept(event, ("type", "tokens_before", "tokens_after")),
            ),
        )

    def _approval(self, event: dict[str, Any]) -> None:
        self._plain(
            event,
            Draft(
                kind=StepKind.GUARDRAIL,
                name=event.get("approver"),
                output=event.get("decision"),
                attributes=_kept(event, ("explanation",)),
            ),
        )

    def _plain(self, event: dict[str, Any], draft: Draft) -> None:
        """Add a step that is neither a model call nor a tool call."""
        scope = self._owners.of_event(event)
        draft.invocation = self._owners.invocation(scope, calls_model=False)
        draft.parent = self._owners.step(scope)
        if draft.start_ns is None and draft.end_ns is None:
            draft.start_ns = self._moment(event.get("timestamp"))
        draft.native_id = event.get("uuid")
        draft.native_kind = event.get("event")
        draft.input = self._texts.resolved(draft.input)
        draft.output = self._texts.resolved(draft.output)
        self._made.add(draft)


def _is_of_newer_log(event: Any) -> bool:
    return isinstance(event, dict) and bool(
        event.get("completed") or event.get("event") == "span_begin"
    )


def _status(event: dict[str, Any], *, failed: bool) -> StepStatus:
    if failed:
        return StepStatus.ERROR
    if event.get("pending") is True:
        return StepStatus.UNFINISHED
    return StepStatus.OK


def _kept(event: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: event[key] for key in keys if event.get(key) is not None}
