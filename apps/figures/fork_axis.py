"""Where the columns of a fork drawing stand, with long equal stretches folded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from apps.engine.branching import Branching, Track

SLOT: Final = 16
FOLD: Final = 110
FEWEST: Final = 5
"""Columns in a row without anything to see that are folded into one."""


class Fold(msgspec.Struct, frozen=True):
    """A stretch that is folded: from `x` to `end`, `columns` of them, and the words."""

    x: int
    end: int
    columns: int
    text: str


class Axis(msgspec.Struct, frozen=True):
    """The x of each column; those of one fold stand in its middle."""

    left: int
    xs: tuple[int, ...]
    folded: frozenset[int]
    folds: tuple[Fold, ...]
    right: int

    def x_of(self, column: int) -> int:
        """The x of a column; of -1, the start."""
        return self.left if column < 0 or not self.xs else self.xs[column]

    def is_folded(self, column: int) -> bool:
        """Whether a column is not drawn on its own."""
        return column in self.folded


def axis_of(branching: Branching, *, left: int) -> Axis:
    """The columns of `branching` from `left` on, a slot each.

    A column is plain if none of its nodes belongs to a difference or a detour and no
    fork lies beside it. Five plain ones or more in a row are folded, save the first
    and the last, which show where the fold begins and ends.
    """
    plain = _plain(branching)
    xs: list[int] = []
    folds: list[Fold] = []
    folded: set[int] = set()
    x = left
    for first, last in _stretches(plain, branching.columns):
        count = last - first + 1
        if count >= FEWEST:
            folds.append(Fold(x, x + FOLD, count, f"… {count} equal steps"))
            folded.update(range(first, last + 1))
            xs += [x + FOLD // 2] * count
            x += FOLD
        else:
            xs += [x + SLOT * (at + 1) for at in range(count)]
            x += SLOT * count
    return Axis(left, tuple(xs), frozenset(folded), tuple(folds), x)


def _plain(branching: Branching) -> set[int]:
    busy: set[int] = set()
    for fork in branching.forks:
        busy |= {fork.after, fork.column}
    for fork in branching.differences + branching.detours:
        busy.add(fork.after)
    for track in branching.tracks:
        busy.add(track.until)
    whole = {(track.trials, at) for track in branching.tracks for at in _within(track)}
    for node in branching.nodes:
        if (node.trials, node.column) not in whole:
            busy.add(node.column)
    return set(range(branching.columns)) - busy


def _within(track: Track) -> range:
    return range(track.born + 1, track.until + 1)


def _stretches(plain: set[int], columns: int) -> Iterator[tuple[int, int]]:
    """Yield runs of plain columns without their ends, and all other columns."""
    at = 0
    while at < columns:
        stop = at
        while stop in plain:
            stop += 1
        if stop - at > FEWEST + 1:
            yield at, at
            yield at + 1, stop - 2
            yield stop - 1, stop - 1
            at = stop
        else:
            yield at, at
            at += 1
