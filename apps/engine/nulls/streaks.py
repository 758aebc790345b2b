"""How often failures come in a row when every order of them is equally likely.

Assumption: exchangeability, that is, the same failures could have come in any order.
Failures with one cause (a service that was down for a while) cluster, which is what
such a chance points at.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

STREAK_EXACT_UP_TO: Final = 1_000
"""Up to this many values `streak_chance` is exact, beyond it rounded (see there)."""

_FRACTION_BITS: Final = 1_088
_CERTAIN_FROM: Final = 300


@lru_cache(maxsize=4096)
def streak_chance(n: int, failures: int, length: int) -> Fraction:
    """The chance that a random order of `failures` among n has `length` in a row.

    Counts the ways to lay the failures into the gaps between the successes with no
    gap of `length` or more, by inclusion and exclusion (Feller 1968, chapter II).
    Exact up to 1,000 values. Beyond, the same alternating sum to 327 decimal places,
    as a fraction whose denominator has more than 300 digits, and 1 where more than
    300 such runs are expected: gaps are negatively associated, so none comes with a
    probability below e**-300 (Joag-Dev and Proschan 1983). Checked against
    enumeration. Raises `ValueError` for a length below 1 or failures outside 0..n.
    """
    if length < 1:
        raise ValueError("A streak has at least 1 failure.")
    if not 0 <= failures <= n:
        raise ValueError("The failures must be at least 0 and at most all of them.")
    if failures < length:
        return Fraction(0)
    if n <= STREAK_EXACT_UP_TO:
        return _counted(n, failures, length)
    return _summed(n, failures, length)


def _counted(n: int, failures: int, length: int) -> Fraction:
    successes = n - failures
    without = sum(
        (-1) ** long
        * math.comb(successes + 1, long)
        * math.comb(n - long * length, successes)
        for long in range(failures // length + 1)
    )
    return 1 - Fraction(without, math.comb(n, failures))


def _summed(n: int, failures: int, length: int) -> Fraction:
    """The same sum of terms, each made from the one before in whole units of 2**-b."""
    term = 1 << _FRACTION_BITS
    total = 0
    left, places = failures, n
    for long in range(1, failures // length + 1):
        # perm(x, l) = x (x-1) ... (x-l+1): one more long gap takes `length` failures.
        term = term * (n - failures + 2 - long) * math.perm(left, length)
        term //= long * math.perm(places, length)
        if long == 1 and term >> _FRACTION_BITS > _CERTAIN_FROM:
            return Fraction(1)
        if term == 0:
            break
        total += term if long % 2 else -term
        left, places = left - length, places - length
    # An odd numerator keeps the denominator, which says that this is no exact count.
    unit = 1 << _FRACTION_BITS
    return Fraction(min(max(total, 1), unit - 1) | 1, unit)
