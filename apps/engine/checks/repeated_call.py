"""Repeated calls: one agent asks for the same thing again and again, or in turns.

Equal means the same tool with the same arguments. Why it was asked again is not read;
a status that is polled until it changes is told apart by its results, and by nothing
else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from apps.engine.bodies import ToolLane
from apps.engine.bodies.calls import Round
from apps.engine.bodies.effects import moves_on_each_call
from apps.engine.bodies.numerals import counted, none_has
from apps.engine.check import (
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Parameter,
    Screening,
)
from apps.engine.rules import LaneRule
from apps.engine.sequence_answers import evidence_of_lane

_NOT_MODELLED: Final = (
    "What the arguments do not show, such as the page that a browser is on.",
    "Whether the agent was told to ask again.",
)
_SHOWN: Final = 20
_LONGEST: Final = 300


class _Row(msgspec.Struct, frozen=True):
    """Rounds of a lane that repeat with a period of 1 (A, A) or 2 (A, B, A, B)."""

    rounds: tuple[Round, ...]
    period: int

    @property
    def names(self) -> list[str]:
        """The tools of one period."""
        return [call.name for one in self.rounds[: self.period] for call in one.calls]

    @property
    def results_differ(self) -> bool:
        """Whether the results that are recorded show a change."""
        return any(
            len({one.results for one in self.rounds[phase :: self.period]} - {None}) > 1
            for phase in range(self.period)
        )

    @property
    def is_retried(self) -> bool:
        """Whether some of its calls failed, and not all of them."""
        failed = {call.failed for one in self.rounds for call in one.calls}
        return len(failed) == 2

    @property
    def is_known(self) -> bool:
        """Whether every result is recorded."""
        return all(one.results is not None for one in self.rounds)

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of its calls."""
        return tuple([seq for one in self.rounds for seq in one.steps])

    @property
    def in_words(self) -> str:
        """What repeats, how often."""
        names, n = " and ".join(self.names), len(self.rounds)
        if self.period == 1:
            return f"{names} called {n} times in a row with the same arguments"
        return f"{names} called in turns with the same arguments, {n} calls in a row"


@dataclass(frozen=True)
class RepeatedCall(LaneRule):
    """Finds the same call in a row, and two calls in turns, on one lane.

    `in_a_row` (2 to 100) equal calls, or `cycles` (2 to 50) full repeats of A, B.
    Raises `ValueError` outside these ranges.
    """

    in_a_row: int = 3
    cycles: int = 2

    slug = "repeated-call"
    label = "Repeated call"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.FACT
    needs_bodies = True
    limits = (
        Parameter("in_a_row", "Equal calls in a row", 2, 100, unit="calls"),
        Parameter("cycles", "Repeats of two calls in turns", 2, 50, unit="repeats"),
    )
    observes = (
        "The tool calls of one agent invocation in order, by tool and arguments: runs "
        "of equal calls, and two calls that take turns. What was asked for at once, or "
        "overlaps, is one round; a user message ends a run."
    )
    null_model = (
        "None: that two calls have the same tool and the same arguments is a fact, not "
        "a statistic, and nothing is shuffled."
    )
    next_step = (
        "Read the results between the calls: could the agent have known that asking "
        "again gives the same? Look for a message that it ignored, or a result that "
        "its context had lost."
    )

    @property
    def material_when(self) -> str:
        """What makes it worth a look, with the values of the parameters."""
        return (
            f"At least {self.in_a_row} equal calls in a row, or {self.cycles} full "
            "repeats of two calls in turns. Where the recorded results differ, it is "
            "polling, paging or a retry after an error: said, never queued. Tools that "
            "are made to be called again (wait, scroll, next page) count only with "
            "recorded, equal results."
        )

    def screening(self, lane: ToolLane, hashed: str) -> Screening:
        """The answer about the tool calls of one owner."""
        if lane.unknown == len(lane.calls):
            return _not_comparable(lane).with_evidence(_evidence(lane, []), hashed)
        if len(lane.rounds) < min(self.in_a_row, 2 * self.cycles):
            return self._too_few(lane).with_evidence(_evidence(lane, []), hashed)
        rows = [row for row in _rows(lane.rounds) if self._is_long(row)]
        found = [row for row in rows if _is_stuck(row)]
        if found:
            return self._signal(lane, found).with_evidence(
                self._measured(lane, found), hashed
            )
        said = _polling(rows) if rows else self._quiet(lane)
        return said.with_evidence(_evidence(lane, rows), hashed)

    def _is_long(self, row: _Row) -> bool:
        needed = self.in_a_row if row.period == 1 else 2 * self.cycles
        return len(row.rounds) >= needed

    def _too_few(self, lane: ToolLane) -> Judgement:
        n = len(lane.rounds)
        rounds = f"{counted(n, 'round')} of tool calls"
        needed = min(self.in_a_row, 2 * self.cycles)
        return Judgement(
            Answer.NOT_APPLICABLE,
            "too_few_calls",
            f"{rounds}, needs {needed}",
            f"{rounds} one after another, needs {needed} to repeat.",
        )

    def _signal(self, lane: ToolLane, rows: list[_Row]) -> Judgement:
        longest = _longest(rows)
        results = (
            "The results were the same each time."
            if longest.is_known
            else "Not all results are recorded, so a change cannot be ruled out."
        )
        more = f" {len(rows)} such runs in this scope." if len(rows) > 1 else ""
        return Judgement(
            Answer.SIGNAL,
            "in_a_row" if longest.period == 1 else "in_turns",
            longest.in_words,
            f"{longest.in_words}. {results}{more}{lane.unknown_words} A fact "
            "about the calls; whether it was needed is for a person to say.",
            Level.REVIEW_SIGNAL,
        )

    def _measured(self, lane: ToolLane, rows: list[_Row]) -> Evidence:
        longest = _longest(rows)
        arguments = [
            c.arguments for one in longest.rounds[: longest.period] for c in one.calls
        ]
        evidence = _evidence(lane, rows)
        return msgspec.structs.replace(
            evidence,
            effect=float(len(longest.rounds)),
            effect_bound=float(
                self.in_a_row if longest.period == 1 else 2 * self.cycles
            ),
            steps=tuple(sorted({seq for row in rows for seq in row.steps})),
            facts=evidence.facts
            | {
                "tools": longest.names,
                "arguments": [(one or "")[:_LONGEST] for one in arguments],
                "results": "equal" if longest.is_known else "not all recorded",
            },
        )

    def _quiet(self, lane: ToolLane) -> Judgement:
        return Judgement(
            Answer.QUIET,
            "no_repetition",
            f"No call repeated {self.in_a_row} times in a row in {counted(len(lane.calls), 'tool call')}",
            f"No call was made {self.in_a_row} times in a row with the same arguments, "
            f"and no two took turns {self.cycles} times.{lane.unknown_words}",
        )


