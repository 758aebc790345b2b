"""What happens in one attempt, collected on the way and made into its record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import msgspec

from apps.engine.memory_tests.conversation import TurnFailed
from apps.engine.replay.case import Case, hash_of
from apps.engine.replay.run import (
    AnswerSource,
    Effect,
    EffectKind,
    Ending,
    ErrorKind,
    Event,
    Limits,
    Proof,
    Ran,
    RunError,
    ToolCalled,
)
from apps.isolation.hooks import Cancelled, Hooks, NotNow, OverBudget
from apps.isolation.run_time import CallFailed, RunTime

_T = TypeVar("_T")
_ENDINGS: Final = {
    ErrorKind.TIMED_OUT: Ending.TIMED_OUT,
    ErrorKind.CANCELLED: Ending.CANCELLED,
    ErrorKind.BUDGET: Ending.OVER_BUDGET,
    ErrorKind.STOPPED: Ending.STOPPED,
}


class Walls(msgspec.Struct, frozen=True, kw_only=True):
    """How the agent was kept apart, in words: the level, what holds, what does not."""

    level: str
    holds: tuple[str, ...]
    open: tuple[str, ...]
    versions: dict[str, str] = {}


class Happened:
    """The events and effects of an attempt. Times come from the clock of the hooks."""

    def __init__(
        self, case: Case, *, limits: Limits, hooks: Hooks, walls: Walls
    ) -> None:
        self.case = case
        self.limits = limits
        self.hooks = hooks
        self.time_left = RunTime(limits.seconds, stop=hooks.stop)
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.output: Any = None
        self.state: Any = None
        self._walls = walls
        self._failed_turn: RunError | None = None
        self._start_ns = hooks.clock_ns()
        self._input_before = _hash_of(case)
        self._state_before = "" if case.state is None else hash_of(case.state)

    def add(self, event: Event) -> int:
        """Keep an event; returns its place."""
        self.events.append(event)
        return len(self.events) - 1

    def leak(self, what: str) -> None:
        """Note that a secret came back where it does not belong."""
        self.effects.append(
            Effect(kind=EffectKind.LEAK, what=what, after=len(self.events))
        )

    @contextmanager
    def asking_leave(self) -> Iterator[None]:
        """Around a call of a hook: what it raises becomes how the run ends."""
        with self.time_left.not_counted():
            try:
                yield
            except OverBudget as refusal:
                raise _ended(ErrorKind.BUDGET, refusal) from None
            except Cancelled as refusal:
                raise _ended(ErrorKind.CANCELLED, refusal) from None

    def wait(self, seconds: float) -> None:
        """Wait as the hooks want it, or with an eye on the stop."""
        if self.hooks.wait is None:
            self.time_left.pause(seconds)
            return
        with self.asking_leave():
            self.hooks.wait(seconds)

    def run(self, act: Callable[[], Any]) -> Ran:
        """The record of an attempt in which `act` gives the output.

        `NotNow` is passed on with the record of what had happened.
        """
        try:
            self.output = act()
        except CallFailed as failure:
            return self.ran(failure.error)
        except NotNow as later:
            if self.events:
                later.ran = self.ran(
                    RunError(
                        kind=ErrorKind.RATE_LIMITED,
                        sentence="The run was put back and begins anew later.",
                        retry_after=later.seconds,
                    )
                )
            raise
        return self.ran(None)

    def run_turns(self, drive: Callable[[], _T]) -> tuple[Ran, _T | None]:
        """The record of a conversation, and what `drive` gave back.

        A turn that failed is how the run ends, whatever `drive` made of it.
        """
        results: list[_T] = []

        def act() -> Any:
            results.append(drive())
            if self._failed_turn is not None:
                raise CallFailed(self._failed_turn)
            return self.output

        ran = self.run(act)
        return ran, results[0] if results else None

    @contextmanager
    def turn(self) -> Iterator[list[Event]]:
        """Around one turn: gives its events, and raises `TurnFailed` where it fails."""
        begins, events = len(self.events), list[Event]()
        try:
            yield events
        except CallFailed as failure:
            self._failed_turn = failure.error
            raise TurnFailed(failure.error, tuple(self.events[begins:])) from None
        finally:
            events += self.events[begins:]

    def ran(self, error: RunError | None) -> Ran:
        """The record as it stands now."""
        after = _hash_of(self.case)
        effects = list(self.effects)
        if after != self._input_before:
            effects.append(
                Effect(
                    kind=EffectKind.INPUT_CHANGED,
                    what="The input was changed while the run went on.",
                    after=len(self.events),
                    was_stopped=False,
                )
            )
        ending = Ending.FINISHED
        if error is not None:
            ending = _ENDINGS.get(error.kind, Ending.FAILED)
        return Ran(
            ending=ending,
            output=self.output,
            state=self.state,
            error=error,
            events=tuple(self.events),
            effects=tuple(effects),
            proof=self._proof(after),
            start_ns=self._start_ns,
            end_ns=self.hooks.clock_ns(),
        )

    def _proof(self, input_after: str) -> Proof:
        tools = [one for one in self.events if isinstance(one, ToolCalled)]
        missed = [one for one in tools if one.answer.source is AnswerSource.MISS]
        return Proof(
            level=self._walls.level,
            wall=self._walls.holds,
            not_walled=self._walls.open,
            input_before=self._input_before,
            input_after=input_after,
            state_copy=self._state_before,
            state_after="" if self.state is None else hash_of(self.state),
            stubbed_calls=len(tools) - len(missed),
            missed_calls=len(missed),
            unconsumed=_unconsumed(self.case, tools),
            intended_writes=sum(one.answer.writes for one in tools),
            versions=self._walls.versions,
            limits=self.limits,
        )


def _ended(kind: ErrorKind, refusal: Exception) -> CallFailed:
    return CallFailed(RunError(kind=kind, sentence=str(refusal)))


def _hash_of(case: Case) -> str:
    """The hash of what the agent is given; what the stubs answer is not given."""
    given = (case.input, case.messages, case.state, case.context)
    return hash_of(msgspec.to_builtins(given))


def _unconsumed(case: Case, tools: Sequence[ToolCalled]) -> tuple[int, ...]:
    used = {one.answer.matched for one in tools}
    return tuple(n for n in range(len(case.calls)) if n not in used)
