"""What the pages of shadows need: the form with its history, and one result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from django.http import Http404

from apps.engine.check import Check
from apps.reports import words
from apps.reports.chance_words import beside_chance
from apps.review.shadow_results import (
    PAGE_SIZE,
    Change,
    Decided,
    Pair,
    ShadowResult,
    Side,
    changed_page,
    compare,
)
from apps.review.transitions import DismissalReason, Verdict
from apps.screening.answering import parameters_in_words
from apps.screening.lineup import with_stored_parameters
from apps.screening.models import Adoption, Screening, Shadow, ShadowState
from apps.screening.regression import Failure
from apps.screening.shadows import check_of, shadow_key, shadows_of, versions_here
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.line_up import (
    MOST_ADOPTIONS,
    AdoptionRow,
    LineUpPart,
    ShadowRow,
    adoption_rows,
    entry_or_404,
    line_up_part,
    shadow_row,
    shadow_rows,
)
from apps.web.pages.parameter_fields import ParameterField, fields_of

TITLES = {
    Change.APPEAR: ("Appear", "signals that only this variant gives"),
    Change.VANISH: ("Vanish", "signals that only the variant that counts now gives"),
    Change.PERSIST: ("Persist", "signals that both give"),
}


class ShadowsPage(msgspec.Struct, frozen=True):
    """The form that begins a shadow, the shadows so far, and the history of the check."""

    place: Place
    part: LineUpPart
    chosen: Check
    versions: list[tuple[int, bool]]
    fields: list[ParameterField]
    error: str
    shadows: list[ShadowRow]
    adoptions: list[AdoptionRow]
    failures: list[Failure]
    refused: str


class Said(msgspec.Struct, frozen=True):
    """What is wrong with what was typed, and what was typed."""

    typed: Mapping[str, str] = {}
    errors: Mapping[str, str] = {}
    error: str = ""
    failures: list[Failure] = []
    refused: str = ""


def version_of(place: Place, slug: str, typed: str) -> Check:
    """The version that an address or a form names; the one that counts otherwise."""
    entry = entry_or_404(place, slug)
    versions = versions_here(place.lineup, slug)
    if not versions:
        raise Http404
    number = whole(typed)
    found = (check for check in versions if check.version == number)
    return next(found, entry.check)


def shadows_page(
    place: Place, slug: str, *, version: str = "", said: Said | None = None
) -> ShadowsPage:
    """The page of the shadows of a check, or 404 for what is no check of Evalsite."""
    said = said or Said()
    chosen = version_of(place, slug, version)
    entry = entry_or_404(place, slug)
    return ShadowsPage(
        place=place,
        part=line_up_part(place, slug),
        chosen=chosen,
        versions=[
            (check.version, check.version == chosen.version)
            for check in versions_here(place.lineup, slug)
        ],
        fields=fields_of(
            chosen, current=entry.check, typed=said.typed, errors=said.errors
        ),
        error=said.error,
        shadows=shadow_rows(place, slug),
        adoptions=adoption_rows(place, entry, most=MOST_ADOPTIONS),
        failures=said.failures,
        refused=said.refused,
    )


def adopted_check(place: Place, slug: str, number: str) -> Check | None:
    """The check of an earlier adoption; None when it is not here (any more)."""
    row = Adoption.objects.filter(
        project=place.project, check_slug=slug, number=whole(number) or 0
    ).first()
    for check in versions_here(place.lineup, slug):
        if row is not None and check.version == row.check_version:
            return with_stored_parameters(check, row.parameters)
    return None


class ChangeTab(msgspec.Struct, frozen=True):
    """One kind of change: its signals in numbers and words."""

    key: str
    title: str
    means: str
    decided: Decided
    words: str
    is_current: bool


class ChangedRow(msgspec.Struct, frozen=True):
    """One signal that changes, with the decision that was taken on it."""

    answer: Screening
    decision: str
    signal_id: int | None
    note: str


class SideWords(msgspec.Struct, frozen=True):
    """One key in words: its signals beside chance, its precision."""

    title: str
    key: str
    side: Side
    by_chance: str
    precision: str


class Comparison(msgspec.Struct, frozen=True):
    """What a shadow would change, in numbers and words, and one page of the signals."""

    result: ShadowResult
    sides: list[SideWords]
    tabs: list[ChangeTab]
    rows: list[ChangedRow]
    next_query: str
    loss: str
    unanswered: str


class ShadowPage(msgspec.Struct, frozen=True):
    """One shadow: its progress, and what it would change once it has ended."""

    place: Place
    part: LineUpPart
    row: ShadowRow
    is_live: bool
    share: float
    sentence: str
    compared: Comparison | None
    seen: int
    may_adopt: bool
    failures: list[Failure]
    refused: str


def shadow_of(place: Place, slug: str, shadow_id: int) -> Shadow:
    """A shadow of this check in this project, or 404."""
    found = shadows_of(place.project.pk, slug).filter(pk=shadow_id).first()
    if found is None:
        raise Http404
    return found


def shadow_page(
    place: Place, shadow: Shadow, query: Mapping[str, Any], said: Said | None = None
) -> ShadowPage:
    """The page of one shadow. While it runs nothing is compared."""
    said = said or Said()
    entry = entry_or_404(place, shadow.check_slug)
    check = check_of(shadow, place.lineup)
    is_live = shadow.state == ShadowState.RUNNING
    counts = shadow_key(shadow) == entry.key
    part = line_up_part(place, shadow.check_slug)
    compared = None
    if check is not None and not is_live and not counts:
        compared = _comparison(Pair(place.project, entry.check, check), query)
    return ShadowPage(
        place=place,
        part=part,
        row=shadow_row(place, shadow),
        is_live=is_live,
        share=min(1.0, shadow.traces_done / max(1, shadow.traces_total)),
        sentence=_sentence(shadow, counts=counts),
        compared=compared,
        seen=part.adoptions[0].number if part.adoptions else 0,
        may_adopt=not counts and check is not None,
        failures=said.failures,
        refused=said.refused,
    )


def _sentence(shadow: Shadow, *, counts: bool) -> str:
    done = _traces(shadow.traces_done)
    if shadow.state == ShadowState.RUNNING:
        total = words.number(max(shadow.traces_done, shadow.traces_total))
        return f"{words.number(shadow.traces_done)} of {total} traces are answered."
    if shadow.state == ShadowState.FAILED:
        return shadow.failure
    if shadow.state == ShadowState.CANCELLED:
        return f"Cancelled after {done}. What it answered is compared below."
    if counts:
        return "This variant counts now: the queue shows its signals."
    return f"{done} answered. The queue was not touched."


def _traces(count: int) -> str:
    return f"{words.number(count)} {'trace' if count == 1 else 'traces'}"


def _comparison(pair: Pair, query: Mapping[str, Any]) -> Comparison:
    result = compare(pair)
    chosen = _chosen(result, str(query.get("show", "")))
    after = whole(str(query.get("after", ""))) or 0
    found = changed_page(pair, chosen, after=after)
    shown = found[:PAGE_SIZE]
    more = f"?show={chosen}&after={shown[-1].pk}" if len(found) > PAGE_SIZE else ""
    return Comparison(
        result=result,
        sides=[
            _side("Counts now", result.current),
            _side("This shadow", result.shadow),
        ],
        tabs=[
            _tab(change, result.changes[change], is_current=change is chosen)
            for change in Change
        ],
        rows=[_row(one) for one in shown],
        next_query=more,
        loss=_loss(result.changes[Change.VANISH]),
        unanswered=_unanswered(result.unanswered),
    )


def _chosen(result: ShadowResult, asked: str) -> Change:
    """The change that was asked for, else the first one that has signals."""
    if asked in set(Change):
        return Change(asked)
    there = [change for change in Change if result.changes[change].total]
    return there[0] if there else Change.APPEAR


def _side(title: str, side: Side) -> SideWords:
    decided = side.decided
    judged = decided.confirmed + decided.dismissals
    interval = decided.precision
    return SideWords(
        title=title,
        key=parameters_in_words(side.check),
        side=side,
        by_chance=beside_chance(
            side.queued + side.telemetry, side.applicable, side.chance
        ),
        precision=(
            f"{decided.confirmed} of {judged} confirmed "
            f"({words.percent(interval.low)} to {words.percent(interval.high)})"
            if interval
            else "no decisions yet"
        ),
    )


def _tab(change: Change, decided: Decided, *, is_current: bool) -> ChangeTab:
    title, means = TITLES[change]
    return ChangeTab(
        key=change.value,
        title=title,
        means=means,
        decided=decided,
        words=_decided_in_words(decided),
        is_current=is_current,
    )


def _decided_in_words(decided: Decided) -> str:
    parts = [f"{decided.confirmed} confirmed"] if decided.confirmed else []
    parts += [
        f"{number} dismissed as {DismissalReason(reason).label.lower()}"
        for reason, number in sorted(decided.dismissed.items())
    ]
    parts += [f"{decided.others} otherwise decided"] if decided.others else []
    return ", ".join(parts) or "none of them decided yet"


def _loss(vanishing: Decided) -> str:
    """What adopting takes out of the queue that people have confirmed."""
    if not vanishing.confirmed:
        return ""
    lost = f"{vanishing.confirmed} confirmed"
    signals = "signal" if vanishing.confirmed == 1 else "signals"
    return (
        f"You would lose {lost} {signals}: this variant is quiet where a reviewer found a "
        "real failure. The decisions stay in the history."
    )


def _unanswered(count: int) -> str:
    if not count:
        return ""
    return (
        f"{_traces(count)} came or changed since, or this shadow did not reach them; "
        "they are not compared. Adopting answers about them too."
    )


def _row(answer: Screening) -> ChangedRow:
    verdict: str | None = getattr(answer, "decided_verdict", None)
    reason: str | None = getattr(answer, "decided_reason", None)
    decision = Verdict(verdict).label.lower() if verdict else "not decided"
    if reason:
        decision += f": {DismissalReason(reason).label.lower()}"
    same = getattr(answer, "reads_the_same", True)
    return ChangedRow(
        answer=answer,
        decision=decision,
        signal_id=getattr(answer, "signal_there", None),
        note="" if same else "it reads something else than before",
    )
