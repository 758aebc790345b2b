"""How the checks answered, row by row: the overview and the receipts show it."""

from __future__ import annotations

import msgspec

from apps.engine.check import Answer, Check
from apps.review.queries import check_precision
from apps.screening.queries import CheckCounts
from apps.web.access import Place


class CheckSummary(msgspec.Struct, frozen=True):
    """One check over a project: counts, what chance gives, what people said."""

    check: Check
    counts: CheckCounts
    reasons: list[tuple[str, int]]
    decided: int
    confirmed: int


def check_summaries(place: Place, answered: list[CheckCounts]) -> list[CheckSummary]:
    """Every registered check with its counts and what reviewers of the project said."""
    by_slug = {entry.slug: entry for entry in answered}
    said = check_precision(project=place.project)
    return [_summary(check, by_slug[check.slug], said) for check in place.lineup.checks]


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
