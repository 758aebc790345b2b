"""How the checks answered, row by row: the overview, the receipts, the list of checks."""

from __future__ import annotations

import msgspec

from apps.engine.check import Answer, Check
from apps.reports import words
from apps.reports.chance_words import (
    INTERVAL_MEANS,
    beside_chance,
    comparison,
    expected_with_interval,
)
from apps.reports.rates import rate_of
from apps.review.queries import check_precision
from apps.screening.chance_counts import ChanceCount, chance_count
from apps.screening.lineup import Entry
from apps.screening.queries import CheckCounts, counts_per_check
from apps.web.access import Place

Reasons = list[tuple[str, int]]


class CheckSummary(msgspec.Struct, frozen=True):
    """One check over a project: counts, what chance gives, what people said.

    `sentence` says the first two in words, `expected` the second alone, `compared`
    whether there are more signals than chance gives; `precision` is in words too.
    """

    check: Check
    counts: CheckCounts
    by_chance: ChanceCount | None
    sentence: str
    expected: str
    compared: str
    reasons: Reasons
    decided: int
    precision: str
    is_paused: bool
    is_defined_here: bool


class ChecksPage(msgspec.Struct, frozen=True):
    """Every check of a project's line-up."""

    place: Place
    checks: list[CheckSummary]
    interval_means: str = INTERVAL_MEANS


def checks_page(place: Place) -> ChecksPage:
    """The checks of the place's project, as they answered there."""
    answered = counts_per_check(place.project, lineup=place.lineup)
    return ChecksPage(place=place, checks=check_summaries(place, answered))


def check_summaries(place: Place, answered: list[CheckCounts]) -> list[CheckSummary]:
    """Every check of the line-up with its counts and what reviewers said of it."""
    by_slug = {entry.slug: entry for entry in answered}
    said = check_precision(project=place.project, lineup=place.lineup)
    return [
        summary_of(
            entry, by_slug[entry.check.slug], said.get(entry.check.slug, (0, 0, 0))
        )
        for entry in place.lineup.entries
    ]


def summary_of(
    entry: Entry, counts: CheckCounts, said: tuple[int, int, int]
) -> CheckSummary:
    """One check; `said` is how many signals it queued, how many were decided, confirmed."""
    _, decided, confirmed = said
    count = chance_count(counts)
    return CheckSummary(
        check=entry.check,
        counts=counts,
        by_chance=count,
        sentence=beside_chance(counts.signals, counts.applicable, count),
        expected=expected_with_interval(count) if count else "",
        compared=comparison(count) if count else "",
        reasons=reasons_of(counts, Answer.NOT_APPLICABLE),
        decided=decided,
        precision=words.rate(rate_of(confirmed, decided)),
        is_paused=entry.is_paused,
        is_defined_here=entry.is_defined_here,
    )


def reasons_of(counts: CheckCounts, answer: Answer) -> Reasons:
    """The reasons of one kind of answer with their numbers, the most frequent first."""
    reasons = [
        (code, number)
        for (given, code), number in counts.reasons.items()
        if given == answer
    ]
    return sorted(reasons, key=lambda item: (-item[1], item[0]))
