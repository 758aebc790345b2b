"""Frozen reports. Rows are insert-only."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.accounts.models import Project


class Report(models.Model):
    """One frozen document: canonical JSON, with the SHA-256 of exactly that text."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    title = models.CharField(max_length=200)
    filter = models.JSONField(default=dict)
    document = models.TextField()
    sha256 = models.CharField(max_length=64)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="report_newest")]

    def __str__(self) -> str:
        return f"{self.title} ({self.sha256[:12]})"
