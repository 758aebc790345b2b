"""Which traces are behind: not screened by the line-up, or not scored by the definitions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias

import msgspec
from django.db.models import QuerySet

from apps.traces.models import Trace

Work: TypeAlias = Literal["screened_as", "scored_as"]
"""What was done with a trace, as the column that names by which rules it was."""


class Behind(msgspec.Struct, frozen=True):
    """A trace with which the work was done by other rules, or never."""

    trace_id: int
    upload_id: int
    step_count: int


def _sides(project_id: int, name: str, work: Work) -> list[QuerySet[Trace]]:
    # Replays are scored and never screened: chance is counted over what was recorded.
    kept = Trace.objects if work == "screened_as" else Trace.everything
    # Two ranges of the index; "not equal" would read all of it.
    rows = kept.filter(project_id=project_id)
    return [rows.filter(**{f"{work}__{side}": name}) for side in ("lt", "gt")]


def behind(
    project_id: int,
    name: str,
    *,
    most: int,
    without: Collection[int] = (),
    work: Work = "screened_as",
) -> list[Behind]:
    """Up to `most` traces with which the work was not done by the rules called `name`.

    Those of the uploads `without` are left out.
    """
    found: list[Behind] = []
    for rows in _sides(project_id, name, work):
        left = rows.exclude(upload_id__in=without) if without else rows
        some = left.order_by(work, "pk")[: most - len(found)]
        found += [
            Behind(*row) for row in some.values_list("pk", "upload_id", "step_count")
        ]
        if len(found) >= most:
            break
    return found


def behind_count(project_id: int, name: str, *, work: Work = "screened_as") -> int:
    """With how many traces the work was not done by the rules called `name`."""
    less, more = (
        rows.order_by().values("pk") for rows in _sides(project_id, name, work)
    )
    return less.union(more, all=True).count()


def score_again(*, trace_ids: Collection[int]) -> None:
    """Have traces scored again: what their score rests on is not what it was."""
    Trace.everything.filter(pk__in=trace_ids).exclude(scored_as="").update(scored_as="")


def first_steps(waiting: Sequence[Behind], *, most: int) -> list[Behind]:
    """The first of these traces that have `most` steps together; a larger one alone."""
    taken: list[Behind] = []
    steps = 0
    for one in waiting:
        steps += one.step_count
        if taken and steps > most:
            break
        taken.append(one)
    return taken


def mark_behind(*, trace_id: int) -> None:
    """Have the line-up look at a trace again: its signals may not be what it gives."""
    Trace.objects.filter(pk=trace_id).update(screened_as="")
