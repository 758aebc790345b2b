"""What the review queue needs: filters from the URL, rows, pages, empty states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.trace import OutcomeKind
from apps.figures import Sparkline, sparkline_of
from apps.reports.chance_words import (
    INTERVAL_MEANS,
    Q_MEANS,
    beside_chance,
    q_in_words,
)
from apps.review.findings import RULE, Standing, standings_of
from apps.review.models import Signal
from apps.review.queries import (
    ORDERS,
    PAGE_SIZE,
    QueueCounts,
    QueueFilter,
    after,
    counts,
    queue_signals,
    with_rows,
)
from apps.screening.chance_counts import chance_count
from apps.screening.lineup import LineUp
from apps.screening.queries import CheckCounts, counts_per_check
from apps.verdicts.queries import Beside, beside_signals
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.agent_panel import TrialsPart, trials_part
from apps.web.pages.scoring_state import ScoringState, scoring_state
from apps.web.pages.signal_experiment import experiment_words
from apps.web.words import chance_in_words, number_in_words

VIEWS = (
    ("open", "To review"),
    ("masked", "Masked"),
    ("mine", "Mine"),
    ("decided", "Decided"),
    ("all", "All"),
)
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]*")
_LONGEST_SLUG = 40
SORT_LABELS = {
    "masked": "Masked first, then rarest",
    "rarest": "Rarest by chance first",
    "largest": "Largest effect first",
    "newest": "Newest first",
    "oldest": "Oldest first",
}


def filter_from(query: Mapping[str, str]) -> QueueFilter:
    """The filter that a URL or form asks for; what it does not know it ignores."""

    def one_of(name: str, allowed: Mapping[str, Any] | set[str], default: str) -> str:
        value = query.get(name, default)
        return value if value in allowed else default

    return QueueFilter(
        view=one_of("view", {"open", "mine", "decided", "all"}, "open"),
        check=_slug_in(query.get("check", "")),
        agent=query.get("agent", "").replace("\x00", "")[:300],
        outcome=one_of("outcome", {kind.value for kind in OutcomeKind}, ""),
        usage=one_of("usage", {"missing", "complete"}, ""),
        upload=whole(query.get("upload", "")) or None,
        masked=query.get("masked", "") == "1",
        sort=one_of("sort", ORDERS, "masked"),
    )


def _slug_in(text: str) -> str:
    """A slug as it may stand in an address; a check of any project may be meant."""
    return text if len(text) <= _LONGEST_SLUG and _SLUG.fullmatch(text) else ""


def fields_of(where: QueueFilter) -> dict[str, str]:
    """The filter as form fields; defaults are left out."""
    default = QueueFilter()
    return {
        name: "1" if getattr(where, name) is True else str(getattr(where, name))
        for name in where.__struct_fields__
        if getattr(where, name) != getattr(default, name)
    }


def query_of(where: QueueFilter) -> str:
    """The filter as a query string with its question mark, or nothing."""
    fields = fields_of(where)
    return f"?{urlencode(fields)}" if fields else ""


def _report_query(where: QueueFilter) -> str:
    """The filter for the page of reports, whose view is `all` unless the query says."""
    fields = fields_of(msgspec.structs.replace(where, sort="masked"))
    return f"?{urlencode({'view': where.view, **fields})}"


class QueueRow(msgspec.Struct, frozen=True):
    """One signal in the queue. `q` is in words, `standing` says if it is a finding.

    `beside` is how its agent and its trace stand, `trials` how far the runs of its task
    agree; None where there is no task, or no score of it yet. `experiment` says if it
    is back from one, or how the newest batch of replays for it ended.
    """

    signal: Signal
    beside: Beside
    trials: TrialsPart | None
    check_label: str
    chance: str
    q: str
    standing: Standing
    evidence: dict[str, Any]
    sparkline: Sparkline | None
    usage_known: int | None
    usage_total: int | None
    experiment: str = ""


class ChanceLine(msgspec.Struct, frozen=True):
    """What one check gave beside what chance alone gives, as a sentence."""

    slug: str
    label: str
    sentence: str


class QueuePage(msgspec.Struct, frozen=True):
    """One page of one view, with everything its empty state needs to explain itself."""

    place: Place
    where: QueueFilter
    query: str
    fields: dict[str, str]
    views: list[tuple[str, str, str, int | None, bool]]
    rows: list[QueueRow]
    next_query: str
    counts: QueueCounts
    screened: int
    observed: int
    by_chance: list[ChanceLine]
    more_by_chance: list[ChanceLine]
    shown: str
    first_query: str
    report_query: str
    refusal: str
    scoring: ScoringState
    checks: list[tuple[str, str]]
    outcomes: list[str]
    sorts: dict[str, str]
    q_means: str = Q_MEANS
    interval_means: str = INTERVAL_MEANS
    finding_rule: str = RULE


def queue_row(
    signal: Signal, labels: Mapping[str, str], standing: Standing, beside: Beside
) -> QueueRow:
    """One row; the signal comes with its screening and trace."""
    evidence: dict[str, Any] = signal.screening.evidence
    known, missing = evidence.get("usage_known"), evidence.get("usage_missing")
    series = evidence.get("series")
    chance = evidence.get("chance")
    return QueueRow(
        signal=signal,
        beside=beside,
        trials=trials_part(beside.task) if beside.task else None,
        check_label=labels.get(signal.check_slug, signal.check_slug),
        chance=chance_in_words(chance) if chance else "",
        q=q_in_words(signal.q) if signal.q is not None else "",
        standing=standing,
        evidence=evidence,
        sparkline=sparkline_of(series) if series else None,
        usage_known=known,
        usage_total=None if known is None else known + (missing or 0),
    )


def _views(
    where: QueueFilter, numbers: QueueCounts
) -> list[tuple[str, str, str, int | None, bool]]:
    """The tabs: key, label, query, count, whether it is shown now.

    What is masked is a part of what is to be reviewed.
    """
    count = {
        "open": numbers.open + numbers.claimed,
        "masked": numbers.masked,
        "mine": numbers.mine,
        "decided": numbers.decided,
        "all": numbers.total,
    }
    current = "masked" if where.masked and where.view == "open" else where.view
    return [
        (key, label, query_of(_tab(where, key)) or "?", count[key], key == current)
        for key, label in VIEWS
    ]


def _tab(where: QueueFilter, key: str) -> QueueFilter:
    is_masked = key == "masked"
    view = "open" if is_masked else key
    return msgspec.structs.replace(where, view=view, masked=is_masked)


def _times(count: int, one: str, many: str) -> str:
    return f"{number_in_words(count)} {one if count == 1 else many}"


def chance_lines(
    checked: list[CheckCounts], lineup: LineUp, *, check: str = ""
) -> tuple[list[ChanceLine], list[ChanceLine]]:
    """For each check that applied: its signals beside what chance alone gives.

    First those of the chosen check, or of the checks with a null model that queued
    something; then those of the others.
    """
    first: list[ChanceLine] = []
    others: list[ChanceLine] = []
    for entry in checked:
        if not entry.applicable:
            continue
        count = chance_count(entry)
        said = beside_chance(entry.signals, entry.applicable, count)
        queued = f"; {number_in_words(entry.queued)} queued" if entry.queued else ""
        line = ChanceLine(entry.slug, lineup.labels[entry.slug], said + queued)
        is_first = entry.slug == check if check else bool(count and entry.queued)
        (first if is_first else others).append(line)
    return first, others


def _check_choices(lineup: LineUp, chosen: str) -> list[tuple[str, str]]:
    """The checks to filter by, with one that is of no line-up any more if it is asked."""
    choices = list(lineup.labels.items())
    if chosen and chosen not in lineup.labels:
        choices.append((chosen, chosen))
    return choices


def queue_page(place: Place, query: Mapping[str, str]) -> QueuePage:
    """One page of the view that the URL asks for (keyset: `after` is a signal's id)."""
    where = filter_from(query)
    signals = queue_signals(project=place.project, where=where, user=place.user)
    edge = whole(query.get("after", ""))
    if edge is not None:
        last = Signal.objects.filter(project=place.project, pk=edge).first()
        signals = after(signals, where=where, last=last) if last else signals
    found = list(with_rows(signals)[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    text = query_of(where)
    numbers = counts(project=place.project, user=place.user)
    checked = counts_per_check(place.project, lineup=place.lineup)
    standings = standings_of(shown)
    tried = {one.pk: experiment_words(one) for one in shown}
    beside = beside_signals(
        (one.pk, one.trace_id, one.agent, one.trace.task_id) for one in shown
    )
    first_lines, other_lines = chance_lines(checked, place.lineup, check=where.check)
    return QueuePage(
        place=place,
        where=where,
        query=text,
        fields=fields_of(where),
        views=_views(where, numbers),
        rows=[
            msgspec.structs.replace(
                queue_row(
                    signal, place.lineup.labels, standings[signal.pk], beside[signal.pk]
                ),
                experiment=tried[signal.pk],
            )
            for signal in shown
        ],
        next_query=(
            f"{text or '?'}{'&' if text else ''}after={shown[-1].pk}"
            if len(found) > PAGE_SIZE
            else ""
        ),
        counts=numbers,
        screened=sum(entry.screened for entry in checked),
        observed=sum(entry.signals for entry in checked),
        by_chance=first_lines,
        more_by_chance=other_lines,
        shown=_times(len(shown), "signal", "signals") + " shown",
        first_query=(text or "?") if edge is not None else "",
        report_query=_report_query(where),
        refusal=place.refusal(Permission.REVIEW),
        scoring=scoring_state(place.project.pk),
        checks=_check_choices(place.lineup, where.check),
        outcomes=[kind.value for kind in OutcomeKind],
        sorts=SORT_LABELS,
    )
