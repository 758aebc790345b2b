"""Whether traces may be taken away: never one about which a reviewer has decided."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import QuerySet

from apps.review.blind_states import BlindAct
from apps.review.models import BlindEntry, BlindLook, HistoryEntry, Signal
from apps.review.transitions import Act


def lock_undecided(*, upload_id: int) -> bool:
    """Whether nobody has ever decided about a trace of this upload; locks its signals.

    Until the caller's transaction ends nobody can decide one, or a blind look, so what
    it takes away cannot hold a decision.
    """
    return not (
        _lock_decided(Signal.objects.filter(trace__upload_id=upload_id))
        | _lock_looked_at(BlindLook.objects.filter(trace__upload_id=upload_id))
    )


def lock_decided(*, trace_ids: Collection[int]) -> set[int]:
    """Which of these traces were ever decided about; locks their signals and looks.

    Until the caller's transaction ends nobody can decide about the others.
    """
    return _lock_decided(Signal.objects.filter(trace_id__in=trace_ids)) | (
        _lock_looked_at(BlindLook.objects.filter(trace_id__in=trace_ids))
    )


def _lock_decided(signals: QuerySet[Signal]) -> set[int]:
    rows = signals.select_for_update(of=("self",)).order_by("pk")
    locked = dict(rows.values_list("pk", "trace_id"))
    decided = HistoryEntry.objects.filter(signal_id__in=locked, act=Act.DECIDED.value)
    return {locked[pk] for pk in decided.values_list("signal_id", flat=True)}


def _lock_looked_at(looks: QuerySet[BlindLook]) -> set[int]:
    rows = looks.select_for_update(of=("self",)).order_by("pk")
    locked = dict(rows.values_list("pk", "trace_id"))
    decided = BlindEntry.objects.filter(look_id__in=locked, act=BlindAct.DECIDED.value)
    return {locked[pk] for pk in decided.values_list("look_id", flat=True)}
