"""What each agent did in one trace: what it was given, its acts, what it gave back.

An invocation is given what its own span records, else what its first model call was
asked, else what the user or a handoff said before it. Nothing is guessed beyond that:
what was not recorded is `None`, and it is not claimed that what was given is all the
agent knew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.bodies import CalledTool, has_bodies, tool_lanes
from apps.engine.bodies.answers import final_answer
from apps.engine.bodies.calls import Round
from apps.engine.bodies.canonical import opened
from apps.engine.bodies.texts import said_in
from apps.engine.root_input import root_input, said_by_user
from apps.engine.sequences import (
    Removal,
    once_per_trace,
    recorded_calls,
    steps_in_order,
)
from apps.engine.trace import ModelCall, Step, StepKind, StepStatus, Trace

_FAILED: Final = frozenset({StepStatus.ERROR, StepStatus.UNFINISHED})
_NO_ACTS: Final = frozenset({Removal.PLACEHOLDER, Removal.WRAPPER, Removal.DUPLICATE})
_ACTS: Final = frozenset(
    {StepKind.TOOL_CALL, StepKind.HANDOFF, StepKind.RETRIEVAL, StepKind.MEMORY}
)
_TEMPERATURE: Final = "temperature"
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
    order give the same answer. Linear in the steps. Never raises.
    """
    steps = steps_in_order(trace)
    owned: dict[int | None, list[Step]] = {}
    for step in steps:
        owned.setdefault(_owner(trace, step), []).append(step)
    acted = _acted(trace, steps)
    by_agent: dict[str, list[InvocationConduct]] = {}
    for number, own in owned.items():
        if number in acted:
            one = _invocation(trace, number, own)
            by_agent.setdefault(one.agent, []).append(one)
    conducts = [
        Conduct(agent, tuple(sorted(found, key=_first)))
        for agent, found in by_agent.items()
    ]
    return tuple(sorted(conducts, key=lambda one: _first(one.invocations[0])))


@once_per_trace
def whole_conduct(trace: Trace) -> Conduct:
    """The trace as one conduct of agent "": root input, final answer, all steps."""
    steps = steps_in_order(trace)
    lanes = sorted(tool_lanes(trace), key=lambda lane: lane.calls[0].step)
    rounds = sorted(
        [one for lane in lanes for one in lane.rounds], key=lambda one: one.steps[0]
    )
    answer = final_answer(trace)
    whole = InvocationConduct(
        number=None,
        agent="",
        input=root_input(trace),
        output=None if answer is None else _output_at(steps, answer.step),
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

    `None` where no call records one, some do not, or they differ.
    """
    found: set[float | None] = set()
    for step in conduct.steps:
        if step.kind is StepKind.MODEL_CALL:
            attributes = None if step.body is None else step.body.attributes
            found.add(_temperature_in(attributes, 0))
    return found.pop() if len(found) == 1 else None


def _owner(trace: Trace, step: Step) -> int | None:
    number = step.invocation
    if number is None or not 0 <= number < len(trace.invocations):
        return None
    return number


def _acted(trace: Trace, steps: tuple[Step, ...]) -> set[int | None]:
    acted = {_owner(trace, step) for step in steps if step.kind in _ACTS}
    for entries in recorded_calls(trace).values():
        for entry in entries:
            if entry.removed not in _NO_ACTS:
                acted.add(_owner(trace, entry.step))
    for step in steps:
        if step.kind is StepKind.AGENT and _given_back(step) is not None:
            number = _owner(trace, step)
            # A wrapper of the whole run repeats what the agents below it said.
            if number is not None and trace.invocations[number].agent is not None:
                acted.add(number)
    return acted


def _invocation(trace: Trace, number: int | None, own: list[Step]) -> InvocationConduct:
    rounds = [
        one
        for lane in tool_lanes(trace)
        if lane.invocation == number
        for one in lane.rounds
    ]
    steps = tuple(own)
    return InvocationConduct(
        number=number,
        agent="" if number is None else trace.invocations[number].agent or "",
        input=_input(trace, number, own),
        output=_output(trace, number, own),
        steps=steps,
        calls=tuple([call for one in rounds for call in one.calls]),
        rounds=tuple(rounds),
        models=_models(steps),
        status=_status(trace, number, own),
        has_bodies=has_bodies(trace),
    )


def _own_span(trace: Trace, number: int | None, own: list[Step]) -> Step | None:
    """The step that stands for the invocation as a whole, where one is recorded."""
    spans = [step for step in own if step.kind is StepKind.AGENT]
    if number is None or not spans:
        return None
    native = trace.invocations[number].native_id
    same = [step for step in spans if native is not None and step.native_id == native]
    return (same or spans)[0]


def _input(trace: Trace, number: int | None, own: list[Step]) -> Any:
    span = _own_span(trace, number, own)
    if span is not None and span.body is not None and span.body.input is not None:
        return _asked(span.body.input)
    for step in own:
        if step.kind is StepKind.USER_MESSAGE and step.body is not None:
            return _spoken(step)
        if step.kind is StepKind.MODEL_CALL and (given := _given(step)) is not None:
            return _asked(given)
    return _said_before(trace, own[0])


def _asked(given: Any) -> Any:
    """The last thing that a user said in the messages of a request, else all of it."""
    last = given
    for said in said_by_user(given, 0):
        last = said
    return opened(last)


def _said_before(trace: Trace, first: Step) -> Any:
    """What the handoff or the user before the first step of an invocation said."""
    for step in reversed(steps_in_order(trace)[: _place(trace, first)]):
        if step.body is None:
            continue
        if step.kind is StepKind.HANDOFF and step.body.input is not None:
            return opened(step.body.input)
        if step.kind is StepKind.USER_MESSAGE:
            return _spoken(step)
    return None


def _place(trace: Trace, step: Step) -> int:
    steps = steps_in_order(trace)
    # Numbers of steps are dense, so the place is the number; a trace may break that.
    if step.seq < len(steps) and steps[step.seq] is step:
        return step.seq
    return next((at for at, one in enumerate(steps) if one is step), 0)


def _spoken(step: Step) -> Any:
    body = step.body
    if body is None:
        return None
    return opened(body.output if body.output is not None else body.input)


def _output(trace: Trace, number: int | None, own: list[Step]) -> Any:
    span = _own_span(trace, number, own)
    if span is not None and (given := _given_back(span)) is not None:
        return given
    numbers = {step.seq for step in own}
    answers = [
        entry.step
        for entries in recorded_calls(trace).values()
        for entry in entries
        if entry.removed not in _NO_ACTS and entry.step.seq in numbers
    ]
    for step in sorted(answers, key=_seq, reverse=True):
        given = _given_back(step)
        if given is not None and (isinstance(given, bool) or said_in(given)):
            return given
    return None


def _given(step: Step) -> Any:
    return None if step.body is None else step.body.input


def _given_back(step: Step) -> Any:
    return None if step.body is None else step.body.output


def _output_at(steps: tuple[Step, ...], seq: int) -> Any:
    return next((_given_back(step) for step in steps if step.seq == seq), None)


def _models(steps: tuple[Step, ...]) -> tuple[str, ...]:
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
        if is_number and str(key).rpartition(".")[2] == _TEMPERATURE:
            return float(item)
    return next(_below(value, depth), None)


def _below(value: dict[str, Any], depth: int) -> Iterator[float]:
    for item in value.values():
        if isinstance(item, dict | str):
            found = _temperature_in(item, depth + 1)
            if found is not None:
                yield found


def _first(one: InvocationConduct) -> int:
    return one.steps[0].seq


def _seq(step: Step) -> int:
    return step.seq
