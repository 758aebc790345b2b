"""How one trace ranks among the traces of a baseline, and what a baseline keeps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

MOST_SAMPLES: Final = 500
"""How many durations of one name, and scores of traces, a baseline keeps."""

FEWEST_SAMPLES: Final = 5
"""A name with fewer calls in the baseline is compared with nothing."""

_TOLERANCE: Final = 1e-9


def at_least(scores: Sequence[float], score: float) -> float:
    """The share of traces with `score` or more, the one that has it counted in."""
    above = len(scores) - bisect_left(scores, score - _TOLERANCE)
    return (above + 1) / (len(scores) + 1)


def at_most(scores: Sequence[float], score: float) -> float:
    """The share of traces with `score` or less, the one that has it counted in."""
    return (bisect_right(scores, score + _TOLERANCE) + 1) / (len(scores) + 1)


def thinned(ordered: Sequence[float]) -> tuple[float, ...]:
    """At most 500 of the values, in the middle of as many equal parts."""
    size = len(ordered)
    if size <= MOST_SAMPLES:
        return tuple(ordered)
    return tuple(
        [ordered[(2 * i + 1) * size // (2 * MOST_SAMPLES)] for i in range(MOST_SAMPLES)]
    )


def middle(ordered: Sequence[float]) -> float:
    """The median of values in ascending order."""
    half = len(ordered) // 2
    return (ordered[half] + ordered[~half]) / 2