def _rows(rounds: tuple[Round, ...]) -> list[_Row]:
    """The longest runs of equal rounds, and of two rounds in turns."""
    keys = [one.key for one in rounds]
    found: list[_Row] = []
    for period in (1, 2):
        first = 0
        for place in range(1, len(keys) + 1):
            if place < len(keys) and _goes_on(rounds, keys, place, first, period):
                continue
            if place - first >= 2 * period and keys[first] is not None:
                found.append(_Row(rounds[first:place], period))
            first = _restart(rounds, keys, place, period)
    return found


def _goes_on(
    rounds: tuple[Round, ...], keys: list[Any], place: int, first: int, period: int
) -> bool:
    """Whether the run from `first` goes on at `place`."""
    if keys[place] is None or keys[place - 1] is None:
        return False
    if rounds[place].turn != rounds[place - 1].turn:
        return False
    if period == 1:
        return bool(keys[place] == keys[place - 1])
    if keys[place] == keys[place - 1]:
        return False
    return place - first < 2 or bool(keys[place] == keys[place - 2])


def _restart(
    rounds: tuple[Round, ...], keys: list[Any], place: int, period: int
) -> int:
    """Where the next run begins: in turns, the call before may open another pair."""
    if period == 1 or place >= len(keys):
        return place
    is_pair = (
        rounds[place].turn == rounds[place - 1].turn
        and keys[place] is not None
        and keys[place - 1] is not None
        and keys[place] != keys[place - 1]
    )
    return place - 1 if is_pair else place


def _is_stuck(row: _Row) -> bool:
    if row.results_differ:
        return False
    return row.is_known or not any(map(moves_on_each_call, row.names))


def _longest(rows: list[_Row]) -> _Row:
    return max(rows, key=lambda row: (len(row.rounds), -row.rounds[0].steps[0]))


def _polling(rows: list[_Row]) -> Judgement:
    longest = _longest(rows)
    if not longest.results_differ:
        return Judgement(
            Answer.QUIET,
            "results_unknown",
            f"{' and '.join(longest.names)} is made to be called again",
            f"{longest.in_words}, and the results are not recorded: waiting or "
            "moving on cannot be told from being stuck.",
        )
    if longest.is_retried:
        return Judgement(
            Answer.QUIET,
            "retried",
            f"{longest.in_words}, and not all of them failed",
            f"{longest.in_words}: some failed and some did not, so it was tried again "
            "after an error, and is not the same thing again.",
        )
    return Judgement(
        Answer.QUIET,
        "polling",
        f"{longest.in_words}, with differing results",
        f"{longest.in_words}, but the results differ: polling or paging, not "
        "the same thing again.",
    )


def _not_comparable(lane: ToolLane) -> Judgement:
    return Judgement(
        Answer.NOT_APPLICABLE,
        "no_arguments",
        "No arguments recorded",
        none_has(len(lane.calls), "tool call", "arguments that can be compared")
        + ": they are not recorded, or redacted.",
    )


def _evidence(lane: ToolLane, rows: list[_Row]) -> Evidence:
    runs = [
        {
            "tools": row.names,
            "rounds": len(row.rounds),
            "period": row.period,
            "first_step": row.rounds[0].steps[0],
            "results_differ": row.results_differ,
        }
        for row in rows[:_SHOWN]
    ]
    return evidence_of_lane(
        lane,
        not_modelled=_NOT_MODELLED,
        facts={"runs": runs} if runs else {},
    )
