"""Where a numeric feature may be cut: at numbers that read well, and at quantiles.

Cuts never look at the target, so the rules that are tried are the same for every
shuffle of it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from itertools import pairwise
from typing import Final

import msgspec

_FEW: Final = 12
_MOST_BINS: Final = 10
_PARTS: Final = 10
_TRIM: Final = 0.05
_DIGITS: Final = 17
_SLACK: Final = 0.01
"""By this part of the values a cut at a quantile may move to read better."""


class Cuts(msgspec.Struct, frozen=True):
    """Ascending cuts of a feature: `even` at round numbers, `filled` at quantiles.

    A cut belongs to the bin above it. Where few different values were recorded,
    `even` separates all of them and `filled` is empty.
    """

    even: tuple[float, ...]
    filled: tuple[float, ...]


def cuts_of(values: Sequence[float]) -> Cuts:
    """The cuts for finite or infinite `values` (no NaN), in any order."""
    ranked = sorted(values)
    distinct = sorted(set(ranked))
    if len(distinct) <= _FEW:
        pairs = pairwise(distinct)
        return Cuts(tuple([cut_between(low, high) for low, high in pairs]), ())
    return Cuts(_even(ranked), filled_cuts(ranked, _PARTS))


def filled_cuts(ranked: Sequence[float], parts: int) -> tuple[float, ...]:
    """Cuts into up to `parts` bins of about as many values; `ranked` is ascending."""
    found: set[float] = set()
    size = len(ranked)
    slack = int(size * _SLACK)
    for part in range(1, parts):
        place = bisect_left(ranked, ranked[min(size - 1, part * size // parts)])
        if place > slack:
            above = ranked[min(size - 1, place + slack)]
            found.add(cut_between(ranked[place - slack - 1], above))
    return tuple(sorted(found))


def cut_between(low: float, high: float) -> float:
    """The shortest decimal number above `low` and not above `high`."""
    if math.isinf(low) or math.isinf(high):
        return high if math.isinf(low) else _just_above(low, high)
    try:
        return _shortest(low, high)
    except InvalidOperation:
        return high


def _just_above(low: float, high: float) -> float:
    """A finite cut below infinity."""
    above = max(1.0, low * 2 if low > 0 else 1.0)
    return above if low < above < high else high


def _shortest(low: float, high: float) -> float:
    below, top = Decimal(repr(low)), Decimal(repr(high))
    first = (top - below).adjusted() + 1
    for exponent in range(first, first - _DIGITS, -1):
        step = Decimal(1).scaleb(exponent)
        cut = float((top / step).to_integral_value(ROUND_FLOOR) * step)
        if low < cut <= high:
            return cut + 0.0
    return high


def _even(ranked: Sequence[float]) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten, some 4 to 10 bins of them."""
    trimmed = int(len(ranked) * _TRIM)
    low, high = ranked[trimmed], ranked[-1 - trimmed]
    if not low < high or math.isinf(high - low):
        return ()
    step = _step((high - low) / _MOST_BINS)
    first = math.floor(Decimal(repr(low)) / step)
    last = math.ceil(Decimal(repr(high)) / step)
    cuts = [float(step * place) for place in range(first, last + 1)]
    return tuple([cut for cut in cuts if ranked[0] < cut <= ranked[-1]])


def _step(least: float) -> Decimal:
    """The smallest 1, 2 or 5 times a power of ten that is at least `least`."""
    power = Decimal(1).scaleb(Decimal(repr(least)).adjusted())
    for times in (1, 2, 5):
        if float(power * times) >= least:
            return power * times
    return power * 10
