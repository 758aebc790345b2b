"""What a furnished project is made with: pages to look at, and uploads that are read."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.utils import timezone

from apps.accounts.models import Project
from apps.pipeline.flow import submit_upload
from apps.pipeline.reading import read_upload
from apps.traces.models import Upload
from apps.traces.storage import receive

READ_SECONDS = 60
EMPTY = "An empty project"


@dataclass(frozen=True)
class Scene:
    """One page to look at, and the HTTP status that it answers with."""

    name: str
    path: str
    is_public: bool = False
    status: int = 200


def upload_and_read(project: Project, content: bytes, *, name: str) -> Upload:
    """Upload bytes and wait until this process or a worker has read them."""
    now = timezone.now()
    received = receive([content], limit=10**9, name=name)
    owner = project.members.order_by("pk").first()
    upload, _ = submit_upload(project=project, received=received, user=owner, now=now)
    wait_until_read(upload)
    return upload


def wait_until_read(upload: Upload) -> None:
    """Read an upload here, or wait until a worker has."""
    read_upload(upload_id=upload.pk, clock=timezone.now)
    end = time.monotonic() + READ_SECONDS
    upload.refresh_from_db()
    while upload.state not in {"done", "failed"}:
        assert time.monotonic() < end, f"{upload.name} was not read: {upload.state}"
        time.sleep(0.05)
        upload.refresh_from_db()
