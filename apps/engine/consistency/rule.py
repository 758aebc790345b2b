"""The rule that turns trials of one task into one word, and the rule in plain English.

The word says how far the trials agree, never whether they are right: a task may be
stable and wrong. The rule compares what was decided, counts every trial (a crash and
a missing decision are trials) and asks the interval, not the share.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from apps.engine.check import percent
from apps.engine.consistency.shares import Share, counted, share
from apps.engine.nulls import wilson

FEWEST_DECIDED: Final = 3
"""With fewer trials that decided anything nothing is said of agreement."""

ESTABLISHED_ABOVE: Final = 0.5
"""A majority is established where the lower end of its interval lies above this."""


class Stability(StrEnum):
    """How far the trials of one task agree in what they decided."""

    STABLE = "stable"
    DRIFTING = "drifting"
    NON_DETERMINISTIC = "non_deterministic"
    INSUFFICIENT = "insufficient"


class Regime(StrEnum):
    """The temperature under which trials ran, as far as it was recorded."""

    ZERO = "zero"
    ABOVE_ZERO = "above_zero"
    NOT_RECORDED = "not_recorded"
    MIXED = "mixed"


LABELS: Final[dict[Stability, str]] = {
    Stability.STABLE: "stable",
    Stability.DRIFTING: "drifting",
    Stability.NON_DETERMINISTIC: "non-deterministic",
    Stability.INSUFFICIENT: "insufficient",
}

REGIME_LABELS: Final[dict[Regime, str]] = {
    Regime.ZERO: "temperature 0",
    Regime.ABOVE_ZERO: "temperature above 0",
    Regime.NOT_RECORDED: "temperature not recorded",
    Regime.MIXED: "more than one temperature regime",
}

UNSTABLE: Final = frozenset({Stability.DRIFTING, Stability.NON_DETERMINISTIC})

SMALLEST_STABLE: Final = next(
    n
    for n in itertools.count(FEWEST_DECIDED)
    if (whole := wilson(n, n)) is not None and whole.low > ESTABLISHED_ABOVE
)
"""The fewest trials that can be stable: all agree and a majority is established."""

RULE: Final = (
    "All trials count, also those that crashed and those that decided nothing. "
    "k is the number of trials with the most frequent decision, n the number of all "
    "trials, and a majority is established if the lower end of the 95 % Wilson "
    f"interval of k of n lies above {percent(ESTABLISHED_ABOVE)}. "
    f"Insufficient: fewer than {FEWEST_DECIDED} trials decided anything, or only one "
    "decision was seen and no majority is established. "
    "Stable: every trial took the same decision and the majority is established, "
    f"which needs {SMALLEST_STABLE} trials. "
    "Drifting: a majority is established, but some trials decided otherwise or not "
    "at all. "
    "Non-deterministic: two or more decisions and no established majority. "
    "At temperature 0 two decisions are non-deterministic however many trials "
    "agree, and two trials are enough to see it: a divergence there is a defect, not "
    "noise. Trials at temperature 0, above 0 and without a recorded temperature are "
    "scored apart, the task gets the worst of the parts, and parts that are stable "
    "each but not alike are drifting. Stable does not mean right."
)
"""The rule for a page, made of the numbers that `judged` uses."""


class Tally(msgspec.Struct, frozen=True):
    """What the rule looks at: `counts` holds how many trials took each decision."""

    n: int
    counts: tuple[int, ...]
    regime: Regime

    @property
    def decided(self) -> int:
        """How many trials decided anything."""
        return sum(self.counts)

    @property
    def most(self) -> Share:
        """The trials with the most frequent decision, of all trials."""
        return share(max(self.counts, default=0), self.n)


def is_established(most: Share) -> bool:
    """Whether the interval of `most` lies above one half altogether."""
    return most.interval is not None and most.interval.low > ESTABLISHED_ABOVE


def judged(tally: Tally) -> tuple[Stability, str]:
    """The word for one regime and the sentence that gives the numbers behind it.

    Exactly the rule of `RULE`. Adding a trial that decided nothing never leads from
    another word to stable, nor from non-deterministic or insufficient to drifting.
    """
    if tally.regime is Regime.ZERO and len(tally.counts) > 1:
        return Stability.NON_DETERMINISTIC, (
            f"{_distinct(tally)} at temperature 0, where one is expected: the most "
            f"frequent was taken in {tally.most.words}."
        )
    if tally.decided < FEWEST_DECIDED:
        return Stability.INSUFFICIENT, (
            f"{tally.decided:,} of {counted(tally.n, 'trial')} decided anything; "
            f"{FEWEST_DECIDED} are needed."
        )
    if len(tally.counts) == 1:
        return _one_decision(tally)
    return _several_decisions(tally)


def worst_of(found: Iterable[Stability]) -> Stability:
    """The word for parts that were judged apart: unstable beats unknown beats stable."""
    return min(found, key=_WORST_FIRST.index, default=Stability.INSUFFICIENT)


_WORST_FIRST: Final = (
    Stability.NON_DETERMINISTIC,
    Stability.DRIFTING,
    Stability.INSUFFICIENT,
    Stability.STABLE,
)


def _one_decision(tally: Tally) -> tuple[Stability, str]:
    most = tally.most
    if not is_established(most):
        return Stability.INSUFFICIENT, (
            f"One decision, in {most.words}: the interval reaches down to one half or "
            "below, so no majority is established."
        )
    if most.k == tally.n:
        return Stability.STABLE, f"One decision, in {most.words}."
    without = tally.n - most.k
    return Stability.DRIFTING, (
        f"One decision, in {most.words}; {counted(without, 'trial')} decided nothing."
    )


def _several_decisions(tally: Tally) -> tuple[Stability, str]:
    most = tally.most
    if is_established(most):
        return Stability.DRIFTING, (
            f"{_distinct(tally)}; a majority is established: {most.words}."
        )
    return Stability.NON_DETERMINISTIC, (
        f"{_distinct(tally)} and no established majority: the most frequent was taken "
        f"in {most.words}."
    )


def _distinct(tally: Tally) -> str:
    return f"{len(tally.counts):,} different decisions in {counted(tally.n, 'trial')}"
