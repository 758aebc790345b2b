"""What each agent did in one trace: what it was given, its acts, what it gave back.

An invocation is given what its own span records, else what its first model call was
asked, else the arguments of the tool call that it ran in, else what the user or a
handoff said before it. It gives back what its own span records, else what its last
model call said. Nothing is guessed beyond that:
what was not recorded is `None`, and it is not claimed that what was given is all the
agent knew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from apps.engine.bodies import CalledTool, has_bodies, tool_lanes
from apps.engine.bodies.answers import NO_ANSWERS, askers_in, last_said
from apps.engine.bodies.calls import Round
from apps.engine.bodies.canonical import opened
from apps.engine.root_input import root_input, said_by_user
from apps.engine.sequences import (
    RecordedCall,
    Removal,
    once_per_trace,
    recorded_calls,
    steps_in_order,
)
from apps.engine.trace import (
    ModelCall,
    Step,
    StepKind,
    StepStatus,
    Trace,
)

_FAILED: Final = frozenset({StepStatus.ERROR, StepStatus.UNFINISHED})
_NO_ACTS: Final = frozenset({Removal.PLACEHOLDER, Removal.WRAPPER, Removal.DUPLICATE})
_EMPTY: Final[tuple[Any, ...]] = ("", [], {})
_ACTS: Final = frozenset(
    {StepKind.TOOL_CALL, StepKind.HANDOFF, StepKind.RETRIEVAL, StepKind.MEMORY}
)
_TEMPERATURE: Final = "temperature"
_HOTTEST: Final = 100
_DEEPEST: Final = 3


class InvocationConduct(msgspec.Struct, frozen=True):
    """One activation of an agent, or a whole trace.

    `number` is that of `Trace.invocations`; `None` for what no invocation owns and for
    the whole trace. `input` and `output` are JSON values, `None` where not recorded.
    `steps` are its own in the order of the trace, without those of the invocations
    below it. `calls` are its tool calls in order, `rounds` the same by what was asked
    for at once. A `status` of error or unfinished says that the invocation failed.
    """

    number: int | None
    agent: str
    input: Any
    output: Any
    steps: tuple[Step, ...]
    calls: tuple[CalledTool, ...]
    rounds: tuple[Round, ...]
    models: tuple[str, ...]
    status: StepStatus
    has_bodies: bool
    not_asked: frozenset[int] = frozenset()

    @property
    def has_failed(self) -> bool:
        """Whether it is recorded to have ended in an error, or not to have ended."""
        return self.status in _FAILED


class Conduct(msgspec.Struct, frozen=True):
    """What one agent did in one trace. `agent` is "" where the file names none."""

    agent: str
    invocations: tuple[InvocationConduct, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all its invocations, by their place in the trace."""
        if len(self.invocations) == 1:
            return self.invocations[0].steps
        found = [step for one in self.invocations for step in one.steps]
        return tuple(sorted(found, key=_seq))

    @property
    def calls(self) -> tuple[CalledTool, ...]:
        """The tool calls of all its invocations, one invocation after another."""
        return tuple([call for one in self.invocations for call in one.calls])


@once_per_trace
def conducts_of(trace: Trace) -> tuple[Conduct, ...]:
    """What each agent of `trace` did, in the order of their first acts.

    An agent is here if it asked a model, called a tool, handed over, or is recorded
    with an output. What no named agent owns is the conduct of agent "". Steps in any
    order give the same answer. Linear in the steps, besides sorting. Never raises.
    """
    read = _Read(trace)
    by_agent: dict[str, list[InvocationConduct]] = {}
    for number in read.acted():
        one = _invocation(read, number)
        by_agent.setdefault(one.agent, []).append(one)
    # Owners come in the order of their first steps, and so do agents.
    return tuple([Conduct(agent, tuple(found)) for agent, found in by_agent.items()])


@once_per_trace
def whole_conduct(trace: Trace) -> Conduct:
    """The trace as one conduct of agent "": root input, last answer, all steps.

    The answer is that of the last model call, whichever agent made it, by the same
    rule as the output of one agent; else the last output of an agent.
    """
    steps = steps_in_order(trace)
    rounds = sorted(
        [one for lane in tool_lanes(trace) for one in lane.rounds], key=_place
    )
    whole = InvocationConduct(
        number=None,
        agent="",
        input=root_input(trace),
        output=_answer_of_whole(trace, steps),
        steps=steps,
        calls=tuple([call for one in rounds for call in one.calls]),
        rounds=tuple(rounds),
        models=_models(steps),
        status=_status_of_whole(trace, steps),
        has_bodies=has_bodies(trace),
    )
    return Conduct("", (whole,))


