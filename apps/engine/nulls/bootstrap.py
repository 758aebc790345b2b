"""Intervals of a difference by drawing traces again from the recorded ones.

The percentile bootstrap (Efron 1979): the recorded values stand for what could have
been recorded. Assumes independent traces; with fewer than about 20 on a side the
interval is too narrow, and a rare large value that was not recorded is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, TypeAlias

import msgspec

from apps.engine.nulls.intervals import Interval

MOST_DRAWS: Final = 1_000
_FEWEST_DRAWS: Final = 200
_VALUES_DRAWN: Final = 500_000

Redraw: TypeAlias = Callable[[Random], float]
"""Gives the figure of one set of traces drawn again."""


class Ratio(msgspec.Struct, frozen=True):
    """`part` of `whole`, of one trace."""

    part: int
    whole: int


def redrawn_mean(values: Sequence[float]) -> Redraw:
    """The mean of as many values, drawn with replacement."""
    size = len(values)
    return lambda source: sum(source.choices(values, k=size)) / size


def redrawn_ratio(values: Sequence[Ratio]) -> Redraw:
    """The parts of all traces by the wholes of all traces, whole traces drawn."""
    slot = 64
    packed = [(value.part << slot) + value.whole for value in values]

    def redraw(source: Random) -> float:
        part, whole = divmod(sum(source.choices(packed, k=len(packed))), 1 << slot)
        return part / whole

    return redraw


def redrawn_median(values: Sequence[float]) -> Redraw:
    """The median of as many values, drawn with replacement.

    Drawn directly: a value drawn again is that at the place u * n in order of size,
    for a uniform u, and the middle one of n uniform numbers has a beta distribution.
    Of an even number the upper middle one is the smallest of those above the lower.
    """
    ordered = sorted(values)
    size = len(ordered)
    rank = (size + 1) // 2

    def redraw(source: Random) -> float:
        lower = source.betavariate(rank, size - rank + 1)
        if size % 2:
            return ordered[_place(lower, size)]
        upper = lower + (1 - lower) * source.betavariate(1, size - rank)
        return (ordered[_place(lower, size)] + ordered[_place(upper, size)]) / 2

    return redraw


def _place(share: float, size: int) -> int:
    return min(size - 1, int(share * size))


def draws_for(values: int) -> int:
    """How many draws `values` values leave time for, 200 to 1,000."""
    return max(_FEWEST_DRAWS, min(MOST_DRAWS, _VALUES_DRAWN // max(1, values)))


def bootstrap_difference(
    first: Redraw, second: Redraw, *, draws: int, seed: int
) -> Interval:
    """The 95 % interval of the second figure minus the first.

    Seeded: the same arguments give the same answer. Checked against
    scipy.stats.bootstrap.
    """
    source = Random(seed)  # noqa: S311 - a simulation, not a secret
    found = sorted(second(source) - first(source) for _ in range(draws))
    cut = round(draws * 0.025)
    return Interval(
        low=found[cut],
        high=found[draws - 1 - cut],
        method=f"percentile bootstrap over traces, {draws:,} draws",
    )
