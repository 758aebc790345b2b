"""How many mixed tasks have a decisive fork, and how many chance alone would give."""

from __future__ import annotations

from collections import Counter

import msgspec

from apps.engine.nulls.counts import count_null
from apps.scoring.models import TaskScore


class DecisiveForks(msgspec.Struct, frozen=True):
    """`found` of the `mixed` tasks have a decisive fork.

    `expected`, with the 95 % interval from `low` to `high`, is how many would have one
    if the outcomes of each task were dealt to its trials at random.
    """

    mixed: int
    found: int
    expected: float
    low: int
    high: int

    @property
    def is_more_than_chance(self) -> bool:
        """Whether more were found than chance alone gives in 39 of 40 cases."""
        return self.found > self.high


def decisive_forks(project_id: int) -> DecisiveForks | None:
    """Decisive forks beside chance: one query; `None` where no task is mixed.

    Also `None` where the chance of some is not known, as they were scored before it was
    asked: a part of the sum would say too little.

    The number that chance gives is Poisson-binomial over the tasks, which are taken to
    be independent (`engine/nulls/counts.py`).
    """
    rows = list(
        TaskScore.objects.filter(project_id=project_id, outcome="mixed").values_list(
            "decisive", "decisive_chance"
        )
    )
    if not rows or any(said and chance is None for said, chance in rows):
        return None
    null = count_null(Counter(chance or 0.0 for _, chance in rows).items())
    return DecisiveForks(
        mixed=len(rows),
        found=sum(bool(decisive) for decisive, _ in rows),
        expected=null.expected,
        low=null.low,
        high=null.high,
    )
