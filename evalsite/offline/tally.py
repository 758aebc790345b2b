"""How often each check gave each answer, beside how often chance alone would fire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from apps.engine.check import Answer, Basis, Check
from apps.engine.nulls.counts import CountNull, count_null
from evalsite.offline.answers import Answered


@dataclass
class CheckTally:
    """The counts of one check.

    `signals` are all, `queued` those of level review_signal among them. `chances` says
    how often each `chance_of_signal` occurs among the applicable answers of a check
    with a null model.
    """

    check: Check
    signals: int = 0
    queued: int = 0
    quiet: int = 0
    not_applicable: int = 0
    chances: Counter[float] = field(default_factory=Counter)

    @property
    def applicable(self) -> int:
        """How many answers are signal or quiet."""
        return self.signals + self.quiet

    @property
    def by_chance(self) -> CountNull | None:
        """How many signals chance alone gives.

        `None` without a null model and where nothing was applicable: chance gives no 0
        of what was not checked.
        """
        if self.check.basis is not Basis.STATISTIC or not self.applicable:
            return None
        return count_null(self.chances.items())

    def add(self, found: Answered) -> None:
        """Count one answer."""
        screening = found.screening
        if screening.answer is Answer.NOT_APPLICABLE:
            self.not_applicable += 1
            return
        if screening.answer is Answer.SIGNAL:
            self.signals += 1
            self.queued += found.wants_review
        else:
            self.quiet += 1
        chance = screening.evidence.chance_of_signal
        if chance is not None:
            self.chances[chance] += 1


class Tally:
    """The counts of all checks of one call, and what was not read."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self.of_checks = {check.slug: CheckTally(check) for check in checks}
        self.traces = 0
        self.incomplete = 0

    def add(self, found: Answered) -> None:
        """Count one answer."""
        self.of_checks[found.check.slug].add(found)

    @property
    def signals(self) -> int:
        """All signals, whatever their level."""
        return sum(one.signals for one in self.of_checks.values())

    @property
    def queued(self) -> int:
        """The signals of level review_signal."""
        return sum(one.queued for one in self.of_checks.values())
