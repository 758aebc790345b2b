"""The page of one check: what it is, and how it answered in one project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from django.db.models import Count, DecimalField, F, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.http import Http404

from apps.accounts.models import User
from apps.accounts.queries import projects_of
from apps.engine.check import Answer, Check, Parameter
from apps.engine.nulls import NULL_MODELS, Association, NullModel, entropy_lattice
from apps.figures import chance_figure, lattice_figure
from apps.reports.chance_words import (
    INTERVAL_MEANS,
    Q_MEANS,
    group_p,
    q_in_words,
)
from apps.reports.words import association as association_in_words
from apps.reports.words import percent
from apps.review.queries import check_precision
from apps.screening.chance_counts import distribution, null_of
from apps.screening.lineup import CheckKey, Entry
from apps.screening.models import Screening
from apps.screening.queries import (
    CheckCounts,
    associations_per_upload,
    counts_per_check,
    outcome_association,
)
from apps.traces.models import Upload
from apps.web.access import Place
from apps.web.pages.checks import CheckSummary, Reasons, reasons_of, summary_of
from apps.web.words import chance_in_words

RARE: Final = 0.05
MOST_SIGNALS: Final = 20
MOST_UPLOADS: Final = 20
_APPLICABLE: Final = (Answer.SIGNAL, Answer.QUIET)
_DRIFT: Final = "tool-drift"


class ParameterRow(msgspec.Struct, frozen=True):
    """One parameter of a check: its value here and what it may be, in words."""

    name: str
    label: str
    value: str
    allowed: str


class LatticeRow(msgspec.Struct, frozen=True):
    """One possible size of a difference, and how often each sign of it was seen."""

    size: str
    narrowed: int
    widened: int


class GroupRow(msgspec.Struct, frozen=True):
    """How firing goes with the outcome in one upload, in words."""

    upload: Upload
    sentence: str


class GivenRow(msgspec.Struct, frozen=True):
    """One signal of a check: where it is, how rare it is, whether it is queued."""

    answer: Screening
    signal_id: int | None
    chance: str
    q: str


class CheckPage(msgspec.Struct, frozen=True):
    """A check with the figures of one project.

    `rare` of its signals have a chance of at most 5 % each, and so have `rare_quiet` of
    its quiet answers, in the direction to which they moved.
    """

    place: Place
    check: Check
    summary: CheckSummary
    parameters: list[ParameterRow]
    null_models: list[NullModel]
    observed_share: str
    expected_share: str
    group_p: str
    group_p_value: str
    rare: int
    rare_quiet: int
    figure: dict[str, Any] | None
    likely: list[tuple[int, float]]
    lattice: dict[str, Any] | None
    lattice_rows: list[LatticeRow]
    association: Association | None
    outcome_rows: list[tuple[str, int, int, int]]
    outcome_words: str
    groups: list[GroupRow]
    quiet_reasons: Reasons
    given: list[GivenRow]
    q_means: str = Q_MEANS
    interval_means: str = INTERVAL_MEANS


def parameter_rows(check: Check) -> list[ParameterRow]:
    """The parameters of a check with their ranges."""
    values = check.parameters
    return [
        ParameterRow(
            name=limit.name,
            label=limit.label,
            value=_value_in_words(values[limit.name], limit),
            allowed=range_in_words(limit),
        )
        for limit in check.limits
    ]


def _value_in_words(value: Any, limit: Parameter) -> str:
    if limit.names:
        return ", ".join(value) or "none"
    unit = limit.unit.removesuffix("s") if value == 1 else limit.unit
    return f"{value:,g} {unit}".replace(",", "\u202f").strip()


def range_in_words(limit: Parameter) -> str:
    """`2 to 6 calls`, `above 0, up to 1`, `at most 50 names`."""
    if limit.names:
        return f"at most {limit.high:,g} names"
    low = f"above {limit.low:.4g}, up to" if limit.above_low else f"{limit.low:.4g} to"
    whole = "" if limit.is_whole or limit.unit else ", any number"
    return f"{low} {limit.high:.4g} {limit.unit}".strip() + whole


def null_models_of(check: Check) -> list[NullModel]:
    """The null models and tests that a check says it rests on."""
    return [model for model in NULL_MODELS if check.label in model.used]


def projects_with_checks(user: User) -> list[tuple[str, str]]:
    """The slug and name of each project of a user, for links from a check."""
    return [(one.project.slug, one.project.name) for one in projects_of(user)]


def check_page(place: Place, slug: str) -> CheckPage:
    """The page of one check of the project's line-up; raises `Http404` without it."""
    entry = place.lineup.by_slug.get(slug)
    if entry is None:
        raise Http404
    [counts] = counts_per_check(place.project, lineup=place.lineup, check_slug=slug)
    said = check_precision(
        project=place.project, lineup=place.lineup, check_slug=slug
    ).get(slug, (0, 0, 0))
    summary = summary_of(entry, counts, said)
    found = outcome_association(project=place.project, key=entry.key)
    rare = _rare(place, entry.key)
    figure, likely = _by_chance(counts)
    lattice, lattice_rows = _lattice(place, entry)
    return CheckPage(
        place=place,
        check=entry.check,
        summary=summary,
        parameters=parameter_rows(entry.check),
        null_models=null_models_of(entry.check),
        **_chance_words(summary),
        rare=rare.get(Answer.SIGNAL.value, 0),
        rare_quiet=rare.get(Answer.QUIET.value, 0),
        figure=figure,
        likely=likely,
        lattice=lattice,
        lattice_rows=lattice_rows,
        association=found,
        outcome_rows=_outcome_rows(found) if found else [],
        outcome_words=association_in_words(found),
        groups=_groups(place, entry.key),
        quiet_reasons=reasons_of(counts, Answer.QUIET),
        given=list(_given(place, entry.key)),
    )


