"""One invocation as contracts read it: what it was given, gave back, decided, called.

What was not recorded is undecided, never wrong. Two cases are told apart where there is
no output: an invocation that is recorded to have ended in an error gave nothing, which
is a fact; one whose end was not recorded may have given something later.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

from apps.engine.agent_contracts.unread import Unread
from apps.engine.bodies.calls import CalledTool
from apps.engine.bodies.canonical import canonical, opened
from apps.engine.bodies.recorded import REDACTED
from apps.engine.conduct import InvocationConduct
from apps.engine.contracts.budget import Undecided, Value
from apps.engine.extraction import (
    AUTOMATIC,
    DecisionKind,
    DecisionNormaliser,
    DecisionSpec,
    DecisionState,
    Extracted,
    Source,
    extractor,
)
from apps.engine.extraction.found import step_of_output
from apps.engine.extraction.outputs import MOST_TEXT, given_in
from apps.engine.extraction.redactions import WHY_REDACTED
from apps.engine.extraction.tool_calls import ToolNames
from apps.engine.trace import AgentInvocation, Body, OrderSource, StepStatus, Trace

GAVE_NOTHING: Final = "The invocation ended in an error and gave no output."
NOT_DECIDED: Final = "The invocation ended in an error and had not decided."
_NO_BODIES: Final = "no texts of this trace are kept"


class GaveNothing(Exception):
    """The invocation is recorded to have failed, and gave back nothing to judge."""


class Part(msgspec.Struct, frozen=True):
    """Something that contracts read: a JSON value, and the same as text.

    `hidden` are the names of the fields that hold something redacted; `is_cut` says
    that only the end of the text is here. `around` is the recorded message that the
    value stood in, `None` where it stood in none.
    """

    value: Value
    text: str
    step: int | None
    hidden: frozenset[str]
    is_cut: bool = False
    around: Any = None


class Seen:
    """What contracts see of one invocation; each part is read once, when asked for."""

    def __init__(
        self,
        one: InvocationConduct,
        *,
        decision: DecisionSpec | Unread = AUTOMATIC,
        task: str | None = None,
    ) -> None:
        self.one = one
        self.decision = decision
        self.task = task
        self._parts: dict[str, Part | Undecided | GaveNothing] = {}
        self._trace: Trace | None = None
        self._calls: list[dict[str, Any]] | None = None
        self._bodies: dict[int, Body | None] | None = None

    @property
    def has_failed(self) -> bool:
        """Whether it is recorded to have ended in an error."""
        return self.one.status is StepStatus.ERROR

    @property
    def normalisers(self) -> tuple[DecisionNormaliser, ...]:
        """Those under which its decision is compared."""
        decision = self.decision
        return () if isinstance(decision, Unread) else decision.normalisers

    def given(self) -> Part:
        """The input; raises `Undecided` where none is recorded."""
        return self._part("input", self._read_input)

    def output(self) -> Part:
        """What it gave back; raises `Undecided` or `GaveNothing` where there is none."""
        return self._part("output", self._read_output)

    def decided(self) -> Part:
        """What it decided; raises `Undecided` or `GaveNothing` where that is not known.

        The part has the value null where the invocation ended without a decision. The
        invocation is looked at alone, whichever one decides for the agent.
        """
        return self._part("decision", self._read_decision)

    def calls_of(self, tools: ToolNames) -> list[CalledTool]:
        """Its calls of these tools, in order."""
        return [call for call in self.one.calls if tools.take(call.name)]

    def arguments(self, call: CalledTool) -> Part:
        """The arguments of a call; raises `Undecided` where none are recorded."""
        recorded = self._body(call, "input")
        if recorded is None:
            raise Undecided("no arguments of the call are recorded")
        return _part_of(recorded, None, call.step)

    def facts(self, named: frozenset[str]) -> dict[str, Any]:
        """The variables of a CEL expression that it names and that are recorded.

        Raises `GaveNothing` where it names the output and the invocation failed without
        one; an expression that names `status` too sees null instead.
        """
        facts: dict[str, Any] = {}
        if "input" in named and self.one.input is not None:
            facts["input"] = opened(self.one.input)
        if "output" in named:
            self._add_output(facts, named)
        if "calls" in named:
            facts["calls"] = self._called()
        if "tools" in named:
            facts["tools"] = [call.name for call in self.one.calls]
        return facts | {"status": self.one.status.value, "agent": self.one.agent}

    def own_trace(self) -> Trace:
        """Its own steps as a trace with the one invocation."""
        if self._trace is None:
            one = self.one
            self._trace = Trace(
                name="",
                steps=tuple(
                    [msgspec.structs.replace(step, invocation=0) for step in one.steps]
                ),
                invocations=(
                    AgentInvocation(0, agent=one.agent or None, status=one.status),
                ),
                order=OrderSource.FILE,
            )
        return self._trace

    def _part(self, name: str, read: Callable[[], Part]) -> Part:
        found = self._parts.get(name)
        if found is None:
            try:
                found = read()
            except (Undecided, GaveNothing) as error:
                found = error
            self._parts[name] = found
        if isinstance(found, Part):
            return found
        raise type(found)(str(found))

    def _read_input(self) -> Part:
        given = self.one.input
        if given is None:
            raise Undecided(self._why_absent("input"))
        first = self.one.steps[0].seq if self.one.steps else None
        plain = opened(given)
        return _part_of(plain, given if isinstance(given, str) else None, first)

    def _read_output(self) -> Part:
        recorded = self.one.output
        if recorded is None:
            self._refuse_failed(GAVE_NOTHING)
            raise Undecided(self._why_absent("output"))
        given = given_in(recorded)
        value = given.text if given.value is None else given.value
        is_in_text = given.value is None or given.way != "the output"
        step = step_of_output(self.one)
        if step is None and self.one.steps:
            step = self.one.steps[-1].seq
        part = _part_of(value, given.text if is_in_text else None, step)
        is_message = isinstance(recorded, dict | list) and value is not recorded
        return msgspec.structs.replace(part, around=recorded if is_message else None)

    def _read_decision(self) -> Part:
        if isinstance(self.decision, Unread):
            raise Undecided("how the decision is found cannot be read")
        found = extractor(self.decision).of_invocation(self.one)
        if found.state is DecisionState.DECIDED:
            return _part_of(_decision_in(found), None, found.step)
        if found.state is DecisionState.NO_BODIES:
            raise Undecided(self._why_absent("output"))
        if found.state is DecisionState.NOT_COMPARED or found.how == WHY_REDACTED:
            raise Undecided(f"{found.how[:1].lower()}{found.how[1:].rstrip('.')}")
        self._refuse_failed(NOT_DECIDED)
        was_recorded = self._was_recorded(self.decision)
        if found.state is DecisionState.FAILED or not was_recorded:
            raise Undecided(self._why_absent("output"))
        return _part_of(None, None, found.step)

    def _was_recorded(self, spec: DecisionSpec) -> bool:
        """Whether what the decision is looked for in is recorded at all."""
        is_last_call = spec.kind is DecisionKind.LAST_TOOL_CALL
        if spec.source is Source.OUTPUT and not is_last_call:
            return self.one.output is not None
        call = ToolNames(spec.tool).last(self.one)
        if call is None:
            return bool(self.one.steps)
        name = "output" if spec.source is Source.RESULT else "input"
        return self._body(call, name) is not None

    def _refuse_failed(self, sentence: str) -> None:
        if self.has_failed and self.one.has_bodies:
            raise GaveNothing(sentence)

    def _why_absent(self, what: str) -> str:
        if not self.one.has_bodies:
            return _NO_BODIES
        if what == "output" and self.one.status is StepStatus.UNFINISHED:
            return "the recording ends before the invocation does, without an output"
        return f"no {what} of the invocation is recorded"

    def _add_output(self, facts: dict[str, Any], named: frozenset[str]) -> None:
        try:
            facts["output"] = self.output().value.plain
        except Undecided:
            return
        except GaveNothing:
            if "status" not in named:
                raise
            facts["output"] = None

    def _called(self) -> list[dict[str, Any]]:
        if self._calls is None:
            self._calls = [
                {
                    "tool": call.name,
                    "failed": call.failed,
                    **_known("arguments", self._body(call, "input")),
                    **_known("result", self._body(call, "output")),
                }
                for call in self.one.calls
            ]
        return self._calls

    def _body(self, call: CalledTool, name: str) -> Any:
        if self._bodies is None:
            self._bodies = {step.seq: step.body for step in self.one.steps}
        body = self._bodies.get(call.step)
        return None if body is None else opened(getattr(body, name))


def hidden_in(plain: Any) -> frozenset[str]:
    """The names of the fields that hold something redacted; "" for the value itself."""
    found: set[str] = set()
    waiting: list[tuple[Any, str]] = [(plain, "")]
    while waiting:
        value, name = waiting.pop()
        if isinstance(value, str):
            if REDACTED in value:
                found.add(name)
        elif isinstance(value, dict):
            waiting += [(item, key) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [(item, name) for item in value]
    return frozenset(found)


def _part_of(plain: Any, text: str | None, step: int | None) -> Part:
    value = Value(plain, decimals=False)
    return Part(
        value=value,
        text=as_text(value.plain) if text is None else text,
        step=step,
        hidden=hidden_in(value.plain),
        is_cut=text is not None and len(text) >= MOST_TEXT,
    )


def as_text(plain: Any) -> str:
    """A value as a pattern sees it: a text as it is, anything else as JSON."""
    return plain if isinstance(plain, str) else canonical(plain)


def _decision_in(found: Extracted) -> Any:
    try:
        return json.loads(found.value)
    except (ValueError, RecursionError):
        # A long decision ends in a hash of itself.
        raise Undecided("the decision is too long to be read by a contract") from None


def _known(name: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {name: value}
