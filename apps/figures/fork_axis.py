"""Where the columns of a fork drawing stand, with long equal stretches folded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from apps.engine.branching import Branching, Fork, Track

SLOT: Final = 16
FOLD: Final = 110
FEWEST: Final = 5
"""Columns in a row without anything to see that are folded into one."""
MOST_COLUMNS: Final = 60
"""With more columns detours are folded too: they make nothing after them different."""


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
    and the last, which show where the fold begins and ends. With more than 60 columns
    detours are plain, and the fold says how many it holds.
    """
    is_long = branching.columns > MOST_COLUMNS
    plain = _plain_of_long(branching) if is_long else _plain(branching)
    detours = [fork.column for fork in branching.detours]
    xs: list[int] = []
    folds: list[Fold] = []
    folded: set[int] = set()
    x = left
    for first, last in _stretches(plain, branching.columns):
        count = last - first + 1
        if count >= FEWEST:
            held = sum(first <= column <= last for column in detours)
            folds.append(Fold(x, x + FOLD, count, _words(count, held)))
            folded.update(range(first, last + 1))
            xs += [x + FOLD // 2] * count
            x += FOLD
        else:
            xs += [x + SLOT * (at + 1) for at in range(count)]
            x += SLOT * count
    return Axis(left, tuple(xs), frozenset(folded), tuple(folds), x)


def _words(count: int, detours: int) -> str:
    if not detours:
        return f"… {count} equal steps"
    return f"… {count} steps, {detours} detour{'s' if detours > 1 else ''}"


def _plain_of_long(branching: Branching) -> set[int]:
    """The columns in which no trials part or differ; detours do not count."""
    busy = {track.until for track in branching.tracks}
    for fork in branching.forks:
        busy |= {fork.after, fork.column}
    for fork in branching.differences:
        busy |= set(range(fork.after, _back_together(branching, fork) + 1))
    return set(range(branching.columns)) - busy


def _back_together(branching: Branching, fork: Fork) -> int:
    """The column in which all trials of a difference are together again."""
    ids = {place.trial_id for place in fork.places}
    lanes = {at for at, one in enumerate(branching.lanes) if one.trial_id in ids}
    return min(
        [
            node.column
            for node in branching.nodes
            if node.column > fork.after and lanes <= set(node.trials)
        ],
        default=fork.column,
    )


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
