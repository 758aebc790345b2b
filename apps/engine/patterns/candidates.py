"""The rules that are tried: single conditions and pairs, chosen without the target.

Because the target has no say in which rules are tried, they are the same ones for
every shuffle of it, and their number is a plain count.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final

import msgspec

from apps.engine.patterns.bins import Cuts, cuts_of, filled_cuts
from apps.engine.patterns.columns import Column
from apps.engine.patterns.conditions import Condition, Kind
from apps.engine.patterns.units import Unit

MOST_PAIRS: Final = 10_000
"""About how many pairs of conditions are tried; more features, coarser conditions."""

_FEWEST_COARSE: Final = 3
_NOT_KNOWN: Final = 255


class Minimum(msgspec.Struct, frozen=True):
    """How much a rule must cover, and leave uncovered, to be tried at all."""

    units: int = 5
    tasks: int = 3


class Candidate(msgspec.Struct, frozen=True, eq=False):
    """A rule with the units that it covers, out of those where it is `known`.

    A unit where a feature of the rule is not recorded is neither inside nor outside.
    """

    conditions: tuple[Condition, ...]
    cover: int
    known: int

    @property
    def simplicity(self) -> tuple[int, int, int, str]:
        """Conditions, digits, bounds, words: the smaller, the simpler to read."""
        parts = [one.wordiness for one in self.conditions]
        words = " and ".join([part[2] for part in parts])
        digits = sum([part[0] for part in parts])
        return len(parts), digits, sum([part[1] for part in parts]), words


class Support:
    """Whether sets of units are large enough and come from enough tasks."""

    def __init__(self, units: Sequence[Unit], minimum: Minimum) -> None:
        """For units sorted by task."""
        self.minimum = minimum
        size = self.size = len(units)
        self._ends: list[int] = [0] * size
        end = size
        for place in range(size - 1, -1, -1):
            if place + 1 < size and units[place].task != units[place + 1].task:
                end = place + 1
            self._ends[place] = end

    def is_enough(self, covered: int) -> bool:
        """Whether `covered` has the least number of units and of tasks."""
        if covered.bit_count() < self.minimum.units:
            return False
        return self.tasks(covered, most=self.minimum.tasks) == self.minimum.tasks

    def tasks(self, covered: int, *, most: int | None = None) -> int:
        """How many distinct tasks `covered` comes from, counted up to `most`."""
        size, found = self.size, 0
        while covered and (most is None or found < most):
            found += 1
            end = self._ends[size - covered.bit_length()]
            covered &= (1 << (size - end)) - 1
        return found


def candidates_of(columns: Sequence[Column], support: Support) -> list[Candidate]:
    """The rules with enough support inside and outside, each set of units once.

    Of two rules over the same units the simpler one stays. Singles come first.
    """
    kept = [_Choice(column, support) for column in columns]
    useful = [choice for choice in kept if choice.singles]
    singles = _once([one for choice in useful for one in choice.singles])
    each = max(_FEWEST_COARSE, int(math.sqrt(2 * MOST_PAIRS)) // max(1, len(useful)))
    coarse = [choice.coarse(each) for choice in useful]
    pairs = _supported(_pairs(coarse), support)
    return _once([*singles, *pairs])


class _Choice:
    """The conditions on one feature: all of them, and a few that pairs are made of."""

    def __init__(self, column: Column, support: Support) -> None:
        self._column = column
        self._support = support
        self._ranked = sorted([n for n in column.numbers if n is not None])
        self._is_whole = all(math.isfinite(n) and n.is_integer() for n in self._ranked)
        cuts = cuts_of(self._ranked) if self._ranked else Cuts((), ())
        self._even = self._settled(cuts.even)
        ranges = [*self._ranges(self._even), *self._ranges(self._settled(cuts.filled))]
        known = Condition(feature=column.feature, kind=Kind.KNOWN)
        everywhere = (1 << support.size) - 1
        found = [
            *[Candidate((one,), cover, column.known) for one, cover in column.covers],
            *ranges,
            Candidate((known,), column.known, everywhere),
        ]
        self.singles = list(_supported(found, support))

    def coarse(self, most: int) -> list[Candidate]:
        """Up to about `most` conditions that together cut the feature once."""
        labels = [
            Candidate((one,), cover, self._column.known)
            for one, cover in self._column.covers[:most]
        ]
        cuts = self._even
        if len(cuts) >= most:
            cuts = self._settled(filled_cuts(self._ranked, most))
        found = [*labels, *self._ranges(cuts, is_adjacent=True)]
        return list(_supported(found, self._support))

    def _settled(self, cuts: Iterable[float]) -> tuple[float, ...]:
        """Cuts between whole numbers as whole numbers."""
        if not self._is_whole:
            return tuple(cuts)
        return tuple(sorted({float(math.ceil(cut)) for cut in cuts}))

    def _ranges(
        self, cuts: tuple[float, ...], *, is_adjacent: bool = False
    ) -> Iterator[Candidate]:
        """The ranges between any two cuts, or between neighbours; ends are open."""
        if not cuts:
            return
        bounds = [None, *cuts, None]
        above = [*self._at_least(cuts), 0]
        for low, high in combinations(range(len(bounds)), 2):
            is_all = low == 0 and high == len(bounds) - 1
            if is_all or (is_adjacent and high > low + 1):
                continue
            condition = self._range(bounds[low], bounds[high])
            cover = above[low] & ~above[high]
            yield Candidate((condition,), cover, self._column.known)

    def _range(self, low: float | None, high: float | None) -> Condition:
        least = self._ranked[0]
        if self._is_whole and low is None and high == least + 1:
            low = least  # "is 0" reads better than "is at most 0"
        return Condition(
            feature=self._column.feature,
            kind=Kind.RANGE,
            low=low,
            high=high,
            is_whole=self._is_whole,
        )

    def _at_least(self, cuts: tuple[float, ...]) -> list[int]:
        """The units with any number, then those at or above each cut."""
        bins = bytes(
            [
                _NOT_KNOWN if number is None else bisect_right(cuts, number)
                for number in self._column.numbers
            ]
        )
        found = []
        for least in range(len(cuts) + 1):
            table = bytes(
                [
                    ord("1") if least <= code < _NOT_KNOWN else ord("0")
                    for code in range(256)
                ]
            )
            found.append(int(bins.translate(table), 2))
        return found


def _supported(found: Iterable[Candidate], support: Support) -> Iterator[Candidate]:
    for one in found:
        outside = one.known & ~one.cover
        if outside.bit_count() >= support.minimum.units and (
            support.is_enough(one.cover) and support.is_enough(outside)
        ):
            yield one


def _pairs(coarse: list[list[Candidate]]) -> Iterator[Candidate]:
    for one, other in combinations(coarse, 2):
        for first in one:
            for second in other:
                yield Candidate(
                    (*first.conditions, *second.conditions),
                    first.cover & second.cover,
                    first.known & second.known,
                )


def _once(found: list[Candidate]) -> list[Candidate]:
    """One candidate for each set of units, the simplest of those that give it."""
    kept: dict[tuple[int, int], Candidate] = {}
    for one in found:
        key = (one.cover, one.known)
        before = kept.get(key)
        if before is None or one.simplicity < before.simplicity:
            kept[key] = one
    return list(kept.values())
