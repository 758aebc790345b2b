"""The order in which everybody locks rows, so that nobody waits in a circle.

First who finds trials in a project, then uploads, then their traces, then what is about
the traces (signals, blind looks). Of one kind the lower id comes first. An `UPDATE` or
`DELETE` of several rows locks them in any order, so whoever writes several traces has
locked them in theirs before. One transaction locks traces once; who needs more of them
later ends the transaction first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import connection

from apps.traces.behind import Behind
from apps.traces.models import Trace, Upload


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


def wait_for_traces(trace_ids: Collection[int]) -> list[Trace]:
    """Lock traces for the caller's transaction, waiting for whoever holds one.

    Returns those that are still there by id, with their tasks. Nobody replaces, moves or
    erases one meanwhile; rows about them can be added.
    """
    rows = Trace.everything.select_for_update(of=("self",), no_key=True)
    # Not joined: a trace that was moved a moment ago would come without its task.
    return list(rows.filter(pk__in=trace_ids).prefetch_related("task").order_by("pk"))


def lock_traces_of(*, upload_id: int) -> None:
    """Lock all traces of an upload that are to be erased, as `lock_whole_traces`."""
    rows = Trace.everything.select_for_update().filter(upload_id=upload_id)
    list(rows.order_by("pk").values_list("pk", flat=True))


def lock_whole_traces(trace_ids: Collection[int]) -> None:
    """Lock traces whose content is to be replaced or erased, for the caller's transaction.

    Waits for everybody who keeps one. The caller holds their upload.
    """
    rows = Trace.everything.select_for_update().filter(pk__in=trace_ids).order_by("pk")
    list(rows.values_list("pk", flat=True))
