"""How many signals a check gave, beside how many its null model alone would give.

A check that fires no more often than chance does may still be right about single
traces; what its number of signals does not show is that anything but chance is at work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from apps.accounts.models import Project
from apps.engine.nulls import CountNull, count_null
from apps.screening.lineup import LineUp
from apps.screening.queries import CheckCounts, counts_per_check


class ChanceCount(msgspec.Struct, frozen=True):
    """The signals of one check among the sequences that have a null probability.

    `expected` with the 95 % interval `low` to `high` is what chance alone gives over
    these `tested` sequences; `p` is how often chance alone gives `signals` or more.
    """

    signals: int
    tested: int
    expected: float
    low: int
    high: int
    p: float
    method: str


def chance_count(counts: CheckCounts) -> ChanceCount | None:
    """The signals beside chance; None where no answer has a null probability."""
    null = null_of(counts)
    if null is None:
        return None
    return ChanceCount(
        signals=counts.tested_signals,
        tested=null.tests,
        expected=null.expected,
        low=null.low,
        high=null.high,
        p=null.at_least(counts.tested_signals),
        method=null.method,
    )


def null_of(counts: CheckCounts) -> CountNull | None:
    """The distribution of the number of signals under the null model, or None."""
    if not counts.chances:
        return None
    # A sum of floats of a null model may end a rounding beyond 1.
    return count_null((min(p, 1.0), n) for p, n in counts.chances.items())


def chance_counts(
    project: Project, *, lineup: LineUp, trace_ids: Iterable[int] | None = None
) -> dict[str, ChanceCount]:
    """For each check of the line-up that has a null model, by slug: one query."""
    answered = counts_per_check(project, lineup=lineup, trace_ids=trace_ids)
    found = {entry.slug: chance_count(entry) for entry in answered}
    return {slug: count for slug, count in found.items() if count is not None}


def distribution(null: CountNull, *, least: float = 1e-4) -> list[tuple[int, float]]:
    """How likely each number of signals is by chance, in order.

    From the first to the last number whose probability is at least `least`.
    """
    spread = math.ceil(6 * math.sqrt(null.variance)) + 1
    middle = round(null.expected)
    numbers = range(max(0, middle - spread), min(null.possible, middle + spread) + 1)
    tails = [null.at_least(number) for number in (*numbers, numbers.stop)]
    likely = [
        (number, max(0.0, tails[place] - tails[place + 1]))
        for place, number in enumerate(numbers)
    ]
    shown = [number for number, share in likely if share >= least]
    return [one for one in likely if shown and shown[0] <= one[0] <= shown[-1]]
