"""Steps out of a log or transcript, for readers whose files hold no spans.

A reader adds drafts in the order of the file, joins each tool result to the call that
asked for it, and may complete a draft as long as the trace is not finished: one model
call that stands on several lines is one draft.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import msgspec

from apps.engine.reading.recorded import body_with
from apps.engine.reading.text_limits import IDENTIFIER, MESSAGE, NAME, Remarks, clip
from apps.engine.trace import (
    AgentInvocation,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Via,
)

UNNAMED_TOOL: Final = "(unnamed tool)"
_JOINED_IN_ORDER: Final = (
    "Tool results without a call id, joined to the calls before them in order: {n}."
)
_ANSWERS_NOTHING: Final = "Tool results that answer no recorded tool call: {n}."
_ANSWERED_TWICE: Final = (
    "Tool results for a call that had one already, kept as steps of their own: {n}."
)


class Draft(msgspec.Struct, kw_only=True):
    """A step while its trace is being read. The fields are those of `Step`.

    `parent` is the number that `Transcript.add` gave to another draft, and so are
    `requested_by` and `retry_of` of its call; all are renumbered at the end.
    """

    kind: StepKind
    invocation: int = 0
    parent: int | None = None
    name: Any = None
    start_ns: int | None = None
    end_ns: int | None = None
    status: StepStatus = StepStatus.UNSET
    error_type: Any = None
    error_message: Any = None
    native_id: Any = None
    native_kind: Any = None
    call: ModelCall | ToolCall | None = None
    input: Any = None
    output: Any = None
    reasoning: Any = None
    attributes: dict[str, Any] | None = None


class Invoked(msgspec.Struct, kw_only=True):
    """An agent invocation while its trace is being read, like `AgentInvocation`."""

    agent: Any = None
    parent: int | None = None
    via: Via = Via.ROOT
    start_ns: int | None = None
    end_ns: int | None = None
    status: StepStatus = StepStatus.UNSET
    native_id: Any = None


class ToolResult(msgspec.Struct, kw_only=True):
    """What a tool gave back. A result without an error leaves the status as it is.

    Set `status` only where the file records how the call ended.
    """

    output: Any = None
    call_id: Any = None
    status: StepStatus = StepStatus.UNSET
    error_type: Any = None
    error_message: Any = None
    end_ns: int | None = None
    invocation: int | None = None
    native_kind: Any = None


class Transcript:
    """Collects the drafts and invocations of one trace.

    `drafts` and `invocations` may be changed in place until `finished` is called.
    Invocation 0 is the root and exists from the start, without a name.
    """

    def __init__(self, remarks: Remarks) -> None:
        self.remarks = remarks
        self.drafts: list[Draft] = []
        self.invocations: list[Invoked] = [Invoked()]
        self._by_call_id: dict[str, int] = {}
        self._answered: set[int] = set()
        self._speakers: dict[str, int] = {}
        self._waiting: deque[int] = deque()

    def add(self, draft: Draft) -> int:
        """Add a step at the end and return its number, for `parent` and the like."""
        number = len(self.drafts)
        self.drafts.append(draft)
        if isinstance(draft.call, ToolCall):
            self._waiting.append(number)
            if draft.call.call_id:
                self._by_call_id[draft.call.call_id] = number
        return number

    def speaker(self, name: Any, *, key: str | None = None) -> int:
        """Return the invocation of a named speaker, which lasts for the whole run.

        It is made at the first call, under the root; `key` stands for the name where
        one speaker is spelled in several ways.
        """
        own = str(name) if key is None else key
        if own not in self._speakers:
            self._speakers[own] = self.invoke(
                Invoked(agent=name, parent=0, via=Via.MANAGED)
            )
        return self._speakers[own]

    def invoke(self, invoked: Invoked) -> int:
        """Add an agent invocation and return its number."""
        self.invocations.append(invoked)
        return len(self.invocations) - 1

    def ask(self, *, name: Any, call_id: Any, arguments: Any, by: int | None) -> Draft:
        """Add the tool call that model call `by` asked for and return its draft.

        It belongs to the invocation of `by` and begins where that call ended.
        """
        asking = None if by is None else self.drafts[by]
        words = clip(name, NAME, self.remarks) or UNNAMED_TOOL
        own_id = clip(call_id, IDENTIFIER, self.remarks)
        draft = Draft(
            kind=StepKind.TOOL_CALL,
            invocation=asking.invocation if asking else 0,
            parent=by,
            name=words,
            start_ns=(asking.end_ns or asking.start_ns) if asking else None,
            native_id=own_id,
            native_kind="tool_call",
            call=ToolCall(name=words, call_id=own_id, requested_by=by),
            input=arguments,
        )
        self.add(draft)
        return draft

    def asked(self, call_id: Any) -> Draft | None:
        """Return the draft of the tool call with this id, where there is one."""
        number = self._number_of(call_id)
        return None if number is None else self.drafts[number]

    def give(self, result: ToolResult) -> Draft:
        """Join a tool result to its call and return the draft that now holds it.

        A result that answers no call, or a call that has its result, becomes a step
        of its own and is remarked on.
        """
        number = self._call_of(result)
        if number is None or number in self._answered:
            words = _ANSWERS_NOTHING if number is None else _ANSWERED_TWICE
            self.remarks.add(words)
            return self._lone(result)
        self._answered.add(number)
        draft = self.drafts[number]
        draft.output = result.output
        if result.status is not StepStatus.UNSET:
            draft.status = result.status
        draft.error_type = result.error_type or draft.error_type
        draft.error_message = result.error_message or draft.error_message
        draft.end_ns = draft.end_ns if result.end_ns is None else result.end_ns
        return draft

    def finished(
        self, *, by_time: bool = False
    ) -> tuple[tuple[Step, ...], tuple[AgentInvocation, ...], OrderSource]:
        """Return the steps, the invocations, and what the order rests on.

        With `by_time` the steps are sorted by start, ties in file order; where a
        start is missing, and without `by_time`, the order of the file stays.
        """
        drafts = self.drafts
        all_timed = bool(drafts) and all(one.start_ns is not None for one in drafts)
        order = list(range(len(drafts)))
        if by_time and all_timed:
            order.sort(key=lambda number: drafts[number].start_ns or 0)
        new = {old: seq for seq, old in enumerate(order)}
        requests: dict[int, list[str]] = {}
        for draft in drafts:
            call = draft.call
            if isinstance(call, ToolCall) and call.requested_by is not None:
                ids = requests.setdefault(call.requested_by, [])
                if call.call_id:
                    ids.append(call.call_id)
        steps = tuple(
            self._step(drafts[old], seq, new, requests.get(old, []))
            for seq, old in enumerate(order)
        )
        source = OrderSource.TIME if by_time and all_timed else OrderSource.FILE
        return steps, self._invocations(), source

    def _number_of(self, call_id: Any) -> int | None:
        own_id = clip(call_id, IDENTIFIER, self.remarks)
        return self._by_call_id.get(own_id) if own_id else None

    def _call_of(self, result: ToolResult) -> int | None:
        if clip(result.call_id, IDENTIFIER, self.remarks):
            return self._number_of(result.call_id)
        while self._waiting and self._waiting[0] in self._answered:
            self._waiting.popleft()
        if not self._waiting:
            return None
        self.remarks.add(_JOINED_IN_ORDER)
        return self._waiting.popleft()

    def _lone(self, result: ToolResult) -> Draft:
        draft = Draft(
            kind=StepKind.OTHER,
            invocation=result.invocation or 0,
            start_ns=result.end_ns,
            end_ns=result.end_ns,
            status=result.status,
            error_type=result.error_type,
            error_message=result.error_message,
            native_id=result.call_id,
            native_kind=result.native_kind or "tool_result",
            output=result.output,
        )
        self.add(draft)
        return draft

    def _step(
        self, draft: Draft, seq: int, new: dict[int, int], asked: list[str]
    ) -> Step:
        remarks = self.remarks
        return Step(
            seq=seq,
            kind=draft.kind,
            invocation=draft.invocation,
            parent=None if draft.parent is None else new[draft.parent],
            name=clip(draft.name, NAME, remarks),
            start_ns=draft.start_ns,
            end_ns=draft.end_ns,
            status=draft.status,
            error_type=clip(draft.error_type, IDENTIFIER, remarks),
            error_message=clip(draft.error_message, MESSAGE, remarks),
            native_id=clip(draft.native_id, IDENTIFIER, remarks),
            native_kind=clip(draft.native_kind, IDENTIFIER, remarks),
            call=_renumbered(draft.call, new, asked),
            body=body_with(
                input=draft.input,
                output=draft.output,
                reasoning=draft.reasoning,
                attributes=draft.attributes,
            ),
        )

    def _invocations(self) -> tuple[AgentInvocation, ...]:
        remarks = self.remarks
        return tuple(
            AgentInvocation(
                number=number,
                agent=clip(one.agent, NAME, remarks),
                parent=None if number == 0 else (one.parent or 0),
                via=one.via,
                start_ns=one.start_ns,
                end_ns=one.end_ns,
                status=one.status,
                native_id=clip(one.native_id, IDENTIFIER, remarks),
            )
            for number, one in enumerate(self.invocations)
        )


def ending_of(is_error: Any) -> StepStatus:
    """Return how a tool ended by a flag; unset where the flag is neither true nor false."""
    if not isinstance(is_error, bool):
        return StepStatus.UNSET
    return StepStatus.ERROR if is_error else StepStatus.OK


def with_call(draft: Draft, **facts: Any) -> None:
    """Set fields of the model call of a draft, such as `usage` or `model`."""
    if not isinstance(draft.call, ModelCall):
        raise TypeError("Only a model call has these facts.")
    draft.call = msgspec.structs.replace(draft.call, **facts)


def _renumbered(
    call: ModelCall | ToolCall | None, new: dict[int, int], asked: list[str]
) -> ModelCall | ToolCall | None:
    if isinstance(call, ToolCall):
        by = call.requested_by
        return msgspec.structs.replace(
            call, requested_by=None if by is None else new[by]
        )
    if isinstance(call, ModelCall):
        retry = call.retry_of
        return msgspec.structs.replace(
            call,
            retry_of=None if retry is None else new[retry],
            tool_call_ids=call.tool_call_ids or tuple(asked),
        )
    return None
