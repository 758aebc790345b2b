"""Regression cases of a project: each with what the key that counts says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from apps.accounts.permissions import Permission
from apps.review.models import Signal
from apps.review.transitions import DismissalReason, Verdict
from apps.screening.models import RegressionCase
from apps.screening.regression import case_of_signal, cases_of, said_of
from apps.traces.models import Trace
from apps.web.access import Place
from apps.web.numbers import whole

PAGE_SIZE = 25


class CaseRow(msgspec.Struct, frozen=True):
    """One case: whether the key that counts keeps quiet on it.

    `is_taken_back` when the dismissal that it rests on does not stand any more.
    """

    case: RegressionCase
    check_label: str
    reason: str
    state: str
    tone: str
    said: str
    is_retired: bool
    is_taken_back: bool


class RegressionPage(msgspec.Struct, frozen=True):
    """The cases of a project, oldest first, and who may do what with them."""

    place: Place
    rows: list[CaseRow]
    next_query: str
    refusal: str
    rename_refusal: str


def regression_page(place: Place, query: Mapping[str, Any]) -> RegressionPage:
    """The page of cases; those shown are run, unless it is known what they say."""
    after = whole(str(query.get("after", ""))) or 0
    found = list(
        cases_of(place.project.pk)
        .filter(pk__gt=after)
        .select_related("created_by", "trace")[: PAGE_SIZE + 1]
    )
    shown = found[:PAGE_SIZE]
    taken_back = set(
        Signal.objects.filter(
            project=place.project, pk__in=[case.signal_id for case in shown]
        )
        .exclude(verdict=Verdict.DISMISS)
        .values_list("pk", flat=True)
    )
    return RegressionPage(
        place=place,
        rows=[_row(place, case, taken_back) for case in shown],
        next_query=f"?after={shown[-1].pk}" if len(found) > PAGE_SIZE else "",
        refusal=place.refusal(Permission.MANAGE_CHECKS),
        rename_refusal=place.refusal(Permission.REVIEW),
    )


def _row(place: Place, case: RegressionCase, taken_back: set[int]) -> CaseRow:
    state, tone, said = _state(place, case)
    return CaseRow(
        case=case,
        check_label=place.lineup.labels.get(case.check_slug, case.check_slug),
        reason=DismissalReason(case.reason).label if case.reason else "",
        state=state,
        tone=tone,
        said=said,
        is_retired=case.retired_at is not None,
        is_taken_back=case.signal_id in taken_back,
    )


def _state(place: Place, case: RegressionCase) -> tuple[str, str, str]:
    """In a word, its tone, and what the key that counts says of the case."""
    if case.retired_at is not None:
        return "retired", "", ""
    entry = place.lineup.by_slug.get(case.check_slug)
    if entry is None:
        return "not run", "", "This check does not count in this project any more."
    said = said_of(case, entry.check)
    return ("fails", "amber", said) if said else ("quiet", "green", "")


class KeepQuiet(msgspec.Struct, frozen=True):
    """What the page of a dismissed signal offers: to make a case, or the case made."""

    case: RegressionCase | None
    name: str
    refusal: str


def keep_quiet_part(place: Place, signal: Signal) -> KeepQuiet | None:
    """The part of a signal's page; None for one that was not dismissed."""
    if signal.verdict != Verdict.DISMISS:
        return None
    return KeepQuiet(
        case=case_of_signal(project_id=place.project.pk, signal_id=signal.pk),
        name=default_name(place, signal),
        refusal=place.refusal(Permission.REVIEW),
    )


def default_name(place: Place, signal: Signal) -> str:
    """`Output-length decay on evening`: how a case is called until it is renamed."""
    label = place.lineup.labels.get(signal.check_slug, signal.check_slug)
    trace: Trace = signal.trace
    return f"{label} on {trace.name}"[:120]
