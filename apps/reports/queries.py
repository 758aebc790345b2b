"""Reading frozen reports."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import msgspec
from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.reports.models import Report

_MAX_STEM = 60


def reports_of(project: Project) -> QuerySet[Report]:
    """The reports of a project, newest first, without their documents."""
    return (
        Report.objects.filter(project=project)
        .select_related("created_by")
        .defer("document")
        .order_by("-id")
    )


def document_of(report: Report) -> dict[str, Any]:
    """The frozen document as JSON values (see `apps.reports.document`)."""
    document: dict[str, Any] = msgspec.json.decode(report.document)
    return document


def filename(report: Report, extension: str) -> str:
    """A file name of lower-case ASCII letters, digits and `-`, never empty."""
    plain = unicodedata.normalize("NFKD", report.title).encode("ascii", "ignore")
    stem = re.sub(r"[^a-z0-9]+", "-", plain.decode().lower()).strip("-")[:_MAX_STEM]
    suffix = re.sub(r"[^a-z0-9]", "", extension.lower())
    return f"{stem.rstrip('-') or 'report'}-{report.pk}.{suffix}"
