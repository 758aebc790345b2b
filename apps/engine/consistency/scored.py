"""What the trials of one task agree on: the numbers of a score, and how they read.

Agreement is not correctness: five equal answers may be wrong. Two values are one if
their canonical text is equal; nothing is close to anything here, a declared
normaliser has to say so before.
"""

from __future__ import annotations

from itertools import combinations, islice
from typing import Final

import msgspec

from apps.engine.consistency.conducted import TrialState
from apps.engine.consistency.rule import (
    LABELS,
    UNSTABLE,
    Regime,
    Stability,
    is_established,
)
from apps.engine.consistency.shares import Share

MOST_CONTRADICTIONS: Final = 50
"""So many pairs of incompatible values are listed at most; all are counted."""


class Answer(msgspec.Struct, frozen=True):
    """One distinct decision, how many of all trials took it, and their ids."""

    decision: str
    shown: str
    share: Share
    trials: tuple[str, ...]


class Undecided(msgspec.Struct, frozen=True):
    """The trials without a decision for one reason: a value of its own, counted in n."""

    state: TrialState
    share: Share
    trials: tuple[str, ...]


class Contradiction(msgspec.Struct, frozen=True):
    """Two values that one extractor gave for one task and that cannot both hold."""

    first: Answer
    second: Answer


class Majority(msgspec.Struct, frozen=True):
    """The decision of more than half of all trials; `is_established` by its interval."""

    answer: Answer
    is_established: bool

    @property
    def words(self) -> str:
        """The count, the interval and what may be said of it."""
        said = "established" if self.is_established else "not established"
        return f"{self.answer.share.words}, {said}"


class Inputs(msgspec.Struct, frozen=True):
    """Whether the trials had the same input.

    `distinct` inputs were recorded, `not_recorded` trials have none. Of the inputs
    that several trials with a decision share, `divided` led to different decisions.
    """

    distinct: int
    not_recorded: int
    divided: Share


class Consistency(msgspec.Struct, frozen=True, kw_only=True):
    """How far the `n` trials of one task agree, for one agent or end to end.

    `n` counts every trial. `answers` come by size, then by text. `exact` and
    `structural` are the size of the largest group of equal whole outputs and of equal
    shapes, of n (so 1 of n says that no two are equal); a failed trial agrees with
    nothing, an output that was not recorded neither. `decision` is the most frequent
    decision of n. `outliers` are all trials outside the majority, also those that
    failed or decided nothing; without a majority there are none. `outcomes` counts the
    passed among the trials with a known outcome. `reasons` are sentences with numbers,
    the rule first. `regime` is mixed where trials of several temperature regimes were
    put together; then the verdict is the worst of the parts.
    """

    regime: Regime
    n: int
    decided: int
    missing: int
    failed: int
    not_compared: int
    no_bodies: int
    answers: tuple[Answer, ...]
    undecided: tuple[Undecided, ...]
    exact: Share
    structural: Share
    decision: Share
    majority: Majority | None
    no_majority: str
    outliers: tuple[str, ...]
    inputs: Inputs
    outcomes: Share
    verdict: Stability
    reasons: tuple[str, ...]
    wrong_reasons: tuple[str, ...]

    @property
    def label(self) -> str:
        """The word for the verdict; stable but wrong is said as that."""
        if self.is_stable_but_wrong:
            return "stable but wrong"
        return LABELS[self.verdict]

    @property
    def is_unstable(self) -> bool:
        """Whether the trials disagree: drifting or non-deterministic."""
        return self.verdict in UNSTABLE

    @property
    def is_stable_but_wrong(self) -> bool:
        """Whether all agree on what failed: no trial passed, or a contract broke."""
        return self.verdict is Stability.STABLE and bool(self.wrong_reasons)

    @property
    def contradiction_count(self) -> int:
        """How many pairs of incompatible values there are."""
        return len(self.answers) * (len(self.answers) - 1) // 2

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The pairs of incompatible values, the most frequent values first.

        At most `MOST_CONTRADICTIONS`; `contradiction_count` counts all.
        """
        pairs = combinations(self.answers, 2)
        return tuple(
            Contradiction(first=first, second=second)
            for first, second in islice(pairs, MOST_CONTRADICTIONS)
        )


def majority_of(answers: tuple[Answer, ...]) -> tuple[Majority | None, str]:
    """The majority among `answers` sorted by size, or `None` and why there is none."""
    if not answers:
        return None, "No trial decided anything, so there is no majority."
    top = answers[0]
    if 2 * top.share.k > top.share.n:
        return Majority(top, is_established(top.share)), ""
    tied = sum(answer.share.k == top.share.k for answer in answers)
    if tied > 1:
        return None, (
            f"A tie has no majority: {tied:,} decisions were taken in "
            f"{top.share.words} each."
        )
    return None, (
        f"The most frequent decision was taken in {top.share.words}, which is not more "
        "than half: there is no majority."
    )