def _chance_words(summary: CheckSummary) -> dict[str, str]:
    count = summary.by_chance
    if count is None:
        return dict.fromkeys(
            ("observed_share", "expected_share", "group_p", "group_p_value"), ""
        )
    return {
        "observed_share": percent(count.signals / count.tested),
        "expected_share": percent(count.expected / count.tested),
        "group_p": group_p(count),
        "group_p_value": percent(count.p),
    }


def _outcome_rows(found: Association) -> list[tuple[str, int, int, int]]:
    """The 2 x 2 table: traces that passed, that failed, together."""
    return [
        (
            "with a signal",
            found.fired_passed,
            found.fired - found.fired_passed,
            found.fired,
        ),
        (
            "without one",
            found.not_fired_passed,
            found.not_fired - found.not_fired_passed,
            found.not_fired,
        ),
    ]


def _answers(place: Place, key: CheckKey) -> QuerySet[Screening]:
    slug, version, parameters = key
    return Screening.objects.filter(
        project=place.project,
        check_slug=slug,
        check_version=version,
        parameters_hash=parameters,
    )


def _rare(place: Place, key: CheckKey) -> dict[str, int]:
    """How many signals and how many quiet answers are rare each by its own chance."""
    found = _answers(place, key).filter(chance__lte=RARE).order_by()
    return dict(found.values_list("answer").annotate(number=Count("pk")))


def _by_chance(
    counts: CheckCounts,
) -> tuple[dict[str, Any] | None, list[tuple[int, float]]]:
    """The picture of the number of signals by chance, and its values."""
    null = null_of(counts)
    if null is None or null.expected == 0:
        return None, []
    likely = distribution(null)
    return chance_figure(likely, observed=counts.tested_signals), likely


def _lattice(
    place: Place, entry: Entry
) -> tuple[dict[str, Any] | None, list[LatticeRow]]:
    """The possible sizes of a drop in entropy, and those that were observed."""
    if entry.check.slug != _DRIFT:
        return None, []
    # A cast to so many places rounds; equal sizes are computed in different ways.
    places = DecimalField(max_digits=20, decimal_places=4)
    size = Cast(KeyTextTransform("effect", "evidence"), places)
    rows = (
        _answers(place, entry.key)
        .filter(answer__in=_APPLICABLE)
        .annotate(size=size)
        .values("size")
        .annotate(times=Count("id"))
        .order_by("size")
    )
    sizes = [
        (float(row["size"]), row["times"]) for row in rows if row["size"] is not None
    ]
    if not sizes:
        return None, []
    parameters = entry.check.parameters
    lattice = sorted({round(one, 4) for one in entropy_lattice(parameters["window"])})
    picture = lattice_figure(
        sizes, lattice=lattice, bound=parameters["collapse_at"], unit="nats"
    )
    seen = dict(sizes)
    return picture, [
        LatticeRow(
            size=f"{one:.4f}" if one else "0",
            narrowed=seen.get(one, 0),
            widened=seen.get(-one, 0) if one else 0,
        )
        for one in lattice
    ]


def _groups(place: Place, key: CheckKey) -> list[GroupRow]:
    """The outcome per upload, where there is more than one; the newest of them."""
    found = associations_per_upload(_answers(place, key))
    if len(found) < 2:
        return []
    by_upload = {upload_id: one for (upload_id, _), one in found.items()}
    uploads = Upload.objects.filter(pk__in=by_upload).order_by("-id")[:MOST_UPLOADS]
    return [
        GroupRow(upload=one, sentence=association_in_words(by_upload[one.pk]))
        for one in uploads
    ]


def _given(place: Place, key: CheckKey) -> Iterable[GivenRow]:
    """The rarest signals, queued or telemetry."""
    rows = (
        _answers(place, key)
        .filter(answer=Answer.SIGNAL)
        .select_related("trace", "trace__task", "signal")
        .order_by(F("chance").asc(nulls_last=True), "id")[:MOST_SIGNALS]
    )
    for row in rows:
        signal = getattr(row, "signal", None)
        chance = row.evidence.get("chance")
        yield GivenRow(
            answer=row,
            signal_id=signal.pk if signal else None,
            chance=chance_in_words(chance) if chance else "a fact",
            q=q_in_words(signal.q) if signal and signal.q is not None else "",
        )
