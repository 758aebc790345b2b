"""Which agent invocation each event of an Inspect sample belongs to.

Newer logs bracket events with spans that have ids, older ones with steps that only
begin and end, or nest events inside a tool call. A span of an agent is an invocation.
A span of a tool, a scorer or the like becomes one as soon as a model is called in it,
so that a grading model is never in the sequence of the agent it grades.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from apps.engine.reading.recorded import word
from apps.engine.reading.transcript import Draft, Invoked, Transcript
from apps.engine.trace import StepKind, StepStatus, Via

_AGENT: Final = "agent"
_DEEPEST: Final = 500
_VIAS: Final = {
    "tool": Via.TOOL,
    "handoff": Via.HANDOFF,
    "scorer": Via.MANAGED,
    "approver": Via.MANAGED,
    "subtask": Via.SUBAGENT,
    "fork": Via.SUBAGENT,
}


class Scope(msgspec.Struct):
    """A span, a step or a nested list of events, and its invocation once it has one."""

    type: str
    name: Any
    parent: Scope | None
    id: Any = None
    start_ns: int | None = None
    invocation: int | None = None
    step: int | None = None
    agent: Any = None
    depth: int = 0


class Owners:
    """Keeps the scopes of one sample and finds the invocation of an event."""

    def __init__(self, made: Transcript) -> None:
        self._made = made
        self._by_id: dict[str, Scope] = {}
        self._open: list[Scope] = []
        self._agents: dict[str, Any] = {}

    def name_agent(self, span_id: Any, agent: Any) -> None:
        """Remember the agent that a tool call handed over to in a span."""
        if isinstance(span_id, str):
            self._agents[span_id] = agent

    def begin_span(self, event: dict[str, Any], moment: int | None) -> None:
        """Open a span; one of an agent becomes an invocation with a step of its own."""
        own_id = event.get("id")
        if not isinstance(own_id, str) or own_id in self._by_id:
            return
        above = event.get("parent_id")
        parent = self._by_id.get(above) if isinstance(above, str) else self.nested()
        scope = Scope(
            type=word(event.get("type")),
            name=event.get("name"),
            parent=None,
            id=own_id,
            start_ns=moment,
            agent=self._agents.get(own_id),
        )
        _put_below(scope, parent)
        self._by_id[own_id] = scope
        if scope.type == _AGENT:
            self._begin_agent(scope)

    def end_span(self, event: dict[str, Any], moment: int | None) -> None:
        """Close a span: its invocation and its step end here."""
        scope = self._by_id.get(word(event.get("id")))
        if scope is not None:
            self._end(scope, moment)

    def begin(self, scope: Scope) -> None:
        """Open an older step or nested list, until `end`."""
        _put_below(scope, scope.parent or self.nested())
        self._open.append(scope)
        if scope.type == _AGENT:
            self._begin_agent(scope)

    def end(self, moment: int | None) -> None:
        """Close what `begin` opened last."""
        if self._open:
            self._end(self._open.pop(), moment)

    def nested(self) -> Scope | None:
        """Return the innermost open step or nested list."""
        return self._open[-1] if self._open else None

    def of_event(self, event: dict[str, Any]) -> Scope | None:
        """Return the scope that an event stands in."""
        span_id = event.get("span_id")
        found = self._by_id.get(span_id) if isinstance(span_id, str) else None
        return found or self.nested()

    def invocation(self, scope: Scope | None, *, calls_model: bool) -> int:
        """Return the invocation of what stands in `scope`; the root is number 0.

        With `calls_model` the nearest scope that is not the agent's own work becomes
        an invocation.
        """
        while scope is not None:
            if scope.invocation is not None:
                return scope.invocation
            if calls_model and scope.type in _VIAS:
                return self._invoke(scope, _VIAS[scope.type])
            scope = scope.parent
        return 0

    def step(self, scope: Scope | None) -> int | None:
        """Return the step of the nearest agent or tool call around, if there is one."""
        while scope is not None:
            if scope.step is not None:
                return scope.step
            scope = scope.parent
        return None

    def _begin_agent(self, scope: Scope) -> None:
        above = scope.parent
        via = self._via(scope)
        number = self._invoke(scope, via)
        scope.step = self._made.add(
            Draft(
                kind=StepKind.AGENT,
                invocation=number,
                parent=self.step(above),
                name=scope.agent or scope.name,
                start_ns=scope.start_ns,
                native_id=scope.id,
                native_kind="span agent",
                status=StepStatus.UNFINISHED,
            )
        )

    def _via(self, scope: Scope) -> Via:
        """Return how an agent came to be: by what stands between it and the one above."""
        between = set()
        above = scope.parent
        while above is not None and above.type != _AGENT:
            between.add(above.type)
            above = above.parent
        if scope.agent is not None or "handoff" in between:
            return Via.HANDOFF
        if "tool" in between:
            return Via.TOOL
        return Via.ROOT if above is None else Via.SUBAGENT

    def _invoke(self, scope: Scope, via: Via) -> int:
        scope.invocation = self._made.invoke(
            Invoked(
                agent=scope.agent or scope.name,
                parent=self.invocation(scope.parent, calls_model=False),
                via=via,
                start_ns=scope.start_ns,
                native_id=scope.id,
            )
        )
        return scope.invocation

    def _end(self, scope: Scope, moment: int | None) -> None:
        if scope.invocation is not None:
            self._made.invocations[scope.invocation].end_ns = moment
        if scope.step is not None and scope.type == _AGENT:
            draft = self._made.drafts[scope.step]
            draft.end_ns = moment
            draft.status = StepStatus.OK


def _put_below(scope: Scope, parent: Scope | None) -> None:
    """Set the parent; what is nested deeper than any agent nests stands at the top."""
    if parent is not None and parent.depth < _DEEPEST:
        scope.parent = parent
        scope.depth = parent.depth + 1
    else:
        scope.parent = None
