"""Reading a project once, in a fixed number of queries, for a report document."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec
from django.db.models import Count, DecimalField, F, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast

from apps.accounts.models import Project
from apps.engine.check import Answer, Check, Level
from apps.engine.checks import CHECKS
from apps.reports.document import (
    MAX_UPLOADS,
    CheckPart,
    CountsPart,
    DecisionPart,
    ReasonPart,
    UploadPart,
    rate_of,
)
from apps.reports.inert import one_line
from apps.reports.words import number, utc
from apps.review.models import Signal
from apps.review.transitions import SignalState, Verdict
from apps.screening.lineup import CheckKey
from apps.screening.models import Screening
from apps.screening.queries import outcome_associations
from apps.traces.models import Trace, Upload

_MAX_NOTES = 10
_GONE = "This version of the check is not installed any more."


class Scope(msgspec.Struct, frozen=True):
    """What the counts of a report are about: a project, or one upload of it."""

    project: Project
    upload_id: int | None = None

    def traces(self) -> QuerySet[Trace]:
        """The traces in scope."""
        traces = Trace.objects.filter(project=self.project)
        return traces.filter(upload_id=self.upload_id) if self.upload_id else traces

    def uploads(self) -> QuerySet[Upload]:
        """The uploads in scope."""
        uploads = Upload.objects.filter(project=self.project)
        return uploads.filter(pk=self.upload_id) if self.upload_id else uploads

    def screenings(self) -> QuerySet[Screening]:
        """The answers in scope."""
        rows = Screening.objects.filter(project=self.project)
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


def checks(scope: Scope) -> tuple[CheckPart, ...]:
    """Every version of every check that answered, and those registered that did not.

    Three queries. The probabilities are summed as decimals: their sum does not depend
    on the order in which the database reads the rows.
    """
    exact = Cast("chance_of_signal", DecimalField(max_digits=40, decimal_places=20))
    groups = (
        scope.screenings()
        .values(
            "check_slug",
            "check_version",
            "parameters_hash",
            "answer",
            "level",
            "reason_code",
        )
        .annotate(
            number=Count("id"),
            with_null=Count("chance_of_signal"),
            chance_sum=Sum(exact),
        )
        .order_by(
            "check_slug",
            "check_version",
            "parameters_hash",
            "answer",
            "level",
            "reason_code",
        )
    )
    examples = _examples(scope)
    grouped: dict[CheckKey, list[dict[str, Any]]] = {}
    for row in groups:
        key = (row["check_slug"], row["check_version"], row["parameters_hash"])
        grouped.setdefault(key, []).append(dict(row))
    associations = outcome_associations(scope.screenings())
    parts = [
        msgspec.structs.replace(
            _check_part(key, rows, examples), association=associations.get(key)
        )
        for key, rows in grouped.items()
    ]
    answered = {(part.slug, part.version) for part in parts}
    parts += [
        _texts_of(check, check.parameters)
        for check in CHECKS
        if (check.slug, check.version) not in answered
    ]
    places = {check.slug: place for place, check in enumerate(CHECKS)}
    return tuple(
        sorted(
            parts, key=lambda p: (places.get(p.slug, len(places)), p.slug, p.version)
        )
    )


def _examples(scope: Scope) -> dict[tuple[Any, ...], dict[str, Any]]:
    group = ("check_slug", "check_version", "parameters_hash", "answer", "reason_code")
    rows = (
        scope.screenings()
        .annotate(
            words=KeyTextTransform("reason", "evidence"),
            used=KeyTransform("parameters", "evidence"),
        )
        .order_by(*group, "id")
        .distinct(*group)
        .values(*group, "words", "used")
    )
    return {tuple(row[name] for name in group): row for row in rows}


def _texts_of(check: Check, parameters: dict[str, Any]) -> CheckPart:
    return CheckPart(
        slug=check.slug,
        label=check.label,
        version=check.version,
        level=check.level.value,
        observes=check.observes,
        null_model=check.null_model,
        material_when=check.material_when,
        next_step=check.next_step,
        parameters=msgspec.to_builtins(parameters),
    )


def _known(slug: str, version: int, parameters: dict[str, Any]) -> CheckPart:
    for check in CHECKS:
        if (check.slug, check.version) == (slug, version):
            return _texts_of(check, parameters)
    return CheckPart(
        slug=slug,
        label=slug.replace("_", " ").capitalize(),
        version=version,
        level="",
        observes=_GONE,
        null_model=_GONE,
        material_when=_GONE,
        next_step=_GONE,
        parameters=parameters,
    )


def _check_part(
    key: CheckKey,
    rows: list[dict[str, Any]],
    examples: dict[tuple[Any, ...], dict[str, Any]],
) -> CheckPart:
    totals = {"signals": 0, "queued": 0, "quiet": 0, "not_applicable": 0}
    reasons: dict[tuple[str, str], int] = {}
    with_null, chance_sum = 0, Decimal(0)
    for row in rows:
        answer = Answer(row["answer"])
        totals[_column(answer)] += row["number"]
        if answer is Answer.SIGNAL and row["level"] == Level.REVIEW_SIGNAL:
            totals["queued"] += row["number"]
        reason = (row["answer"], row["reason_code"])
        reasons[reason] = reasons.get(reason, 0) + row["number"]
        if answer is not Answer.NOT_APPLICABLE:
            with_null += row["with_null"]
            chance_sum += row["chance_sum"] or 0
    used = next(
        (example["used"] for k, example in examples.items() if k[:3] == key), None
    )
    return msgspec.structs.replace(
        _known(key[0], key[1], used or {}),
        **totals,
        with_null=with_null,
        expected=float(chance_sum) if with_null else None,
        reasons=tuple(
            ReasonPart(
                answer=answer,
                code=code,
                count=count,
                example=one_line(
                    examples[(*key, answer, code)]["words"] or "", limit=300
                ),
            )
            for (answer, code), count in reasons.items()
        ),
    )


def _column(answer: Answer) -> str:
    return "signals" if answer is Answer.SIGNAL else answer.value


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
    undecided = total = 0
    for row in rows:
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
