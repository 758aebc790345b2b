"""What the overview of a project needs: what fired, what could not be checked."""

from __future__ import annotations

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.check import Answer, Check
from apps.engine.checks import CHECKS
from apps.review.queries import QueueCounts, check_precision, counts
from apps.screening.queries import CheckCounts, counts_per_check
from apps.traces.queries import (
    ProjectCounts,
    outcomes_of,
    project_counts,
    uploads_of,
)
from apps.web.access import Place
from apps.web.pages.uploads import UploadRow, upload_row


class CheckSummary(msgspec.Struct, frozen=True):
    """One check over a project: counts, what chance gives, what people said."""

    check: Check
    counts: CheckCounts
    reasons: list[tuple[str, int]]
    decided: int
    confirmed: int


class OverviewPage(msgspec.Struct, frozen=True):
    """A project at a glance."""

    place: Place
    totals: ProjectCounts
    outcomes: dict[str, int]
    queue: QueueCounts
    checks: list[CheckSummary]
    uploads: list[UploadRow]
    may_upload: bool


def check_summaries(place: Place) -> list[CheckSummary]:
    """Every check with its counts in this project."""
    answered = {entry.slug: entry for entry in counts_per_check(place.project)}
    said = check_precision(project=place.project)
    return [_summary(check, answered[check.slug], said) for check in CHECKS]


def _summary(
    check: Check, entry: CheckCounts, said: dict[str, tuple[int, int, int]]
) -> CheckSummary:
    _, decided, confirmed = said.get(check.slug, (0, 0, 0))
    reasons = [
        (code, number)
        for (answer, code), number in entry.reasons.items()
        if answer == Answer.NOT_APPLICABLE
    ]
    return CheckSummary(
        check=check,
        counts=entry,
        reasons=sorted(reasons, key=lambda item: (-item[1], item[0])),
        decided=decided,
        confirmed=confirmed,
    )


def overview_page(place: Place) -> OverviewPage:
    """The overview of the place's project."""
    return OverviewPage(
        place=place,
        totals=project_counts(place.project),
        outcomes=outcomes_of(place.project),
        queue=counts(project=place.project, user=place.user),
        checks=check_summaries(place),
        uploads=[upload_row(upload) for upload in uploads_of(place.project)[:5]],
        may_upload=place.can(Permission.UPLOAD),
    )
