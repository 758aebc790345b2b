"""How often values fall by chance alone when every order of them is equally likely.

Assumption of everything here: exchangeability, that is, the same values could have
come in any order with equal probability. Serial model calls share context and are not
exchangeable; `dependence` says how much that may matter.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

EXACT_UP_TO: Final = 10
"""Up to this many values Mann-Kendall is exact, beyond it a normal approximation."""

_LONGEST_RUN_TABLE: Final = 200


class MannKendall(msgspec.Struct, frozen=True):
    """The Mann-Kendall statistic and the one-sided probability of a fall.

    `s` is the number of rising pairs minus the number of falling pairs; `p` the
    probability of an `s` at most this large; `method` says how it was computed.
    """

    s: int
    p: float
    method: str


def never_rises(values: Sequence[float]) -> bool:
    """Whether no value is larger than the one before it."""
    return all(later <= earlier for earlier, later in pairwise(values))


def falling_order(values: Sequence[float]) -> Fraction:
    """The exact probability that these values come in non-increasing order.

    `prod(t_i!) / n!`, with `t_i` how often each value occurs: of the n! orders of
    labelled values, those that only swap equal ones all look the same. Ties make the
    order less remarkable; all-equal values have probability 1, and so has no value.
    Source: counting. Checked against enumeration of all orders up to n = 8.
    """
    ties = math.prod(math.factorial(t) for t in Counter(values).values())
    return Fraction(ties, math.factorial(len(values)))


def falling_order_floor(n: int) -> Fraction:
    """The smallest probability of a falling order that n values can have: 1/n!."""
    return Fraction(1, math.factorial(n))


def mann_kendall(values: Sequence[float]) -> MannKendall:
    """The trend statistic S of `values` and the probability of an S this low or lower.

    Exact up to 10 values: the falling pairs of a random order are counted by the
    Mahonian numbers, with ties by MacMahon's multinomial of inversions. Beyond, the
    normal approximation with continuity and tie correction. Sources: Mann 1945,
    Kendall 1975, MacMahon 1916. Checked against enumeration up to n = 8 and scipy.
    """
    s = _trend(values)
    ties = tuple(sorted(Counter(values).values()))
    if len(values) <= EXACT_UP_TO:
        return MannKendall(s=s, p=float(_tail_of_trend(ties, s)), method="exact")
    return MannKendall(
        s=s,
        p=_normal_tail_of_trend(ties, s),
        method="normal approximation with continuity and tie correction",
    )


def any_falling_run(n: int, run: int = 5) -> float | None:
    """How often n distinct values hold at least one strictly falling run of `run`.

    The price of searching a sequence for its best part. Exact dynamic programme over
    the relative rank of the last value and the length of the falling run that ends
    there. `None` beyond 200 values, where it is not computed. Checked against
    enumeration up to n = 8. Raises `ValueError` if `run` is below 2.
    """
    if run < 2:
        raise ValueError("A falling run has at least 2 values.")
    if n > _LONGEST_RUN_TABLE:
        return None
    return _any_run_table(run)[n]


@lru_cache(maxsize=8)
def _any_run_table(run: int) -> tuple[float, ...]:
    """The probability for every n from 0 to the longest that is computed.

    `share[length][rank]` is the probability that no run has been completed, that the
    last value is the `rank`-th smallest so far and ends a falling run of `length`.
    """
    share = [[1.0] if length == 1 else [0.0] for length in range(1, run)]
    table = [0.0, 0.0]
    for size in range(2, _LONGEST_RUN_TABLE + 1):
        lower = [_running_sum(row) for row in share]
        below = [sum(column) for column in zip(*lower, strict=True)]
        # A new value of rank r lies above the r values that rank below it.
        rises = [below[rank] / size for rank in range(size)]
        falls = [
            [(row[size - 1] - row[rank]) / size for rank in range(size)]
            for row in lower
        ]
        share = [rises, *falls[:-1]]
        table.append(1.0 - math.fsum(map(math.fsum, share)))
    return tuple(table)


def _running_sum(row: list[float]) -> list[float]:
    """Sums of the first 0, 1, ... len(row) entries."""
    total = 0.0
    sums = [0.0]
    for value in row:
        total += value
        sums.append(total)
    return sums


def _trend(values: Sequence[float]) -> int:
    seen: list[float] = []
    s = 0
    for value in values:
        s += bisect_left(seen, value) - (len(seen) - bisect_right(seen, value))
        insort(seen, value)
    return s


@lru_cache(maxsize=4096)
def _tail_of_trend(ties: tuple[int, ...], s: int) -> Fraction:
    counts = _orders_by_inversions(ties)
    pairs = len(counts) - 1
    # S is the unequal pairs minus twice the falling ones, so a low S has many falls.
    hits = sum(counts[falls] for falls in range(pairs + 1) if pairs - 2 * falls <= s)
    return Fraction(hits, sum(counts))


@lru_cache(maxsize=1024)
def _orders_by_inversions(ties: tuple[int, ...]) -> tuple[int, ...]:
    """How many distinct orders of a multiset have 0, 1, 2, ... falling pairs."""
    counts = [1]
    size = 0
    for multiplicity in ties:
        for place in range(1, multiplicity + 1):
            size += 1
            counts = _divided(_times(counts, size), place)
    return tuple(counts)


def _times(counts: list[int], length: int) -> list[int]:
    """`counts` times 1 + q + ... + q^(length-1)."""
    result = [0] * (len(counts) + length - 1)
    for power, count in enumerate(counts):
        for shift in range(length):
            result[power + shift] += count
    return result


def _divided(counts: list[int], length: int) -> list[int]:
    """`counts` divided by 1 + q + ... + q^(length-1), which divides it."""
    result = [0] * (len(counts) - length + 1)
    for power in range(len(result)):
        before = sum(result[max(0, power - length + 1) : power])
        result[power] = counts[power] - before
    return result


def _normal_tail_of_trend(ties: tuple[int, ...], s: int) -> float:
    n = sum(ties)
    spread = n * (n - 1) * (2 * n + 5)
    spread -= sum(t * (t - 1) * (2 * t + 5) for t in ties)
    if spread == 0:
        return 1.0
    z = (s + 1) / math.sqrt(spread / 18)
    return 0.5 * math.erfc(-z / math.sqrt(2))
