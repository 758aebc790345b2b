"""What `objects` gives of uploads, tasks and traces: what was recorded, not replays."""

from __future__ import annotations

from typing import TypeVar

from django.db import models

from apps.traces.transitions import UploadSource

M = TypeVar("M", bound=models.Model)


class RecordedUploads(models.Manager[M]):
    """Uploads of what was recorded; a batch of replays is none."""

    def get_queryset(self) -> models.QuerySet[M]:
        """Leave out the uploads that hold recordings of replays."""
        return super().get_queryset().exclude(source=UploadSource.REPLAY.value)


class RecordedTraces(models.Manager[M]):
    """Traces that were recorded, and their tasks; not those of replays."""

    def get_queryset(self) -> models.QuerySet[M]:
        """Leave out what is of replays."""
        return super().get_queryset().filter(is_replay=False)
