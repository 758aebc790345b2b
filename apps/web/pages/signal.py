"""What the review page of one signal needs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.conf import settings
from django.urls import reverse

from apps.accounts.permissions import Permission
from apps.engine.check import Check
from apps.engine.checks import versions_of
from apps.engine.nulls import Association
from apps.figures import sequence_figure
from apps.reports.chance_words import Q_MEANS, beside_chance, q_in_words
from apps.reports.second_looks import outcome_line, second_looks
from apps.reports.words import association
from apps.review.findings import RULE, Standing, standing_of
from apps.review.models import HistoryEntry, Signal
from apps.review.queries import (
    QueueFilter,
    check_precision,
    draft_of,
    history_of,
    neighbours,
)
from apps.review.transitions import (
    Act,
    DismissalReason,
    FailureKind,
    SignalState,
    Verdict,
)
from apps.screening.chance_counts import chance_count
from apps.screening.lineup import with_stored_parameters
from apps.screening.queries import counts_per_check, outcome_association
from apps.traces.queries import bodies_between, invocations_of, steps_of
from apps.web.access import Place
from apps.web.forms import DecisionForm
from apps.web.pages.agent_panel import AgentPanel, agent_panel
from apps.web.pages.queue import fields_of, query_of
from apps.web.pages.regression import KeepQuiet, keep_quiet_part
from apps.web.pages.scoring_state import ScoringState, trace_scoring
from apps.web.pages.signal_experiment import Experiment, experiment_of
from apps.web.pages.steps import StepLine, step_lines
from apps.web.pages.trace import window_in_words
from apps.web.words import number_in_words

MEANINGS = {
    Verdict.CONFIRM: "a real failure happened",
    Verdict.DISMISS: "nothing is wrong here",
    Verdict.NEEDS_EXPERIMENT: "only a replay can tell",
    Verdict.CANNOT_TELL: "the evidence is not enough",
}
AROUND = 12
MOST_STEPS = 200
MOST_VALUES = 400


class SeriesRow(msgspec.Struct, frozen=True):
    """One value of the evidence in the table twin of the chart."""

    position: int
    step: int
    label: str
    value: str


class SignalPage(msgspec.Struct, frozen=True):
    """The evidence, the decision panel, the steps around it, the history."""

    place: Place
    signal: Signal
    check: Check | None
    evidence: dict[str, Any]
    chance: dict[str, Any] | None
    usage_total: int | None
    figure: dict[str, Any] | None
    series_rows: list[SeriesRow]
    cut_words: str
    steps: list[StepLine]
    first_step: int
    agents: list[str]
    history: list[HistoryEntry]
    fired: int
    decided: int
    confirmed: int
    where: QueueFilter
    query: str
    fields: dict[str, str]
    previous_url: str
    next_url: str
    typed: dict[str, str]
    submission: str
    refusal: str
    is_mine: bool
    is_others: bool
    may_undo: bool
    claimed_until: datetime | None
    claim_seconds: int
    verdicts: list[tuple[str, str, str]]
    reasons: list[tuple[str, str]]
    failure_kinds: list[tuple[str, str]]
    suggested_reason: str
    window: str
    unit: str
    length_words: str
    has_labels: bool
    by_chance: str
    q: str
    standing: Standing
    standing_why: str
    keep_quiet: KeepQuiet | None
    second_looks: list[tuple[str, str]]
    parameters: str
    decision_note: str
    panel: AgentPanel
    scoring: ScoringState
    experiment: Experiment | None
    q_means: str = Q_MEANS
    finding_rule: str = RULE


def _check_of(place: Place, signal: Signal) -> Check | None:
    """The check as it was when it gave the signal; None if it is not here any more."""
    slug, version = signal.check_slug, signal.check_version
    entry = place.lineup.by_slug.get(slug)
    known = [*([entry.check] if entry else []), *versions_of(slug)]
    found = next((check for check in known if check.version == version), None)
    if found is None:
        return None
    parameters = signal.screening.evidence.get("parameters") or {}
    return with_stored_parameters(found, parameters)


def bounded(series: dict[str, Any] | None) -> tuple[dict[str, Any] | None, str]:
    """The series with 400 values at most, and a sentence about what is not shown."""
    if not series or len(series["values"]) <= MOST_VALUES:
        return series, ""
    half = MOST_VALUES // 2
    cut = {
        name: [*series[name][:half], *series[name][-half:]]
        for name in ("steps", "values", "labels")
        if series.get(name)
    }
    return {**series, **cut}, (
        f"The first and the last {half} of {number_in_words(len(series['values']))} "
        "values are shown; the evidence rests on all of them."
    )


def _rows(series: dict[str, Any] | None) -> list[SeriesRow]:
    if not series:
        return []
    labels = series.get("labels") or [None] * len(series["values"])
    return [
        SeriesRow(
            position=number + 1,
            step=step,
            label=label or "",
            value="not reported" if value is None else number_in_words(value),
        )
        for number, (step, value, label) in enumerate(
            zip(series["steps"], series["values"], labels, strict=False)
        )
    ]


def _window(steps: list[int], step_count: int) -> tuple[int, int]:
    """The steps to show: all evidence with some steps around it, 200 at most."""
    if not steps:
        return 0, min(step_count, 2 * AROUND) - 1
    first = max(0, min(steps) - AROUND)
    last = min(step_count - 1, max(steps) + AROUND)
    return first, min(last, first + MOST_STEPS - 1)


def _suggested(evidence: dict[str, Any]) -> str:
    """The dismissal reason that the evidence itself points at, never preselected."""
    finishes = (evidence.get("facts") or {}).get("finish_reasons") or {}
    if finishes.get("length"):
        return DismissalReason.CAPPED.value
    if evidence.get("usage_missing"):
        return DismissalReason.USAGE_MISSING.value
    return ""


def _length_words(evidence: dict[str, Any]) -> str:
    return "tool calls" if evidence.get("usage_known") is None else "model calls"


def _by_chance(place: Place, signal: Signal) -> str:
    for entry in counts_per_check(
        place.project, lineup=place.lineup, check_slug=signal.check_slug
    ):
        said = beside_chance(entry.signals, entry.applicable, chance_count(entry))
        return f"In this project: {said}."
    return ""


def _outcome_of_group(place: Place, signal: Signal) -> Association | None:
    """How the check goes with the outcome among the traces of the signal's upload."""
    answer = signal.screening
    return outcome_association(
        project=place.project,
        key=(answer.check_slug, answer.check_version, answer.parameters_hash),
        upload_id=signal.trace.upload_id,
    )


