"""Reading a project once, in a fixed number of queries, for a report document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from django.db.models import Count, F, Q, QuerySet, Sum

from apps.accounts.models import Project
from apps.reports.document import (
    MAX_UPLOADS,
    CountsPart,
    DecisionPart,
    UploadPart,
)
from apps.reports.inert import one_line
from apps.reports.rates import rate_of
from apps.reports.words import number, utc
from apps.review.models import Signal
from apps.review.transitions import SignalState, Verdict
from apps.screening.lineup import LineUp
from apps.screening.models import Screening
from apps.traces.models import Trace, Upload

_MAX_NOTES = 10


class Scope(msgspec.Struct, frozen=True):
    """What the counts of a report are about: a project, or one upload of it.

    Of each check of the line-up only its current key is counted; `check` names one
    that the reader asked for, of which every key is when it is of no line-up any more.
    """

    project: Project
    lineup: LineUp
    upload_id: int | None = None
    check: str = ""

    def traces(self) -> QuerySet[Trace]:
        """The traces in scope."""
        traces = Trace.objects.filter(project=self.project)
        return traces.filter(upload_id=self.upload_id) if self.upload_id else traces

    def uploads(self) -> QuerySet[Upload]:
        """The uploads in scope."""
        uploads = Upload.objects.filter(project=self.project)
        return uploads.filter(pk=self.upload_id) if self.upload_id else uploads

    def screenings(self) -> QuerySet[Screening]:
        """The answers in scope, of current keys."""
        counted = self.lineup.current()
        if self.check and self.check not in self.lineup.by_slug:
            counted |= Q(check_slug=self.check)
        rows = Screening.objects.filter(counted, project=self.project)
        return rows.filter(trace__upload_id=self.upload_id) if self.upload_id else rows

    def signals(self) -> QuerySet[Signal]:
        """The signals in scope, whatever the filter of the report."""
        rows = Signal.objects.filter(project=self.project)
        return rows.filter(trace__upload_id=self.upload_id) if self.upload_id else rows


def counts(scope: Scope) -> CountsPart:
    """What the scope holds: two queries."""
    row = scope.traces().aggregate(
        traces=Count("id"),
        steps=Sum("step_count", default=0),
        model_calls=Sum("model_call_count", default=0),
        tool_calls=Sum("tool_call_count", default=0),
        usage_known=Sum("usage_known", default=0),
        errors=Sum("error_count", default=0),
        tasks=Count("task", distinct=True),
        trials=Count("id", filter=Q(task__isnull=False)),
        **{
            f"outcome_{kind}": Count("id", filter=Q(outcome=kind))
            for kind in ("pass", "fail", "score", "unknown")
        },
    )
    outcomes = {
        kind: row.pop(f"outcome_{kind}")
        for kind in ("pass", "fail", "score", "unknown")
    }
    return CountsPart(uploads=scope.uploads().count(), outcomes=outcomes, **row)


def decisions(scope: Scope) -> tuple[DecisionPart, ...]:
    """What people decided, for all checks together and for each: one query."""
    rows = list(
        scope.signals()
        .values("check_slug", "state", "verdict", "reason")
        .annotate(number=Count("id"))
        .order_by("check_slug", "state", "verdict", "reason")
    )
    slugs = sorted({row["check_slug"] for row in rows})
    return tuple(
        _decision_part(
            slug, [dict(row) for row in rows if slug in {"", row["check_slug"]}]
        )
        for slug in ["", *slugs]
    )


def _decision_part(slug: str, rows: Iterable[dict[str, Any]]) -> DecisionPart:
    by_verdict: dict[str, int] = {}
    reasons: dict[str, int] = {}
    undecided = total = superseded = 0
    for row in rows:
        if row["state"] == SignalState.SUPERSEDED:
            superseded += row["number"]
            continue
        total += row["number"]
        if row["state"] != SignalState.DECIDED:
            undecided += row["number"]
            continue
        by_verdict[row["verdict"]] = by_verdict.get(row["verdict"], 0) + row["number"]
        if row["reason"]:
            reasons[row["reason"]] = reasons.get(row["reason"], 0) + row["number"]
    confirmed = by_verdict.get(Verdict.CONFIRM, 0)
    dismissed = by_verdict.get(Verdict.DISMISS, 0)
    return DecisionPart(
        check=slug,
        signals=total,
        open=undecided,
        superseded=superseded,
        confirmed=confirmed,
        dismissed=dismissed,
        needs_experiment=by_verdict.get(Verdict.NEEDS_EXPERIMENT, 0),
        cannot_tell=by_verdict.get(Verdict.CANNOT_TELL, 0),
        precision=rate_of(confirmed, confirmed + dismissed),
        reasons=reasons,
    )


def _note(note: dict[str, Any]) -> str:
    sentence = one_line(str(note["sentence"]), limit=300)
    return sentence if note["count"] == 1 else f"{sentence} ({number(note['count'])})"


def uploads(scope: Scope) -> tuple[UploadPart, ...]:
    """The newest `MAX_UPLOADS` uploads in scope: one query."""
    rows = scope.uploads().order_by(F("id").desc())[:MAX_UPLOADS]
    return tuple(
        UploadPart(
            id=row.pk,
            name=one_line(row.name),
            sha256=row.sha256,
            size=row.size,
            state=row.state,
            failure=one_line(row.failure),
            format=one_line(row.format),
            reader_version=row.reader_version,
            traces=row.trace_count,
            steps=row.step_count,
            model_calls=row.model_call_count,
            tool_calls=row.tool_call_count,
            usage_known=row.usage_known,
            duplicates=row.duplicate_count,
            rejected=row.rejected_count,
            notes=tuple(_note(note) for note in row.notes[:_MAX_NOTES]),
            received_at=utc(row.created_at),
        )
        for row in rows
    )
