"""What follows what. The doors (pages, API) call this; it calls the domain apps.

The row in PostgreSQL is the job; a Celery message only wakes a worker. When the broker
is away the upload is accepted all the same, and `resume_stuck` finds it later.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from apps.accounts.models import Project, User
from apps.engine.formats import by_slug
from apps.pipeline.privacy import settled
from apps.pipeline.refusals import EmptyUpload as EmptyUpload
from apps.pipeline.waking import wake_on_commit
from apps.traces.models import Upload
from apps.traces.operations import create_upload
from apps.traces.rereading import reread_upload
from apps.traces.storage import ReceivedFile
from apps.traces.transitions import (
    NotPossibleNow,
    RawKept,
    UploadSource,
    UploadState,
)


def submit_upload(
    *,
    project: Project,
    received: ReceivedFile,
    user: User | None,
    now: datetime,
    format_override: str = "",
) -> tuple[Upload, bool]:
    """Keep an upload and wake a worker; the same bytes are the same upload.

    Bytes that could not be read are read again when another format is asked for, or
    when they are kept only until they are read. Returns the upload and whether it is new. Raises `EmptyUpload` for zero bytes,
    `NothingKept` where a structure-only project can keep nothing, and `KeyError` for an
    unknown format.
    """
    if received.size == 0:
        received.drop()
        raise EmptyUpload(f"“{received.name}” is empty: it has 0 bytes.")
    if format_override:
        by_slug(format_override)
    # Sending may have taken long: what is kept is what the project wants now.
    project = Project.objects.get(pk=project.pk)
    upload, is_new = create_upload(
        project=project,
        received=settled(received, project=project, format_override=format_override),
        user=user,
        now=now,
        format_override=format_override,
    )
    if is_new:
        wake(upload_id=upload.pk)
    elif upload.state == UploadState.FAILED and (
        format_override or upload.raw_kept == RawKept.UNTIL_READ
    ):
        read_again(upload=upload, format_override=format_override)
        upload.refresh_from_db()
    return upload, is_new


def read_again(*, upload: Upload, format_override: str) -> None:
    """Read the kept bytes of an upload again, maybe as another format.

    What was read before stays until the new reading has found something, and no
    decision is ever lost. Raises `NotPossibleNow` while it is being read.
    """
    if upload.source == UploadSource.LIVE:
        raise NotPossibleNow(
            "These traces came live, span by span; there are no bytes of a file that "
            "could be read again."
        )
    if format_override:
        by_slug(format_override)
    with transaction.atomic():
        reread_upload(upload=upload, format_override=format_override)
        wake(upload_id=upload.pk)


def wake(*, upload_id: int) -> None:
    """Tell a worker about an upload once the transaction has committed."""
    wake_on_commit("pipeline.parse_upload", upload_id=upload_id)
