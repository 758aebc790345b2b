"""Reading answers: the counts per check of a project, the answers about a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.db.models import Count, QuerySet, Sum

from apps.accounts.models import Project
from apps.engine.check import Answer, Level
from apps.engine.checks import CHECKS
from apps.screening.models import Screening


class CheckCounts(msgspec.Struct):
    """How a check answered over a project.

    `expected` sums, over every sequence it applied to, how often the null model alone
    makes it fire: the number of signals that chance alone would give. It is None where
    no applicable sequence has such a probability.
    """

    slug: str
    signals: int = 0
    queued: int = 0
    quiet: int = 0
    not_applicable: int = 0
    expected: float | None = None
    reasons: dict[tuple[str, str], int] = {}

    @property
    def applicable(self) -> int:
        """Sequences that the check could answer about."""
        return self.signals + self.quiet

    @property
    def screened(self) -> int:
        """Everything the check looked at."""
        return self.applicable + self.not_applicable


def counts_per_check(
    project: Project, *, trace_ids: Iterable[int] | None = None
) -> list[CheckCounts]:
    """The counts of every registered check, in the registered order."""
    rows = Screening.objects.filter(project=project)
    if trace_ids is not None:
        rows = rows.filter(trace_id__in=trace_ids)
    counts = {check.slug: CheckCounts(slug=check.slug) for check in CHECKS}
    for row in rows.values("check_slug", "answer", "level", "reason_code").annotate(
        number=Count("id"), chance_sum=Sum("chance_of_signal")
    ):
        entry = counts.setdefault(
            row["check_slug"], CheckCounts(slug=row["check_slug"])
        )
        _add(entry, row)
    return list(counts.values())


def _add(entry: CheckCounts, row: Mapping[str, Any]) -> None:
    number: int = row["number"]
    answer: str = row["answer"]
    if answer == Answer.SIGNAL:
        entry.signals += number
        entry.queued += number if row["level"] == Level.REVIEW_SIGNAL else 0
    elif answer == Answer.QUIET:
        entry.quiet += number
    else:
        entry.not_applicable += number
    key = (answer, row["reason_code"])
    entry.reasons[key] = entry.reasons.get(key, 0) + number
    if answer != Answer.NOT_APPLICABLE and row["chance_sum"] is not None:
        entry.expected = (entry.expected or 0.0) + float(row["chance_sum"])


def answers_about(trace_id: int) -> QuerySet[Screening]:
    """Every check's answers about one trace, signals first."""
    return Screening.objects.filter(trace_id=trace_id).order_by(
        "-answer", "check_slug", "id"
    )
