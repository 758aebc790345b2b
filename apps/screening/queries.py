"""Reading answers: the counts per check of a project, the answers about a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.db.models import Count, Q, QuerySet, Sum

from apps.accounts.models import Project
from apps.engine.check import Answer, Level
from apps.engine.nulls import Association, association
from apps.engine.trace import OutcomeKind
from apps.screening.lineup import CheckKey, LineUp, lineup_of
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
    project: Project,
    *,
    trace_ids: Iterable[int] | None = None,
    check_slug: str = "",
    lineup: LineUp | None = None,
) -> list[CheckCounts]:
    """The counts of every check of the line-up under its current key, in its order.

    With `check_slug` those of that check alone; nothing else is read then.
    """
    lineup = lineup or lineup_of(project.pk)
    entries = [
        entry
        for entry in lineup.entries
        if not check_slug or entry.check.slug == check_slug
    ]
    rows = Screening.objects.filter(LineUp(entries).current(), project=project)
    if trace_ids is not None:
        rows = rows.filter(trace_id__in=trace_ids)
    counts = {entry.check.slug: CheckCounts(slug=entry.check.slug) for entry in entries}
    for row in rows.values("check_slug", "answer", "level", "reason_code").annotate(
        number=Count("id"), chance_sum=Sum("chance_of_signal")
    ):
        _add(counts[row["check_slug"]], row)
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


def answers_about(trace_id: int, *, lineup: LineUp) -> QuerySet[Screening]:
    """The answers of the current keys about one trace, signals first."""
    return Screening.objects.filter(lineup.current(), trace_id=trace_id).order_by(
        "-answer", "check_slug", "id"
    )


_FIRED = Q(answer=Answer.SIGNAL)
_PASSED = Q(trace__outcome=OutcomeKind.PASS)
_TABLE = {
    "traces": Count("trace", distinct=True),
    "passed": Count("trace", distinct=True, filter=_PASSED),
    "fired": Count("trace", distinct=True, filter=_FIRED),
    "fired_passed": Count("trace", distinct=True, filter=_FIRED & _PASSED),
    "tasks": Count("trace__task", distinct=True),
    "without_task": Count("trace", distinct=True, filter=Q(trace__task=None)),
}


def _with_outcome(rows: QuerySet[Screening]) -> QuerySet[Screening]:
    """The applicable answers about traces that passed or failed."""
    return rows.filter(
        answer__in=[Answer.SIGNAL, Answer.QUIET],
        trace__outcome__in=[OutcomeKind.PASS, OutcomeKind.FAIL],
    )


def _association(row: Mapping[str, int]) -> Association:
    fired, passed, both = row["fired"], row["passed"], row["fired_passed"]
    neither = row["traces"] - fired - passed + both
    return association(
        fired=(both, fired - both),
        not_fired=(passed - both, neither),
        tasks=row["tasks"],
        without_task=row["without_task"],
    )


def outcome_association(
    *, project: Project, check_slug: str, upload_id: int
) -> Association | None:
    """How firing goes with passing among the traces of one upload: one query.

    A trace fired if any of its sequences did. Only traces count that the check could
    answer about and that passed or failed; None where there is none.
    """
    rows = Screening.objects.filter(
        project=project, check_slug=check_slug, trace__upload_id=upload_id
    )
    found = _with_outcome(rows).aggregate(**_TABLE)
    return _association(found) if found["traces"] else None


def outcome_associations(rows: QuerySet[Screening]) -> dict[CheckKey, Association]:
    """The same over `rows`, for each version of each check in them: one query."""
    key = ("check_slug", "check_version", "parameters_hash")
    groups = _with_outcome(rows).order_by().values(*key).annotate(**_TABLE)
    return {
        (row["check_slug"], row["check_version"], row["parameters_hash"]): (
            _association(row)
        )
        for row in groups
    }