def temperature_of(conduct: Conduct) -> float | None:
    """The sampling temperature its model calls asked for.

    `None` where no call records one, some do not, or they differ. Wrapper spans and
    placeholders ask for nothing, so what they record or not is no matter.
    """
    found = {
        _temperature_in(None if step.body is None else step.body.attributes, 0)
        for one in conduct.invocations
        for step in one.steps
        if step.kind is StepKind.MODEL_CALL and step.seq not in one.not_asked
    }
    return found.pop() if len(found) == 1 else None


class _Read:
    """What is looked up for each invocation of a trace, read once for all of them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.steps = steps_in_order(trace)
        self.by_seq = {step.seq: step for step in self.steps}
        self.owned: dict[int | None, list[Step]] = {}
        self.said_before: dict[int | None, Any] = {}
        said = None
        for step in self.steps:
            owner = self.owner(step)
            if owner not in self.owned:
                self.owned[owner] = []
                self.said_before[owner] = said
            self.owned[owner].append(step)
            if (now := _said_for_others(step)) is not None:
                said = now
        self.rounds: dict[int | None, list[Round]] = {}
        for lane in tool_lanes(trace):
            number = lane.invocation
            owner = number if number is not None and self.has(number) else None
            self.rounds.setdefault(owner, []).extend(lane.rounds)
        self.calls: dict[int | None, list[RecordedCall]] = {}
        for entries in recorded_calls(trace).values():
            for entry in entries:
                self.calls.setdefault(self.owner(entry.step), []).append(entry)
        self.askers = askers_in(trace)

    def owner(self, step: Step) -> int | None:
        """The invocation that a step is of; `None` where the trace has none such."""
        number = step.invocation
        return number if number is not None and self.has(number) else None

    def has(self, number: int) -> bool:
        """Whether the trace has an invocation of this number."""
        return 0 <= number < len(self.trace.invocations)

    def acted(self) -> list[int | None]:
        """The owners that did something, in the order of their first steps."""
        return [owner for owner, own in self.owned.items() if self._acts(owner, own)]

    def _acts(self, owner: int | None, own: list[Step]) -> bool:
        if any(step.kind in _ACTS for step in own):
            return True
        if any(one.removed not in _NO_ACTS for one in self.calls.get(owner, ())):
            return True
        # A wrapper of the whole run repeats what the agents below it said.
        # In a replay there is nobody below, also where the agent has no name.
        is_named = owner is not None and self.trace.invocations[owner].agent is not None
        return (is_named or "replay" in self.trace.metadata) and any(
            step.kind is StepKind.AGENT and _given_back(step) is not None
            for step in own
        )


def _said_for_others(step: Step) -> Any:
    """What a handoff or a user said, which may be the input of what comes after it."""
    if step.kind is StepKind.HANDOFF and step.body is not None:
        return opened(step.body.input)
    return _spoken(step) if step.kind is StepKind.USER_MESSAGE else None


def _invocation(read: _Read, number: int | None) -> InvocationConduct:
    own, trace = read.owned[number], read.trace
    rounds = read.rounds.get(number, [])
    calls = read.calls.get(number, ())
    return InvocationConduct(
        number=number,
        agent="" if number is None else trace.invocations[number].agent or "",
        input=_input(read, number),
        output=_output(read, number),
        steps=tuple(own),
        calls=tuple([call for one in rounds for call in one.calls]),
        rounds=tuple(rounds),
        models=_models(own),
        status=_status(trace, number, own),
        has_bodies=has_bodies(trace),
        not_asked=frozenset([c.step.seq for c in calls if c.removed in _NO_ACTS]),
    )


def _own_span(trace: Trace, number: int | None, own: list[Step]) -> Step | None:
    """The step that stands for the invocation as a whole, where one is recorded."""
    spans = [step for step in own if step.kind is StepKind.AGENT]
    if number is None or not spans:
        return None
    native = trace.invocations[number].native_id
    same = [step for step in spans if native is not None and step.native_id == native]
    return (same or spans)[0]


def _input(read: _Read, number: int | None) -> Any:
    """The first that is recorded and asks for something; else the first recorded."""
    found = None
    for given in _inputs(read, number):
        if given is not None and given not in _EMPTY and not _is_prompt(given):
            return given
        found = given if found is None else found
    return found


def _inputs(read: _Read, number: int | None) -> Iterator[Any]:
    own = read.owned[number]
    span = _own_span(read.trace, number, own)
    if span is not None:
        yield _asked(_given(span))
    for step in own:
        if step.kind is StepKind.USER_MESSAGE and step.body is not None:
            yield _spoken(step)
            break
        if step.kind is StepKind.MODEL_CALL and _given(step) is not None:
            yield _asked(_given(step))
            break
    yield _called_with(read, span or own[0])
    yield read.said_before[number]


def _is_prompt(given: Any) -> bool:
    """Whether messages are those of the system alone, which every run is given."""
    return isinstance(given, list) and all(
        isinstance(one, dict) and one.get("role") == "system" for one in given
    )


def _called_with(read: _Read, first: Step) -> Any:
    """The arguments of the tool call that an agent runs inside of."""
    above = None if first.parent is None else read.by_seq.get(first.parent)
    if above is None or above.kind is not StepKind.TOOL_CALL:
        return None
    return None if read.owner(above) == read.owner(first) else opened(_given(above))


def _asked(given: Any) -> Any:
    """The last thing that a user said in the messages of a request, else all of it."""
    last = given
    for said in said_by_user(given, 0):
        last = said
    return opened(last)


def _spoken(step: Step) -> Any:
    body = step.body
    if body is None:
        return None
    return opened(body.output if body.output is not None else body.input)


def _output(read: _Read, number: int | None) -> Any:
    span = _own_span(read.trace, number, read.owned[number])
    if span is not None and (given := _given_back(span)) is not None:
        return given
    return last_said(read.calls.get(number, ()), read.askers)


def _answer_of_whole(trace: Trace, steps: tuple[Step, ...]) -> Any:
    calls = [one for entries in recorded_calls(trace).values() for one in entries]
    if any(one.removed not in NO_ANSWERS for one in calls):
        return last_said(calls, askers_in(trace))
    spans = [step for step in steps if step.kind is StepKind.AGENT]
    given = [_given_back(step) for step in reversed(spans)]
    return next((one for one in given if one is not None), None)


def _given(step: Step) -> Any:
    return None if step.body is None else step.body.input


def _given_back(step: Step) -> Any:
    return None if step.body is None else step.body.output


def _models(steps: Iterable[Step]) -> tuple[str, ...]:
    names = [
        step.call.model
        for step in steps
        if isinstance(step.call, ModelCall) and step.call.model
    ]
    return tuple(dict.fromkeys(names))


def _status(trace: Trace, number: int | None, own: list[Step]) -> StepStatus:
    """How an invocation ended: as recorded, else as its last act did."""
    recorded = StepStatus.UNSET if number is None else trace.invocations[number].status
    if recorded is not StepStatus.UNSET:
        return recorded
    span = _own_span(trace, number, own)
    if span is not None and span.status is not StepStatus.UNSET:
        return span.status
    acts = [s for s in own if s.kind in _ACTS or s.kind is StepKind.MODEL_CALL]
    # A failed tool is something that the agent may go on from; a failed model is not.
    if acts and acts[-1].kind is StepKind.MODEL_CALL:
        return acts[-1].status
    return StepStatus.UNSET


def _status_of_whole(trace: Trace, steps: tuple[Step, ...]) -> StepStatus:
    roots = [one for one in trace.invocations if one.parent is None]
    if any(one.status in _FAILED for one in roots):
        return next(one.status for one in roots if one.status in _FAILED)
    if roots and all(one.status is StepStatus.OK for one in roots):
        return StepStatus.OK
    return _status(trace, None, list(steps))


def _temperature_in(value: Any, depth: int) -> float | None:
    value = opened(value)
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None
    for key, item in value.items():
        is_number = isinstance(item, int | float) and not isinstance(item, bool)
        is_named = str(key).rpartition(".")[2] == _TEMPERATURE
        if is_named and is_number and 0 <= item <= _HOTTEST:
            return float(item)
    return next(_below(value, depth), None)


def _below(value: dict[str, Any], depth: int) -> Iterator[float]:
    for item in value.values():
        if isinstance(item, dict | str):
            found = _temperature_in(item, depth + 1)
            if found is not None:
                yield found


def _place(one: Round) -> int:
    return one.steps[0]


def _seq(step: Step) -> int:
    return step.seq
