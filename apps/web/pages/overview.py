"""What the overview of a project needs: masking first, then what is there today."""

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
from apps.traces.transitions import UploadState
from apps.web.access import Place
from apps.web.pages.checks import CheckSummary, check_summaries
from apps.web.pages.masking import MaskingPart, masking_part
from apps.web.pages.scoring_state import ScoringState, scoring_state
from apps.web.pages.uploads import UploadRow, upload_row


class OverviewPage(msgspec.Struct, frozen=True):
    """A project at a glance: agents beside outcomes, then what the checks answered.

    `masking` is None until verdicts were settled for the first time. `refusal` says why the reader may not decide signals; empty when they may.
    """

    place: Place
    totals: ProjectCounts
    outcomes: dict[str, int]
    queue: QueueCounts
    checks: list[CheckSummary]
    silent: list[CheckSummary]
    uploads: list[UploadRow]
    refusal: str
    masking: MaskingPart | None
    scoring: ScoringState

    @property
    def is_recorded_otherwise(self) -> bool:
        """Whether the files tell other outcomes than what is expected makes of them."""
        if self.masking is None:
            return False
        scored = self.masking.standing.traces.counts
        recorded = self.outcomes.get("pass", 0), self.outcomes.get("fail", 0)
        return recorded != (scored.passed, scored.failed)


def overview_page(place: Place) -> OverviewPage:
    """The overview of the place's project."""
    checked = check_summaries(
        place, counts_per_check(place.project, lineup=place.lineup)
    )
    uploads = list(uploads_of(place.project)[:5])
    newest = next((one for one in uploads if one.state == UploadState.DONE), None)
    return OverviewPage(
        place=place,
        totals=project_counts(place.project),
        outcomes=outcomes_of(place.project),
        queue=counts(project=place.project, user=place.user),
        checks=[row for row in checked if row.counts.signals],
        silent=[row for row in checked if not row.counts.signals],
        uploads=[upload_row(upload) for upload in uploads],
        refusal=place.refusal(Permission.REVIEW),
        masking=masking_part(place, newest),
        scoring=scoring_state(place.project.pk),
    )
