"""Reading answers: the counts per check of a project, the answers about a trace."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.db.models import Count, Q, QuerySet, Sum

from apps.accounts.models import Project
from apps.engine.check import Answer, Level
from apps.engine.nulls import Association, association
from apps.engine.trace import OutcomeKind
from apps.screening.lineup import CheckKey, LineUp, lineup_of
from apps.screening.models import AnswerCount, Screening


class CheckCounts(msgspec.Struct):
    """How a check answered over a project.

    `chances` says of how many applicable answers the null model alone makes the check
    fire with which probability; `tested_signals` of them are signals. Both are empty
    for a check without a null model.
    """

    slug: str
    signals: int = 0
    queued: int = 0
    quiet: int = 0
    not_applicable: int = 0
    tested_signals: int = 0
    chances: dict[float, int] = {}
    reasons: dict[tuple[str, str], int] = {}

    @property
    def applicable(self) -> int:
        """Sequences that the check could answer about."""
        return self.signals + self.quiet

    @property
    def screened(self) -> int:
        """Everything the check looked at."""
        return self.applicable + self.not_applicable

    @property
    def tested(self) -> int:
        """Applicable answers that have a probability under the null model."""
        return sum(self.chances.values())

    @property
    def expected(self) -> float | None:
        """How many signals chance alone would give; None without a probability."""
        if not self.chances:
            return None
        return math.fsum(chance * number for chance, number in self.chances.items())


_GROUP = ("check_slug", "answer", "level", "reason_code", "chance_of_signal")


def counts_per_check(
    project: Project,
    *,
    trace_ids: Iterable[int] | None = None,
    check_slug: str = "",
    lineup: LineUp | None = None,
) -> list[CheckCounts]:
    """The counts of every check of the line-up under its current key, in its order.

    One query for all checks. With `check_slug` those of that check alone; nothing else
    is read then.
    """
    lineup = lineup or lineup_of(project.pk)
    entries = [
        entry
        for entry in lineup.entries
        if not check_slug or entry.check.slug == check_slug
    ]
    counts = {entry.check.slug: CheckCounts(slug=entry.check.slug) for entry in entries}
    for row in _counted(project, LineUp(entries).current(), trace_ids):
        _add(counts[row["check_slug"]], row)
    return list(counts.values())


def _counted(
    project: Project, keys: Q, trace_ids: Iterable[int] | None
) -> Iterable[dict[str, Any]]:
    """Rows of `_GROUP` with their `number`, of a project from the sums that are kept."""
    found: Iterable[dict[str, Any]]
    if trace_ids is None:
        sums = AnswerCount.objects.filter(keys, project_id=project.pk)
        grouped = sums.values(*_GROUP).annotate(number=Sum("count")).order_by()
        found = grouped.filter(number__gt=0)
    else:
        rows = Screening.objects.filter(keys, project=project, trace_id__in=trace_ids)
        found = rows.values(*_GROUP).annotate(number=Count("id")).order_by()
    return found


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
    chance: float | None = row["chance_of_signal"]
    if answer != Answer.NOT_APPLICABLE and chance is not None:
        entry.chances[chance] = entry.chances.get(chance, 0) + number
        entry.tested_signals += number if answer == Answer.SIGNAL else 0


def answers_about(trace_id: int, *, lineup: LineUp) -> QuerySet[Screening]:
    """The answers of the current keys about one trace, signals first."""
    return Screening.objects.filter(lineup.current(), trace_id=trace_id).order_by(
        "-answer", "check_slug", "id"
    )


_KEY = ("check_slug", "check_version", "parameters_hash")
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


def association_of(row: Mapping[str, int]) -> Association:
    """How firing goes with passing, of a row with the counts of both and of tasks."""
    fired, passed, both = row["fired"], row["passed"], row["fired_passed"]
    neither = row["traces"] - fired - passed + both
    return association(
        fired=(both, fired - both),
        not_fired=(passed - both, neither),
        tasks=row["tasks"],
        without_task=row["without_task"],
    )


def outcome_association(
    *, project: Project, key: CheckKey, upload_id: int | None = None
) -> Association | None:
    """How firing goes with passing among the traces of a project or one upload.

    One query, about the answers of one version of a check with its parameters.

    A trace fired if any of its sequences did. Only traces count that the check could
    answer about and that passed or failed; None where there is none.
    """
    rows = Screening.objects.filter(
        project=project, **dict(zip(_KEY, key, strict=True))
    )
    if upload_id is not None:
        rows = rows.filter(trace__upload_id=upload_id)
    found = _with_outcome(rows).aggregate(**_TABLE)
    return association_of(found) if found["traces"] else None


def outcome_associations(rows: QuerySet[Screening]) -> dict[CheckKey, Association]:
    """The same over `rows`, for each version of each check in them: one query."""
    groups = _with_outcome(rows).order_by().values(*_KEY).annotate(**_TABLE)
    return {
        (row["check_slug"], row["check_version"], row["parameters_hash"]): (
            association_of(row)
        )
        for row in groups
    }


def associations_per_upload(
    rows: QuerySet[Screening],
) -> dict[tuple[int, CheckKey], Association]:
    """The same for each upload and each version of each check in `rows`: one query."""
    upload = "trace__upload_id"
    groups = _with_outcome(rows).order_by().values(upload, *_KEY).annotate(**_TABLE)
    return {
        (
            row[upload],
            (row["check_slug"], row["check_version"], row["parameters_hash"]),
        ): association_of(row)
        for row in groups
    }
