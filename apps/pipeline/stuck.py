"""Finding work that was put down: received but never begun, or begun and let go."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now

from apps.traces.models import Upload
from apps.traces.transitions import MAX_TRIES, UploadState

AT_ONCE = 20


def free_upload_ids() -> list[int]:
    """Ids of uploads that a worker should take now, oldest first, 20 at most.

    An upload that was received in the last ten seconds is left to its own message.
    """
    waiting = Q(
        state=UploadState.RECEIVED.value, created_at__lt=Now() - timedelta(seconds=10)
    )
    let_go = Q(state=UploadState.READING.value, lease_until__lt=Now())
    rows = Upload.objects.filter(waiting | let_go, tries__lt=MAX_TRIES)
    return list(rows.order_by("id").values_list("pk", flat=True)[:AT_ONCE])