def _link(place: Place, signal_id: int | None, query: str) -> str:
    if signal_id is None:
        return ""
    return reverse("signal", args=[place.project.slug, signal_id]) + query


def _decision_note(history: list[HistoryEntry]) -> str:
    """What was noted with the last decision; late spans may have come after it."""
    decisions = [entry for entry in history if entry.act == Act.DECIDED]
    return decisions[-1].note if decisions else ""


def signal_page(
    place: Place,
    signal: Signal,
    where: QueueFilter,
    *,
    typed: Mapping[str, str] | None = None,
) -> SignalPage:
    """The review page of `signal` inside the view `where`; `typed` wins over drafts."""
    evidence: dict[str, Any] = signal.screening.evidence
    series = evidence.get("series")
    series, cut_words = bounded(series)
    rows = _rows(series)
    marked = dict.fromkeys(evidence.get("steps") or [], "")
    marked |= {row.step: row.value for row in rows}
    first, last = _window(sorted(marked), signal.trace.step_count)
    invocations = invocations_of(signal.trace_id)
    query = query_of(where)
    before, following = neighbours(
        project=place.project, where=where, signal=signal, user=place.user
    )
    fired, decided, confirmed = check_precision(
        project=place.project, lineup=place.lineup, check_slug=signal.check_slug
    ).get(signal.check_slug, (0, 0, 0))
    draft = draft_of(signal=signal, user=place.user)
    history = list(history_of(signal))
    group = _outcome_of_group(place, signal)
    standing = standing_of(signal, group)
    known, missing = evidence.get("usage_known"), evidence.get("usage_missing")
    is_claimed = signal.state == SignalState.CLAIMED
    is_mine = is_claimed and signal.claimed_by_id == place.user.pk
    return SignalPage(
        place=place,
        signal=signal,
        check=_check_of(place, signal),
        evidence=evidence,
        chance=evidence.get("chance"),
        usage_total=None if known is None else known + (missing or 0),
        figure=sequence_figure(series) if series else None,
        series_rows=rows,
        cut_words=cut_words,
        steps=step_lines(
            steps_of(signal.trace_id, first=first, last=last),
            invocations=invocations,
            bodies=bodies_between(signal.trace_id, first=first, last=last),
            evidence=marked,
        ),
        first_step=first,
        agents=sorted({i.agent for i in invocations if i.agent}),
        history=history,
        fired=fired,
        decided=decided,
        confirmed=confirmed,
        where=where,
        query=query,
        fields=fields_of(where),
        previous_url=_link(place, before, query),
        next_url=_link(place, following, query),
        typed=dict(typed or (draft.fields if draft else {})),
        submission=DecisionForm.new_submission(),
        refusal=place.refusal(Permission.REVIEW),
        is_mine=is_mine,
        is_others=is_claimed and not is_mine,
        may_undo=(
            signal.state == SignalState.DECIDED
            and signal.decided_by_id == place.user.pk
        ),
        claimed_until=signal.claimed_until,
        claim_seconds=settings.CLAIM_SECONDS,
        verdicts=[
            (value, label, MEANINGS[Verdict(value)]) for value, label in Verdict.choices
        ],
        reasons=list(DismissalReason.choices),
        failure_kinds=list(FailureKind.choices),
        suggested_reason=_suggested(evidence),
        window=window_in_words(first, last, signal.trace.step_count),
        unit=(series or {}).get("unit", ""),
        length_words=_length_words(evidence),
        has_labels=any(row.label for row in rows),
        by_chance=_by_chance(place, signal),
        q=q_in_words(signal.q) if signal.q is not None else "",
        standing=standing,
        standing_why=association(standing.association) if standing.association else "",
        keep_quiet=keep_quiet_part(place, signal),
        second_looks=[
            *second_looks(evidence.get("facts") or {}),
            outcome_line(group),
        ],
        parameters=msgspec.json.encode(evidence.get("parameters") or {}).decode(),
        decision_note=_decision_note(history),
        panel=agent_panel(signal.trace),
        scoring=trace_scoring(
            signal.trace, is_noted=getattr(signal, "is_noted", False)
        ),
        experiment=experiment_of(place, signal),
    )
