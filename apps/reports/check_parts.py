"""How the checks answered in the scope of a report, one part for each version."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django.db.models import Count
from django.db.models.fields.json import KeyTextTransform, KeyTransform

from apps.engine.check import Answer, Check, Level
from apps.engine.checks import versions_of
from apps.engine.nulls import count_null
from apps.reports.document import ByChancePart, CheckPart, ReasonPart
from apps.reports.gathering import Scope
from apps.reports.inert import one_line
from apps.screening.lineup import CheckKey, LineUp, with_stored_parameters
from apps.screening.queries import outcome_associations

_GONE: Final = "This version of the check is not installed any more."
_KEY: Final = ("check_slug", "check_version", "parameters_hash")
_GROUP: Final = (*_KEY, "answer", "level", "reason_code", "chance_of_signal")

Row = dict[str, Any]
Examples = dict[tuple[Any, ...], Row]


def checks(scope: Scope) -> tuple[CheckPart, ...]:
    """Every check of the line-up under its current key: three queries.

    With whatever else the scope asks for.
    """
    groups = (
        scope.screenings()
        .values(*_GROUP)
        .annotate(number=Count("id"))
        .order_by(*_GROUP)
    )
    grouped: dict[CheckKey, list[Row]] = {}
    for row in groups:
        key = (row["check_slug"], row["check_version"], row["parameters_hash"])
        grouped.setdefault(key, []).append(dict(row))
    examples = _examples(scope)
    associations = outcome_associations(scope.screenings())
    parts = [
        msgspec.structs.replace(
            _check_part(key, rows, examples, scope.lineup),
            association=associations.get(key),
        )
        for key, rows in grouped.items()
    ]
    parts += [
        _texts_of(entry.check)
        for entry in scope.lineup.entries
        if entry.key not in grouped
    ]
    places = {slug: place for place, slug in enumerate(scope.lineup.by_slug)}
    return tuple(
        sorted(
            parts, key=lambda p: (places.get(p.slug, len(places)), p.slug, p.version)
        )
    )


def _examples(scope: Scope) -> Examples:
    group = (*_KEY, "answer", "reason_code")
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
    return {tuple(row[name] for name in group): dict(row) for row in rows}


def _texts_of(check: Check) -> CheckPart:
    return CheckPart(
        slug=check.slug,
        label=check.label,
        version=check.version,
        level=check.level.value,
        basis=check.basis.value,
        observes=check.observes,
        null_model=check.null_model,
        material_when=check.material_when,
        next_step=check.next_step,
        parameters=msgspec.to_builtins(check.parameters),
    )


def _known(key: CheckKey, parameters: dict[str, Any], lineup: LineUp) -> CheckPart:
    slug, version, _ = key
    entry = lineup.by_slug.get(slug)
    for check in [*([entry.check] if entry else []), *versions_of(slug)]:
        if check.version == version:
            return _texts_of(with_stored_parameters(check, parameters))
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
    key: CheckKey, rows: list[Row], examples: Examples, lineup: LineUp
) -> CheckPart:
    totals = {"signals": 0, "queued": 0, "quiet": 0, "not_applicable": 0}
    reasons: dict[tuple[str, str], int] = {}
    for row in rows:
        answer = Answer(row["answer"])
        totals[_column(answer)] += row["number"]
        if answer is Answer.SIGNAL and row["level"] == Level.REVIEW_SIGNAL:
            totals["queued"] += row["number"]
        reason = (row["answer"], row["reason_code"])
        reasons[reason] = reasons.get(reason, 0) + row["number"]
    used = next(
        (example["used"] for k, example in examples.items() if k[:3] == key), None
    )
    by_chance = _by_chance(rows)
    return msgspec.structs.replace(
        _known(key, used or {}, lineup),
        **totals,
        with_null=by_chance.tested if by_chance else 0,
        expected=by_chance.expected if by_chance else None,
        by_chance=by_chance,
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


def _by_chance(rows: list[Row]) -> ByChancePart | None:
    tested = [
        row
        for row in rows
        if row["answer"] != Answer.NOT_APPLICABLE
        and row["chance_of_signal"] is not None
    ]
    if not tested:
        return None
    null = count_null(
        (min(row["chance_of_signal"], 1), row["number"]) for row in tested
    )
    signals = sum(row["number"] for row in tested if row["answer"] == Answer.SIGNAL)
    return ByChancePart(
        signals=signals,
        tested=null.tests,
        expected=null.expected,
        low=null.low,
        high=null.high,
        p=null.at_least(signals),
        method=null.method,
    )


def _column(answer: Answer) -> str:
    return "signals" if answer is Answer.SIGNAL else answer.value
