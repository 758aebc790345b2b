"""Which traces the line-up of their project has not answered about yet, and locking them.

The order of locks is that of everybody who writes traces: the upload, its traces, then
their signals. So whoever catches up never waits in a circle with a reader.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
from django.db.models import QuerySet

from apps.traces.models import Trace, Upload


class Behind(msgspec.Struct, frozen=True):
    """A trace that was answered by another line-up, or by none."""

    trace_id: int
    upload_id: int
    step_count: int


def _sides(project_id: int, name: str) -> list[QuerySet[Trace]]:
    # Two ranges of the index; "not equal" would read all of it.
    rows = Trace.objects.filter(project_id=project_id)
    return [rows.filter(screened_as__lt=name), rows.filter(screened_as__gt=name)]


def behind(
    project_id: int, name: str, *, most: int, without: Collection[int] = ()
) -> list[Behind]:
    """Up to `most` traces that the line-up called `name` has not answered about.

    Those of the uploads `without` are left out.
    """
    found: list[Behind] = []
    for rows in _sides(project_id, name):
        left = rows.exclude(upload_id__in=without) if without else rows
        some = left.order_by("screened_as", "pk")[: most - len(found)]
        found += [
            Behind(*row) for row in some.values_list("pk", "upload_id", "step_count")
        ]
        if len(found) >= most:
            break
    return found


def behind_count(project_id: int, name: str) -> int:
    """How many traces the line-up called `name` has not answered about."""
    return sum(rows.count() for rows in _sides(project_id, name))


def mark_behind(*, trace_id: int) -> None:
    """Have the line-up look at a trace again: its signals may not be what it gives."""
    Trace.objects.filter(pk=trace_id).update(screened_as="")


def lock_traces(wanted: Sequence[Behind]) -> list[Trace]:
    """Lock uploads and traces for the caller's transaction; skips what others hold.

    Returns the locked traces by id, with their tasks.
    """
    uploads = (
        Upload.objects.select_for_update(skip_locked=True, no_key=True)
        .filter(pk__in={one.upload_id for one in wanted})
        .order_by("pk")
    )
    held = set(uploads.values_list("pk", flat=True))
    ids = [one.trace_id for one in wanted if one.upload_id in held]
    if not ids:
        return []
    return list(
        Trace.objects.select_for_update(of=("self",), skip_locked=True, no_key=True)
        .filter(pk__in=ids)
        .select_related("task")
        .order_by("pk")
    )


def lock_whole_traces(trace_ids: Collection[int]) -> None:
    """Lock traces whose content is to be replaced, for the caller's transaction.

    The caller holds their upload.
    """
    rows = Trace.objects.select_for_update().filter(pk__in=trace_ids).order_by("pk")
    list(rows.values_list("pk", flat=True))
