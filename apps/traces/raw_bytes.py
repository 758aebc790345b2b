"""What becomes of the bytes of uploads: which lie in the store, and when they go.

Uploads of several projects may share bytes. Keeping and removing take a lock on the
hash, so bytes that someone has just sent again are not removed under them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Q

from apps.accounts.models import Project, RawBytes, User
from apps.traces.models import Upload
from apps.traces.storage import ReceivedFile, raw_policy, remove_raw, take_over
from apps.traces.transitions import RawKept, UploadState

UNREAD_RAW_LASTS = timedelta(days=7)


def create_upload(
    *,
    project: Project,
    received: ReceivedFile,
    user: User | None,
    now: Any,
    format_override: str = "",
) -> tuple[Upload, bool]:
    """Keep received bytes as an upload; the same bytes are the same upload.

    Returns the upload and whether it is new. The bytes are durable before the row is.
    Bytes that were removed once they were read do not come back with a copy; those that
    could not be read and went by age do.
    """
    with transaction.atomic():
        lock_bytes(received.stored_sha256 or received.sha256)
        known = Upload.objects.filter(project=project, sha256=received.sha256).first()
        if known is not None:
            if known.raw_kept == RawKept.GONE and known.state == UploadState.FAILED:
                _bring_back(known, received)
            if _needs_bytes(known, received):
                take_over(received)
            else:
                received.drop()
            return known, False
        take_over(received)
        row = {
            "size": received.size,
            "name": received.name[:255],
            "state": UploadState.RECEIVED.value,
            "created_by": user,
            "created_at": now,
            # What is kept of a structure is in our own format, whatever it was in.
            "format_override": "" if received.stored_sha256 else format_override,
            "raw_kept": _raw_kept_of(project, received).value,
            "stored_sha256": received.stored_sha256,
            "reduced": received.reduced,
        }
        return Upload.objects.get_or_create(
            project=project, sha256=received.sha256, defaults=row
        )


def _bring_back(known: Upload, received: ReceivedFile) -> None:
    """Say of an upload that was never read what is kept of it now."""
    known.raw_kept = _raw_kept_of(known.project, received).value
    known.stored_sha256 = received.stored_sha256
    known.reduced = received.reduced
    known.save(update_fields=["raw_kept", "stored_sha256", "reduced"])


def _needs_bytes(known: Upload, received: ReceivedFile) -> bool:
    """Whether a copy of known bytes may lie in the store: heals one that was lost."""
    return (
        known.raw_kept != RawKept.GONE and known.stored_sha256 == received.stored_sha256
    )


def _raw_kept_of(project: Project, received: ReceivedFile) -> RawKept:
    """What becomes of received bytes in this project."""
    if raw_policy(project) is RawBytes.NOT_KEPT:
        return RawKept.UNTIL_READ
    return RawKept.ENCRYPTED if received.keeping.is_lasting else RawKept.KEPT


def lock_bytes(sha256: str) -> None:
    """Keep others from keeping or removing these bytes until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [sha256]
        )


def forget_raw(*, upload_id: int) -> bool:
    """Remove the bytes of an upload unless another one keeps them; whether they went.

    Only bytes that were kept until they are read. Safe to run twice.
    """
    with transaction.atomic():
        upload = (
            Upload.objects.select_for_update()
            .filter(pk=upload_id, raw_kept=RawKept.UNTIL_READ.value)
            .first()
        )
        if upload is None:
            return False
        lock_bytes(upload.raw_sha256)
        upload.raw_kept = RawKept.GONE.value
        upload.save(update_fields=["raw_kept"])
        if not _others_keep(upload):
            remove_raw(upload.raw_sha256)
        return True


def _others_keep(upload: Upload) -> bool:
    same = Q(stored_sha256=upload.raw_sha256) | Q(
        stored_sha256="", sha256=upload.raw_sha256
    )
    others = Upload.objects.filter(same).exclude(pk=upload.pk)
    return others.exclude(raw_kept=RawKept.GONE.value).exists()


def forget_old_raw(*, now: Any, after: timedelta = UNREAD_RAW_LASTS) -> int:
    """Remove bytes that were kept until they are read; returns of how many uploads.

    Those that could not be read to their end (or whose reader died before it removed
    them) go once they are older than `after`.
    """
    over = Q(
        state__in=[UploadState.DONE.value, UploadState.FAILED.value],
        finished_at__lt=now - after,
    )
    waiting = Upload.objects.filter(over, raw_kept=RawKept.UNTIL_READ.value)
    ids = list(waiting.values_list("pk", flat=True)[:1000])
    return sum(forget_raw(upload_id=upload_id) for upload_id in ids)
