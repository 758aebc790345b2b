"""How often shuffling a trajectory's own tool calls changes its mix of tools as much.

The statistic is the Shannon entropy (nats) of tool names in the first W calls minus
that in the last W. The null model: the same calls in any order, each equally likely.
Calls of a real agent follow from one another, so this is a reference, not a truth.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

WIDEST_EXACT: Final = 6
"""The widest window for which every split of the calls is counted."""

TOLERANCE: Final = 1e-9
"""Two entropies closer than this are the same: sums of logs round differently."""

Shape: TypeAlias = tuple[int, ...]
"""How often each tool occurs in a window, largest first: all that entropy depends on."""


class DriftNull(msgspec.Struct, frozen=True):
    """The exact distribution of the entropy difference over all orders of the calls.

    `deltas` are ascending, `ways` how many of the `total` choices of a first and a
    last window (of labelled calls) give each.
    """

    deltas: tuple[float, ...]
    ways: tuple[int, ...]
    total: int

    def at_least(self, delta: float) -> Fraction:
        """The probability of a difference of `delta` or more (collapse)."""
        pairs = zip(self.deltas, self.ways, strict=True)
        return Fraction(sum(w for d, w in pairs if d >= delta - TOLERANCE), self.total)

    def at_most(self, delta: float) -> Fraction:
        """The probability of a difference of `delta` or less (broadening)."""
        pairs = zip(self.deltas, self.ways, strict=True)
        return Fraction(sum(w for d, w in pairs if d <= delta + TOLERANCE), self.total)

    @property
    def floors(self) -> tuple[Fraction, Fraction]:
        """The smallest probability these calls allow: of a collapse, of a broadening."""
        return Fraction(self.ways[-1], self.total), Fraction(self.ways[0], self.total)


def entropy(names: Iterable[Hashable]) -> float:
    """The Shannon entropy of `names` in nats; 0 for one name and for none.

    Source: Shannon 1948. Checked against scipy.stats.entropy.
    """
    return shape_entropy(tuple(sorted(Counter(names).values(), reverse=True)))


@lru_cache(maxsize=4096)
def shape_entropy(shape: Shape) -> float:
    """The entropy in nats of a window in which the tools occur `shape` times."""
    size = sum(shape)
    if size == 0:
        return 0.0
    # Shapes with the same multiset of counts share one value, so equal is equal.
    return math.log(size) - math.fsum(c * math.log(c) for c in shape) / size


@lru_cache(maxsize=16)
def entropy_lattice(width: int) -> tuple[float, ...]:
    """Every |difference| that two windows of `width` calls can have, ascending."""
    values = sorted(shape_entropy(shape) for shape in _shapes(width, width))
    found: list[float] = []
    for delta in sorted(abs(a - b) for a in values for b in values):
        if not found or delta - found[-1] > TOLERANCE:
            found.append(delta)
    return tuple(found)


def drift_null(names: Sequence[str], width: int) -> DriftNull:
    """The exact null distribution of the entropy difference for `names`.

    Counts, tool by tool, the ways to fill the first and the last window with labelled
    calls (multivariate hypergeometric); the middle takes the rest. Cached by how often
    each tool occurs. Checked against enumeration of all orders of 8 calls. Raises
    `ValueError` if the windows would overlap or are wider than 6 calls.
    """
    if len(names) < 2 * width:
        raise ValueError("Two windows need at least twice their width in calls.")
    if not 1 <= width <= WIDEST_EXACT:
        raise ValueError(f"A window has 1 to {WIDEST_EXACT} calls.")
    return _drift_null(tuple(sorted(Counter(names).values())), width)


def _shapes(size: int, largest: int) -> list[Shape]:
    """All ways to split `size` calls over tools, each at most `largest` times."""
    if size == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(min(size, largest), 0, -1)
        for rest in _shapes(size - first, first)
    ]


class _Windows(msgspec.Struct, frozen=True):
    """Numbered shapes of up to `width` calls: what adding a tool makes of each."""

    size: tuple[int, ...]
    entropy: tuple[float, ...]
    grown: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=8)
def _windows(width: int) -> _Windows:
    shapes = [shape for size in range(width + 1) for shape in _shapes(size, size)]
    number = {shape: place for place, shape in enumerate(shapes)}
    grown = [
        tuple(
            number[tuple(sorted((*shape, more), reverse=True)) if more else shape]
            for more in range(width - sum(shape) + 1)
        )
        for shape in shapes
    ]
    return _Windows(
        size=tuple(map(sum, shapes)),
        entropy=tuple(map(shape_entropy, shapes)),
        grown=tuple(grown),
    )


@lru_cache(maxsize=2048)
def _drift_null(counts: tuple[int, ...], width: int) -> DriftNull:
    windows = _windows(width)
    ways: dict[tuple[int, int], int] = {(0, 0): 1}
    left = sum(counts)
    for count in counts:
        left -= count
        ways = _with_tool(ways, count, left, windows)
    total: dict[float, int] = {}
    for (early, late), number in ways.items():
        delta = round(windows.entropy[early] - windows.entropy[late], 12) + 0.0
        total[delta] = total.get(delta, 0) + number
    ordered = sorted(total.items())
    return DriftNull(
        deltas=tuple(delta for delta, _ in ordered),
        ways=tuple(number for _, number in ordered),
        total=sum(total.values()),
    )


def _with_tool(
    ways: dict[tuple[int, int], int], count: int, left: int, windows: _Windows
) -> dict[tuple[int, int], int]:
    """The ways after a tool that occurs `count` times; `left` calls follow it."""
    width = len(windows.grown[0]) - 1
    result: dict[tuple[int, int], int] = {}
    get = result.get
    for (early, late), number in ways.items():
        room = 2 * width - windows.size[early] - windows.size[late]
        into_early = windows.grown[early]
        into_late = windows.grown[late]
        for first in range(min(len(into_early) - 1, count) + 1):
            chosen = number * math.comb(count, first)
            rest = count - first
            fewest = max(0, room - first - left)
            for last in range(fewest, min(len(into_late) - 1, rest) + 1):
                key = (into_early[first], into_late[last])
                result[key] = get(key, 0) + chosen * math.comb(rest, last)
    return result
