"""Which traces are looked at blindly, and what a reviewer may be offered.

A seeded share of the traces without signals is drawn, and about as many of those with
signals, so that being drawn says nothing about what the checks said. It does not claim
to be a sample of any other traces than those that arrived while the share was set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from apps.accounts.models import Project, User
from apps.review.blind_states import BlindAct
from apps.review.models import BlindEntry, BlindLook, HistoryEntry
from apps.review.transitions import Act, SignalState
from apps.traces.models import Trace


def draw_blind_looks(
    *,
    project: Project,
    trace_ids: Sequence[int],
    flagged: Collection[int],
    now: datetime,
) -> int:
    """Draw blind looks among traces that were just screened; returns how many.

    `flagged` are those with a queued signal, which is frozen as `was_flagged`. Runs
    inside the transaction that stored the traces, after their signals were counted,
    so that every trace is considered exactly once, under the share of that moment.
    The choice depends on the ids alone: the same traces are drawn whoever draws.
    """
    if not project.blind_percent or not trace_ids:
        return 0
    share = project.blind_percent / 100
    limits = {False: share, True: _share_of_flagged(project, share)}
    drawn = [
        BlindLook(
            project_id=project.pk,
            trace_id=trace_id,
            was_flagged=trace_id in flagged,
            place=_lot("place", project.pk, trace_id),
            created_at=now,
        )
        for trace_id in trace_ids
        if _lot("drawn", project.pk, trace_id) < limits[trace_id in flagged]
    ]
    BlindEntry.objects.bulk_create(
        BlindEntry(look=look, base_version=-1, act=BlindAct.DRAWN.value, at=now)
        for look in BlindLook.objects.bulk_create(drawn)
    )
    return len(drawn)


def _share_of_flagged(project: Project, share: float) -> float:
    """The share of flagged traces that gives about as many looks as `share` does."""
    counts = Trace.objects.filter(project=project).aggregate(
        flagged=Count("id", filter=Q(signal_count__gt=0)),
        unflagged=Count("id", filter=Q(signal_count=0)),
    )
    if not counts["flagged"]:
        return 0.0
    return min(1.0, share * float(counts["unflagged"]) / float(counts["flagged"]))


def _lot(purpose: str, project_id: int, trace_id: int) -> float:
    """A number from 0 up to 1 that looks random and is always the same."""
    digest = hashlib.sha256(f"{purpose}/{project_id}/{trace_id}".encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


def offered_to(*, project: Project, user: User) -> QuerySet[BlindLook]:
    """Looks that are open or that `user` holds, in their order.

    Who ever decided a signal of the trace is not blind to it and is offered none.
    """
    mine = Q(state=SignalState.CLAIMED, claimed_by=user)
    decided = HistoryEntry.objects.filter(
        signal__trace_id=OuterRef("trace_id"), by=user, act=Act.DECIDED.value
    )
    return (
        BlindLook.objects.filter(
            Q(state=SignalState.OPEN) | mine, ~Exists(decided), project=project
        )
        .select_related("trace", "trace__task")
        .order_by("place", "id")
    )


def is_blind_to(*, look: BlindLook, user: User) -> bool:
    """Whether `user` has never decided a signal of the trace of `look`."""
    return not HistoryEntry.objects.filter(
        signal__trace_id=look.trace_id, by=user, act=Act.DECIDED.value
    ).exists()


def undecided_count(*, project: Project) -> int:
    """How many blind looks of a project wait for a decision."""
    return BlindLook.objects.filter(
        project=project, state__in=[SignalState.OPEN, SignalState.CLAIMED]
    ).count()


def withdraw(*, project: Project, user: User) -> int:
    """Take back the looks that nobody has decided; returns how many.

    Their history stays, and their traces are not drawn a second time.
    """
    with transaction.atomic():
        looks = list(
            BlindLook.objects.select_for_update(of=("self",))
            .filter(project=project, state__in=[SignalState.OPEN, SignalState.CLAIMED])
            .order_by("pk")
        )
        BlindEntry.objects.bulk_create(
            BlindEntry(
                look=look,
                base_version=look.version,
                act=BlindAct.WITHDRAWN.value,
                at=Now(),
                by=user,
            )
            for look in looks
        )
        for look in looks:
            look.state = SignalState.SUPERSEDED
            look.claimed_by = look.claimed_until = None
            look.version += 1
        BlindLook.objects.bulk_update(
            looks, ["state", "claimed_by", "claimed_until", "version"], batch_size=1000
        )
    return len(looks)
