"""Uploads that nobody has read yet, and claims that have run out."""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now

from apps.accounts.models import Project
from apps.pipeline.flow import submit_upload
from apps.pipeline.reading import read_upload
from apps.traces.models import Upload
from apps.traces.storage import receive
from tests.factories import NOW


def waiting(
    project: Project, content: bytes = b'{"made": "up"}', name: str = "x.json"
) -> Upload:
    """An upload that nobody has read yet."""
    received = receive([content], limit=10**9, name=name)
    upload, _ = submit_upload(project=project, received=received, user=None, now=NOW)
    return upload


def read(upload: Upload) -> bool:
    done = read_upload(upload_id=upload.pk, clock=lambda: NOW)
    upload.refresh_from_db()
    return done


def expire(upload: Upload) -> None:
    Upload.objects.filter(pk=upload.pk).update(lease_until=Now() - timedelta(seconds=1))
