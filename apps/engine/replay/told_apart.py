"""Whether two groups of runs answer differently more than chance accounts for.

Freeman and Halton's exact test of a table of two rows (Freeman and Halton 1951), which
is Fisher's for two columns. It takes the runs as independent; runs of one case share
their input, so a small p is rather too small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

import msgspec

MOST_TABLES: Final = 20_000


class ToldApart(msgspec.Struct, frozen=True):
    """`p` of the observed table, and the smallest p that any table of its margins has.

    `merged` counts the answers that were put together as one to keep the test exact.
    """

    p: float
    smallest_p: float
    merged: int = 0


def told_apart(first: Sequence[int], second: Sequence[int]) -> ToldApart | None:
    """How often chance alone deals the answers to two groups as unevenly as observed.

    The counts of each answer in both groups, in the same order. All tables with the
    same margins that are at most as likely as the observed one are summed; two whose
    chances differ by less than 1 part in 10**7 count as equally likely. Where there are
    more than 20,000 tables, the rarest answers of both groups together are one answer,
    which does not look at how they are dealt. `None` where a group is empty or all
    answers are the same. Raises `ValueError` for counts below 0 or of two lengths.
    """
    if len(first) != len(second) or min([0, *first, *second]) < 0:
        raise ValueError("Both groups need a count from 0 on for each answer.")
    pairs = sorted(
        ((a, b) for a, b in zip(first, second, strict=True) if a + b),
        key=lambda pair: (-sum(pair), pair),
    )
    if len(pairs) < 2 or not sum(first) or not sum(second):
        return None
    merged = 0
    while len(pairs) > 2 and _tables(pairs) > MOST_TABLES:
        (a, b), (c, d) = pairs[-2:]
        pairs = [*pairs[:-2], (a + c, b + d)]
        merged = merged + 1 if merged else 2
    columns = [a + b for a, b in pairs]
    size = sum(a for a, _ in pairs)
    observed = _weight([a for a, _ in pairs], columns)
    weights = [_weight(row, columns) for row in _rows(columns, size)]
    bound = observed + observed * _AROUND
    extreme = sum(weight for weight in weights if weight <= bound)
    whole = math.comb(sum(columns), size)
    least = min(weights)
    smallest = sum(weight for weight in weights if weight <= least + least * _AROUND)
    return ToldApart(
        p=float(Fraction(extreme, whole)),
        smallest_p=float(Fraction(smallest, whole)),
        merged=merged,
    )


_AROUND: Final = Fraction(1, 10_000_000)


def _weight(row: Sequence[int], columns: Sequence[int]) -> int:
    """In how many ways a first row can be dealt out of the columns."""
    return math.prod(map(math.comb, columns, row))


def _tables(pairs: Sequence[tuple[int, int]]) -> int:
    """An upper bound of how many first rows there are."""
    return math.prod(a + b + 1 for a, b in pairs[:-1])


def _rows(columns: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Every first row of so many in all that the columns allow."""
    if len(columns) == 1:
        if size <= columns[0]:
            yield (size,)
        return
    rest = sum(columns[1:])
    for number in range(max(0, size - rest), min(columns[0], size) + 1):
        for behind in _rows(columns[1:], size - number):
            yield (number, *behind)
