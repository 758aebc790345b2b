"""How far the scoring of a project was when a document was made."""

from __future__ import annotations

from apps.reports.assessment import StandingPart
from apps.reports.words import utc
from apps.verdicts.progress import Progress


def standing_part(progress: Progress) -> StandingPart:
    """How many traces were left, and when verdicts were settled last ("": never)."""
    verdict = progress.verdict
    settled_at = None if verdict is None else verdict.settled_at
    return StandingPart(
        left=progress.left,
        is_behind=progress.is_behind,
        settled_at="" if settled_at is None else utc(settled_at),
    )
