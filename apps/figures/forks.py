"""The trials of a task as lanes that leave a common trunk, and the same as a table.

Plain values for an inline SVG: whole units, paths, words and class names, no colours.
A lane keeps its line up to where it ends; nothing is drawn where nothing was recorded.
The table twin says in words what the drawing shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from apps.engine.branching import Branch, Branching, Fork, ForkKind, Lane, Track
from apps.figures.fork_axis import SLOT, Axis, Fold, axis_of
from apps.figures.fork_rows import TableRow, outcome_words, rows_of

TOP: Final = 26
LEFT: Final = 18
ROW: Final = 24
LABELS: Final = 190
_BEND: Final = 10
_OFFSETS: Final = (-8, 8, -13, 13)
_WIDEST: Final = 5
MOST_ROWS: Final = 60
"""With more trials those that took the same way and ended alike share a row."""


class Line(msgspec.Struct, frozen=True):
    """A path with its classes; `title` says what it is, for a tooltip."""

    d: str
    classes: str
    title: str


class Dot(msgspec.Struct, frozen=True):
    """One step on a lane, with the trial and the `seq` at which it can be opened."""

    x: int
    y: int
    classes: str
    title: str
    trial_id: str
    step: int


class Mark(msgspec.Struct, frozen=True):
    """A numbered fork or difference: `number` counts from 1, in the order of [ and ]."""

    x: int
    y: int
    number: int
    classes: str
    title: str


class LaneLabel(msgspec.Struct, frozen=True):
    """The end of a lane: its trial, how it ended, and how many points it has.

    `trial_ids` are all trials of the row: several where trials were put together.
    """

    x: int
    y: int
    trial_id: str
    trial_ids: tuple[str, ...]
    text: str
    outcome: str
    classes: str


class ForkDrawing(msgspec.Struct, frozen=True):
    """What to draw, in units with the origin at the upper left, and the table twin.

    Draw in this order: lines, dots, folds, marks, labels. `label` names the drawing.
    """

    width: int
    height: int
    label: str
    lines: tuple[Line, ...]
    dots: tuple[Dot, ...]
    folds: tuple[Fold, ...]
    marks: tuple[Mark, ...]
    lanes: tuple[LaneLabel, ...]
    rows: tuple[TableRow, ...]


class _Sheet(msgspec.Struct):
    """What all parts of a drawing share."""

    branching: Branching
    axis: Axis
    row_of: dict[int, int]
    right: int

    def y_of(self, trials: Sequence[int]) -> int:
        """The height of what some trials share: the middle of their rows."""
        rows = sorted([self.row_of[trial] for trial in trials])
        return TOP + ROW * (rows[0] + rows[-1]) // 2


def fork_drawing(branching: Branching) -> ForkDrawing:
    """Return the drawing of `branching`; the same trials give the same drawing.

    Trials are rows in the order of the tree, so that no branch crosses another. Of more
    than 60 trials those with the same points and outcome share one row. Long stretches
    in which nobody differs are folded ("… 37 equal steps").
    """
    axis = axis_of(branching, left=LEFT)
    row_of = _rows(branching)
    sheet = _Sheet(branching, axis, row_of, axis.right + SLOT)
    return ForkDrawing(
        width=sheet.right + LABELS,
        height=TOP + ROW * len(set(row_of.values())),
        label=_label(branching),
        lines=(*_leaders(sheet), *_tracks(sheet), *_loops(sheet)),
        dots=tuple(_dots(sheet)),
        folds=axis.folds,
        marks=tuple(_marks(sheet)),
        lanes=tuple(_labels(sheet)),
        rows=rows_of(branching),
    )


def _label(branching: Branching) -> str:
    lanes, forks = len(branching.lanes), len(branching.in_order)
    if not lanes:
        return "No trial to draw."
    places = "no fork" if not forks else "1 fork" if forks == 1 else f"{forks} forks"
    trials = "1 trial" if lanes == 1 else f"{lanes} trials"
    return f"{trials} side by side, {places}. The table below says the same."


def _rows(branching: Branching) -> dict[int, int]:
    """The row of each lane, by the tree."""
    is_gathered = len(branching.lanes) > MOST_ROWS
    rows: dict[object, int] = {}
    row_of: dict[int, int] = {}
    for number in _in_tree_order(branching):
        lane = branching.lanes[number]
        key = (lane.group, lane.nodes, lane.passed) if is_gathered else number
        row_of[number] = rows.setdefault(key, len(rows))
    return row_of


def _in_tree_order(branching: Branching) -> list[int]:
    """The lanes by the tree: larger branches first, the trials of a branch together."""
    below: dict[int | None, list[int]] = {}
    for number, track in enumerate(branching.tracks):
        below.setdefault(track.parent, []).append(number)
    order: list[int] = []
    waiting = below.get(None, [])[::-1]
    while waiting:
        number = waiting.pop()
        parts = below.get(number, [])
        if parts:
            waiting += sorted(parts, key=lambda one: _size(branching.tracks[one]))
        else:
            order += branching.tracks[number].trials
    return order


def _size(track: Track) -> tuple[int, int]:
    return len(track.trials), -track.trials[0]


def _outcome_class(lanes: Sequence[Lane]) -> str:
    known = {lane.passed for lane in lanes if lane.passed is not None}
    if not known:
        return "is-unknown"
    if len(known) == 2:
        return "is-mixed"
    return "is-passed" if True in known else "is-failed"


def _held(sheet: _Sheet, trials: Sequence[int]) -> list[Lane]:
    return [sheet.branching.lanes[trial] for trial in trials]


def _tracks(sheet: _Sheet) -> Iterator[Line]:
    for track in sheet.branching.tracks:
        y = sheet.y_of(track.trials)
        start, end = sheet.axis.x_of(track.born), sheet.axis.x_of(track.until)
        if track.has_fork:
            end = max(end, start)
        d = f"M{start} {y}H{end}"
        if track.parent is not None:
            from_y = sheet.y_of(sheet.branching.tracks[track.parent].trials)
            bend = start + _BEND
            d = (
                f"M{start} {from_y}C{bend} {from_y} {start} {y} {bend} {y}"
                f"H{max(end, bend)}"
            )
        lanes = _held(sheet, track.trials)
        wide = min(_WIDEST, len(lanes))
        yield Line(
            d=d,
            classes=f"fork-lane is-wide-{wide} {_outcome_class(lanes)}",
            title=f"{_trials(len(lanes))}, {outcome_words(lanes)}",
        )


def _leaders(sheet: _Sheet) -> Iterator[Line]:
    """From the end of a lane to its label: not a lane, so it is drawn otherwise."""
    for track in sheet.branching.tracks:
        if track.has_fork:
            continue
        y, x = sheet.y_of(track.trials), sheet.axis.x_of(track.until)
        x = max(x, sheet.axis.x_of(track.born) + _BEND)
        for row in sorted({sheet.y_of([trial]) for trial in track.trials}):
            bend = x + _BEND
            yield Line(
                d=f"M{x} {y}C{bend} {y} {x} {row} {bend} {row}H{sheet.right}",
                classes="fork-leader",
                title="",
            )


def _loops(sheet: _Sheet) -> Iterator[Line]:
    """Differences and detours: loops that leave the line of their track and return."""
    for fork in sheet.branching.differences + sheet.branching.detours:
        if sheet.axis.is_folded(fork.column):
            continue
        y = sheet.y_of(_lanes_of(sheet, fork))
        kind = "difference" if fork.kind is ForkKind.DIFFERENCE else "detour"
        for number, branch in enumerate(_going(fork)):
            start, end = _reach(sheet, fork, branch)
            off = y + _OFFSETS[number % len(_OFFSETS)]
            middle = max(end - _BEND, start + _BEND)
            yield Line(
                d=f"M{start} {y}Q{start} {off} {start + _BEND} {off}H{middle}"
                f"Q{end} {off} {end} {y}",
                classes=f"fork-loop is-{kind}",
                title=f"{_trials(branch.n)}: {branch.label}",
            )


def _lanes_of(sheet: _Sheet, fork: Fork) -> list[int]:
    ids = {place.trial_id for place in fork.places}
    return [at for at, one in enumerate(sheet.branching.lanes) if one.trial_id in ids]


def _going(fork: Fork) -> list[Branch]:
    return [branch for branch in fork.branches if not branch.is_straight]


def _reach(sheet: _Sheet, fork: Fork, branch: Branch) -> tuple[int, int]:
    """From where to where a loop goes."""
    columns = [fork.column]
    point_of = {place.trial_id: place.point for place in fork.places}
    for lane in sheet.branching.lanes:
        at = point_of.get(lane.trial_id)
        if at is not None and lane.trial_id in branch.trial_ids:
            columns.append(sheet.branching.nodes[lane.nodes[at]].column)
    start = sheet.axis.x_of(fork.after)
    return start, max(sheet.axis.x_of(max(columns)) + SLOT // 2, start + 2 * _BEND)


def _dots(sheet: _Sheet) -> Iterator[Dot]:
    """The steps that are not folded, each once, on the line of those that have it."""
    offsets = _offsets(sheet)
    for number, node in enumerate(sheet.branching.nodes):
        if sheet.axis.is_folded(node.column):
            continue
        lane = sheet.branching.lanes[node.trials[0]]
        off = offsets.get(number)
        y = sheet.y_of(node.trials) if off is None else off
        yield Dot(
            x=sheet.axis.x_of(node.column),
            y=y,
            classes=f"fork-dot is-{node.kind}",
            title=f"{node.label} ({_trials(len(node.trials))})",
            trial_id=lane.trial_id,
            step=lane.steps[lane.nodes.index(number)],
        )


def _offsets(sheet: _Sheet) -> dict[int, int]:
    """The heights of nodes: of their track, or of the loop that their trials take."""
    branching = sheet.branching
    heights: dict[int, int] = {}
    for track in branching.tracks:
        y = sheet.y_of(track.trials)
        for trial in track.trials:
            for node in branching.lanes[trial].nodes:
                if track.born < branching.nodes[node].column:
                    heights[node] = y
    for fork in branching.differences + branching.detours:
        y = sheet.y_of(_lanes_of(sheet, fork))
        for number, branch in enumerate(_going(fork)):
            off = y + _OFFSETS[number % len(_OFFSETS)]
            for node in _nodes_of(sheet, fork, branch):
                heights[node] = off
    return heights


def _nodes_of(sheet: _Sheet, fork: Fork, branch: Branch) -> list[int]:
    point_of = {place.trial_id: place.point for place in fork.places}
    found = []
    for lane in sheet.branching.lanes:
        at = point_of.get(lane.trial_id)
        if at is not None and lane.trial_id in branch.trial_ids:
            found.append(lane.nodes[at])
    return found


def _marks(sheet: _Sheet) -> Iterator[Mark]:
    decisive = sheet.branching.decisive_fork
    taken: set[tuple[int, int]] = set()
    for number, fork in enumerate(sheet.branching.in_order, start=1):
        classes = f"fork-mark is-{fork.kind}"
        if fork.is_decisive:
            classes += " is-decisive"
        if fork is decisive:
            classes += " is-first-decisive"
        x, y = sheet.axis.x_of(fork.after), sheet.y_of(_lanes_of(sheet, fork))
        while (x, y) in taken:
            x += SLOT
        taken.add((x, y))
        yield Mark(
            x=x,
            y=y,
            number=number,
            classes=classes,
            title=f"Fork {number}. {fork.sentence}",
        )


def _labels(sheet: _Sheet) -> Iterator[LaneLabel]:
    held: dict[int, list[int]] = {}
    for number in range(len(sheet.branching.lanes)):
        held.setdefault(sheet.row_of[number], []).append(number)
    for numbers in held.values():
        lanes = _held(sheet, numbers)
        outcome = outcome_words(lanes[:1])
        count = len(lanes[0].nodes)
        points = "1 point" if count == 1 else f"{count} points"
        more = f" and {len(lanes) - 1} more" if len(lanes) > 1 else ""
        yield LaneLabel(
            x=sheet.right + 6,
            y=sheet.y_of(numbers),
            trial_id=lanes[0].trial_id,
            trial_ids=tuple([lane.trial_id for lane in lanes]),
            text=f"{lanes[0].trial_id}{more}: {outcome}, {points}",
            outcome=outcome,
            classes=f"fork-label {_outcome_class(lanes)}",
        )


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
