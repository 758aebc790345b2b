"""Which traces are behind: not screened by the line-up, or not scored by the definitions.

The order of locks is that of everybody who writes traces: the upload, its traces, then
their signals. So whoever catches up never waits in a circle with a reader.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias

import msgspec
from django.db import connection
from django.db.models import QuerySet

from apps.traces.models import Trace, Upload

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


def lock_traces(wanted: Sequence[Behind]) -> list[Trace]:
    """Lock uploads and traces for the caller's transaction; skips what others hold.

    Returns the locked traces by id, with their tasks.
    """
    uploads = (
        Upload.everything.select_for_update(skip_locked=True, no_key=True)
        .filter(pk__in={one.upload_id for one in wanted})
        .order_by("pk")
    )
    held = set(uploads.values_list("pk", flat=True))
    ids = [one.trace_id for one in wanted if one.upload_id in held]
    if not ids:
        return []
    return list(
        Trace.everything.select_for_update(of=("self",), skip_locked=True, no_key=True)
        .filter(pk__in=ids)
        # Not joined: a trace that was moved a moment ago would come without its task.
        .prefetch_related("task")
        .order_by("pk")
    )


def keep_trace(trace_id: int) -> None:
    """Keep a trace from being replaced or removed, for the caller's transaction.

    To be called before a row of it is locked: the foreign key of that row may be checked
    when the transaction ends, and whoever replaces the trace waits for the row.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM traces_trace WHERE id = %s FOR KEY SHARE", [trace_id]
        )


def lock_free_traces(trace_ids: Collection[int]) -> set[int]:
    """Lock the traces among these that nobody holds, for the caller's transaction."""
    rows = Trace.everything.select_for_update(skip_locked=True, no_key=True).filter(
        pk__in=trace_ids
    )
    return set(rows.order_by("pk").values_list("pk", flat=True))


def lock_whole_traces(trace_ids: Collection[int]) -> None:
    """Lock traces whose content is to be replaced, for the caller's transaction.

    The caller holds their upload.
    """
    rows = Trace.everything.select_for_update().filter(pk__in=trace_ids).order_by("pk")
    list(rows.values_list("pk", flat=True))
