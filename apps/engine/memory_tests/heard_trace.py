"""What was heard in a trial as events of a run, and one turn of it as a small trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.bodies.texts import said_in
from apps.engine.memory_tests.conversation import Heard, TrialRecord
from apps.engine.memory_tests.plan import ActKind
from apps.engine.replay.run import (
    Ending,
    ErrorKind,
    Event,
    Message,
    ModelCalled,
    Proof,
    Ran,
    StateSeen,
    ToolCalled,
)
from apps.engine.trace import (
    Body,
    ModelCall,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
)

SUMMARY_ROLE: Final = "summary"
"""The role of a message that is the summary a conversation goes on from."""

_ENDINGS: Final = {
    ErrorKind.TIMED_OUT: Ending.TIMED_OUT,
    ErrorKind.CANCELLED: Ending.CANCELLED,
    ErrorKind.BUDGET: Ending.OVER_BUDGET,
    ErrorKind.STOPPED: Ending.STOPPED,
}


def events_of(record: TrialRecord) -> tuple[Event, ...]:
    """The trial as the events of a run, in order.

    A turn is the message of the user, what the driver gave of it (model and tool
    calls), and the answer as a message unless a model call said it; a state is what was
    seen after its turn (counted from 0, as in the plan); a summary is a message of the
    role “summary”.
    """
    return tuple([event for heard in record.heard for event in _events(heard)])


def ran_of(record: TrialRecord, proof: Proof) -> Ran:
    """The trial as one attempt at a run: its last answer is the output."""
    answers = [heard.value for heard in record.heard if heard.act.kind is ActKind.TURN]
    states = [heard.value for heard in record.heard if heard.act.kind is ActKind.STATE]
    error = record.error
    ending = (
        Ending.FINISHED if error is None else _ENDINGS.get(error.kind, Ending.FAILED)
    )
    return Ran(
        ending=ending,
        output=answers[-1] if answers and error is None else None,
        state=states[-1] if states else None,
        error=error,
        events=events_of(record),
        proof=proof,
    )


def trace_of_turn(heard: Heard) -> Trace:
    """One turn as a trace: what was said, what was called, what was answered."""
    steps = [
        Step(seq=0, kind=StepKind.USER_MESSAGE, body=Body(output=heard.act.text)),
        *[
            _step(number, event)
            for number, event in enumerate(_called(heard.events), start=1)
        ],
    ]
    steps.append(
        Step(
            seq=len(steps),
            kind=StepKind.MODEL_CALL,
            status=StepStatus.OK,
            call=ModelCall(),
            body=Body(output=heard.value),
        )
    )
    return Trace(name="turn", steps=tuple(steps))


def handed_in(heard: Heard) -> Any:
    """What the model was given for an answer, `None` where that is not known."""
    if heard.handed is not None:
        return heard.handed
    requests = [
        event.request
        for event in heard.events
        if isinstance(event, ModelCalled) and event.request is not None
    ]
    return requests or None


def _events(heard: Heard) -> Iterator[Event]:
    kind = heard.act.kind
    if kind is ActKind.TURN:
        yield Message(role="user", content=heard.act.text)
        yield from heard.events
        if heard.error is None and not _is_said(heard):
            yield Message(role="assistant", content=heard.value)
    elif kind is ActKind.SUMMARISE:
        yield from heard.events
        if heard.error is None:
            yield Message(role=SUMMARY_ROLE, content=heard.value)
    elif heard.value is not None:
        yield StateSeen(state=heard.value, turn=heard.act.turn)


def _is_said(heard: Heard) -> bool:
    """Whether the last model call of a turn said its answer."""
    calls = [event for event in heard.events if isinstance(event, ModelCalled)]
    if not calls:
        return False
    last = calls[-1].response if calls[-1].output is None else calls[-1].output
    return said_in(last) == said_in(heard.value)


def _called(events: tuple[Event, ...]) -> list[ToolCalled]:
    return [event for event in events if isinstance(event, ToolCalled)]


def _step(number: int, event: ToolCalled) -> Step:
    answer = event.answer
    return Step(
        seq=number,
        kind=StepKind.TOOL_CALL,
        name=event.tool,
        status=StepStatus.ERROR if answer.error else StepStatus.OK,
        call=ToolCall(name=event.tool, call_id=event.call_id),
        body=Body(input=event.arguments, output=answer.error or answer.result),
    )
