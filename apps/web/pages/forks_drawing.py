"""The drawing of a fork view: lanes with the words of their trials, and the table twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from apps.engine.branching import Branching
from apps.figures.fork_rows import TableRow
from apps.figures.forks import LABELS, Dot, LaneLabel, Line, Mark, fork_drawing
from apps.web.pages.forks_trials import ComparedTrial

_FOLD_Y: Final = 12


class LaneText(msgspec.Struct, frozen=True):
    """The words beside a lane: its trial, how it ended, what it decided.

    `more` trials share the row: they took the same way and ended alike.
    """

    trial: ComparedTrial
    more: int
    outcome: str
    decision: str
    classes: str


class FoldText(msgspec.Struct, frozen=True):
    """The words for a folded stretch, above the lanes."""

    x: int
    y: int
    text: str


class ForkPicture(msgspec.Struct, frozen=True):
    """The drawing, in units of its own, and the words beside its rows, from the top."""

    width: int
    height: int
    label: str
    lines: tuple[Line, ...]
    dots: tuple[Dot, ...]
    folds: list[FoldText]
    marks: tuple[Mark, ...]
    lanes: list[LaneText]
    rows: tuple[TableRow, ...]


def picture_of(
    branching: Branching, trials: Mapping[str, ComparedTrial]
) -> ForkPicture | None:
    """The drawing of the trials; `None` where there is no lane to draw."""
    if not branching.lanes:
        return None
    drawing = fork_drawing(branching)
    return ForkPicture(
        width=drawing.width - LABELS,
        height=drawing.height,
        label=drawing.label,
        lines=drawing.lines,
        dots=drawing.dots,
        folds=[
            FoldText((fold.x + fold.end) // 2, _FOLD_Y, fold.text)
            for fold in drawing.folds
        ],
        marks=drawing.marks,
        lanes=[
            _lane(lane, trials[lane.trial_id])
            for lane in sorted(drawing.lanes, key=lambda one: one.y)
        ],
        rows=drawing.rows,
    )


def _lane(lane: LaneLabel, trial: ComparedTrial) -> LaneText:
    return LaneText(
        trial=trial,
        more=len(lane.trial_ids) - 1,
        outcome=lane.outcome,
        decision=" ".join(trial.decision.split()),
        classes=lane.classes,
    )
