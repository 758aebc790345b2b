"""What the overview of a project needs: the signals, what could not be checked."""

from __future__ import annotations

import msgspec

from apps.accounts.permissions import Permission
from apps.review.queries import QueueCounts, counts
from apps.screening.queries import counts_per_check
from apps.traces.queries import (
    ProjectCounts,
    outcomes_of,
    project_counts,
    uploads_of,
)
from apps.web.access import Place
from apps.web.pages.checks import CheckSummary, check_summaries
from apps.web.pages.uploads import UploadRow, upload_row


class OverviewPage(msgspec.Struct, frozen=True):
    """A project at a glance: the checks that gave a signal, and those that did not.

    `refusal` says why the reader may not decide signals; empty when they may.
    """

    place: Place
    totals: ProjectCounts
    outcomes: dict[str, int]
    queue: QueueCounts
    checks: list[CheckSummary]
    silent: list[CheckSummary]
    uploads: list[UploadRow]
    refusal: str


def overview_page(place: Place) -> OverviewPage:
    """The overview of the place's project."""
    checked = check_summaries(
        place, counts_per_check(place.project, lineup=place.lineup)
    )
    return OverviewPage(
        place=place,
        totals=project_counts(place.project),
        outcomes=outcomes_of(place.project),
        queue=counts(project=place.project, user=place.user),
        checks=[row for row in checked if row.counts.signals],
        silent=[row for row in checked if not row.counts.signals],
        uploads=[upload_row(upload) for upload in uploads_of(place.project)[:5]],
        refusal=place.refusal(Permission.REVIEW),
    )
