"""What follows what. The doors (pages, API) call this; it calls the domain apps.

The row in PostgreSQL is the job; a Celery message only wakes a worker. When the broker
is away the upload is accepted all the same, and `resume_stuck` finds it later.
"""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial

from django.db import transaction
from kombu.exceptions import OperationalError

from apps.accounts.models import Project, User
from apps.engine.formats import by_slug
from apps.pipeline.privacy import settled
from apps.pipeline.refusals import EmptyUpload as EmptyUpload
from apps.pipeline.tasks import parse_upload
from apps.review.operations import lock_undecided
from apps.traces.models import Upload
from apps.traces.operations import create_upload, reread_upload
from apps.traces.storage import ReceivedFile
from apps.traces.transitions import NotPossibleNow, UploadSource, UploadState

logger = logging.getLogger(__name__)


def submit_upload(
    *,
    project: Project,
    received: ReceivedFile,
    user: User | None,
    now: datetime,
    format_override: str = "",
) -> tuple[Upload, bool]:
    """Keep an upload and wake a worker; the same bytes are the same upload.

    Bytes that could not be read are read again when another format is asked for.
    Returns the upload and whether it is new. Raises `EmptyUpload` for zero bytes,
    `NothingKept` where a structure-only project can keep nothing, and `KeyError` for an
    unknown format.
    """
    if received.size == 0:
        received.drop()
        raise EmptyUpload(f"“{received.name}” is empty: it has 0 bytes.")
    if format_override:
        by_slug(format_override)
    upload, is_new = create_upload(
        project=project,
        received=settled(received, project=project, format_override=format_override),
        user=user,
        now=now,
        format_override=format_override,
    )
    if is_new:
        wake(upload_id=upload.pk)
    elif format_override and upload.state == UploadState.FAILED:
        read_again(upload=upload, format_override=format_override)
    return upload, is_new


def read_again(*, upload: Upload, format_override: str) -> None:
    """Read the kept bytes of an upload again, maybe as another format.

    Raises `NotPossibleNow` while it is being read, or when reviewers have decided
    signals of it: their decisions would be lost.
    """
    if upload.source == UploadSource.LIVE:
        raise NotPossibleNow(
            "These traces came live, span by span; there are no bytes of a file that "
            "could be read again."
        )
    if format_override:
        by_slug(format_override)
    with transaction.atomic():
        if not lock_undecided(upload_id=upload.pk):
            raise NotPossibleNow(
                "Reviewers have decided signals of this upload. Reading it again would "
                "lose their decisions, so it stays as it is."
            )
        reread_upload(upload=upload, format_override=format_override)
        wake(upload_id=upload.pk)


def wake(*, upload_id: int) -> None:
    """Tell a worker about an upload once the transaction has committed."""
    transaction.on_commit(partial(_send, upload_id))


def _send(upload_id: int) -> None:
    try:
        parse_upload.delay(upload_id=upload_id)
    except OperationalError:
        logger.warning("The broker is away; upload %s waits in the database", upload_id)
