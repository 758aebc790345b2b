"""Driving one conversation through a planned trial, and what was heard on the way.

Nothing is judged here. An act that failed ends the trial: what comes after it would be
asked of a conversation in an unknown state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import msgspec

from apps.engine.memory_tests.plan import (
    Act,
    ActKind,
    Plan,
    PlannedTrial,
    TurnKind,
    acts_of,
)
from apps.engine.replay.run import Event, RunError


class TurnFailed(Exception):
    """What a driver raises for a turn, a state or a summary that did not come."""

    def __init__(self, error: RunError, events: tuple[Event, ...] = ()) -> None:
        super().__init__(error.sentence)
        self.error = error
        self.events = events


class NotOffered(ValueError):
    """A conversation lacks what a test needs of it; the message says what."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with what is known of how it came about.

    `handed` is what the model was given for it, `None` where that is not known; else
    the requests of the model calls in `events` are. All are JSON values.
    """

    answer: Any
    handed: Any = None
    events: tuple[Event, ...] = ()


class Conversation(Protocol):
    """An agent that remembers, as a driver offers it.

    `turn` gives the answer to what a user says: a text, another JSON value, or `Said`.
    `state` gives what the agent keeps as a JSON value, `None` where it gives nothing
    out; it changes nothing. `restart` forgets all of it. Each raises `TurnFailed`.
    """

    def turn(self, text: str) -> Any: ...

    def state(self) -> Any: ...

    def restart(self) -> None: ...


@runtime_checkable
class Summarises(Protocol):
    """A conversation that can be asked to go on from a summary, which it gives back."""

    def summarise(self) -> Any: ...


class Heard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one act: an answer, a state or a summary as a JSON value in `value`.

    `handed` is what the model was given for the answer to a turn that asks for a fact,
    `None` where that is not known. Of other turns it is not kept: each would hold the
    whole conversation up to there.
    """

    act: Act
    value: Any = None
    handed: Any = None
    events: tuple[Event, ...] = ()
    error: RunError | None = None


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A trial with everything that was heard in it, in order.

    It ends with the act that failed, where one did.
    """

    trial: PlannedTrial
    heard: tuple[Heard, ...]

    @property
    def error(self) -> RunError | None:
        """Why the trial broke off; `None` where it did not."""
        return self.heard[-1].error if self.heard else None

    def answer_to(self, place: int) -> Heard | None:
        """What was heard in the turn at a place; `None` where it was not reached."""
        return next(
            (
                heard
                for heard in self.heard
                if heard.act.kind is ActKind.TURN and heard.act.turn == place
            ),
            None,
        )


def run_trial(trial: PlannedTrial, conversation: Conversation) -> TrialRecord:
    """Start a conversation anew and do what is planned.

    Only `TurnFailed` is caught; a state that does not come is not known, and the trial
    goes on. Raises `NotOffered` where summaries are planned and none can be asked for.
    """
    if trial.summaries and not isinstance(conversation, Summarises):
        raise NotOffered(
            "The test asks for summaries, and this target cannot be asked for one. "
            "Choose the raw conversation, or give its adapter a “summarise”."
        )
    heard: list[Heard] = []
    for act in acts_of(trial):
        if not heard:
            failed = _restarted(conversation, act)
            if failed is not None:
                return TrialRecord(trial=trial, heard=(failed,))
        heard.append(_done(act, conversation, trial))
        if heard[-1].error is not None and act.kind is not ActKind.STATE:
            break
    return TrialRecord(trial=trial, heard=tuple(heard))


def run_memory_test(
    plan: Plan,
    conversation: Conversation,
    *,
    before_trial: Callable[[PlannedTrial], None] | None = None,
) -> Iterator[TrialRecord]:
    """Yield the record of each trial of a plan, one after the other.

    `before_trial` is called before each of them and may raise to stop.
    """
    for trial in plan.trials:
        if before_trial is not None:
            before_trial(trial)
        yield run_trial(trial, conversation)


def _restarted(conversation: Conversation, act: Act) -> Heard | None:
    try:
        conversation.restart()
    except TurnFailed as failed:
        return Heard(act=act, error=failed.error, events=failed.events)
    return None


def _done(act: Act, conversation: Conversation, trial: PlannedTrial) -> Heard:
    try:
        found = _asked(act, conversation)
    except TurnFailed as failed:
        return Heard(act=act, error=failed.error, events=failed.events)
    if not isinstance(found, Said):
        return Heard(act=act, value=found)
    asks = trial.turns[act.turn].kind is TurnKind.PROBE
    return Heard(
        act=act,
        value=found.answer,
        handed=found.handed if asks else None,
        events=found.events,
    )


def _asked(act: Act, conversation: Conversation) -> Any:
    if act.kind is ActKind.TURN:
        return conversation.turn(act.text)
    if act.kind is ActKind.STATE:
        return conversation.state()
    if not isinstance(conversation, Summarises):
        raise NotOffered("This target cannot be asked for a summary.")
    return conversation.summarise()
