"""The signals of a report: their stored evidence, bounded and made visible."""

from __future__ import annotations

from typing import Any

import msgspec
from django.db.models import Q, QuerySet

from apps.reports.document import (
    MAX_HISTORY,
    ChancePart,
    EvidencePart,
    HistoryPart,
    SignalPart,
    TracePart,
    bounded_series,
)
from apps.reports.inert import one_line, visible
from apps.reports.words import GONE, number, utc
from apps.review.findings import Standing, standings_of
from apps.review.models import HistoryEntry, Signal
from apps.review.transitions import Act, SignalState
from apps.traces.models import Trace

_MAX_STEPS = 200
_MAX_ITEMS = 100
_MAX_DEPTH = 4
_MAX_FACT = 500
_TOLD = Q(act__in=[Act.DECIDED.value, Act.UNDONE.value]) | Q(
    act=Act.RESCREENED.value, state_after=SignalState.DECIDED.value
)
_NOBODY = {Act.RESCREENED.value: "the checks"}
_PLAIN_FIELDS = (
    "length",
    "first",
    "last",
    "ratio",
    "effect",
    "effect_bound",
    "usage_known",
    "usage_missing",
    "chance_of_signal",
)
_TEXT_FIELDS = ("agent", "model", "provider", "began", "ended", "order")


def signal_parts(signals: QuerySet[Signal]) -> tuple[SignalPart, ...]:
    """The parts of `signals` in their order: three queries, however many they are."""
    rows = list(
        signals.select_related(
            "screening", "trace", "trace__task", "trace__upload", "decided_by"
        )
    )
    standings = standings_of(rows)
    entries: dict[int, list[HistoryEntry]] = {}
    for entry in (
        HistoryEntry.objects.filter(_TOLD, signal_id__in=[row.pk for row in rows])
        .select_related("by")
        .order_by("signal_id", "base_version")
    ):
        entries.setdefault(entry.signal_id, []).append(entry)
    return tuple(
        _signal_part(row, entries.get(row.pk, []), standings[row.pk]) for row in rows
    )


def _signal_part(
    row: Signal, entries: list[HistoryEntry], standing: Standing
) -> SignalPart:
    screening = row.screening
    return SignalPart(
        id=row.pk,
        check=row.check_slug,
        check_version=row.check_version,
        headline=one_line(row.headline, limit=600),
        reason_code=screening.reason_code,
        level=screening.level,
        state=row.state,
        verdict=row.verdict,
        reason=row.reason,
        created_at=utc(row.created_at),
        input_hash=screening.input_hash,
        evidence=evidence_part(screening.evidence),
        trace=_trace_part(row.trace),
        history=tuple(_history_part(entry) for entry in entries[-MAX_HISTORY:]),
        history_left_out=max(0, len(entries) - MAX_HISTORY),
        q=row.q,
        standing=standing.kind,
        standing_words=one_line(standing.words),
    )


def _trace_part(trace: Trace) -> TracePart:
    return TracePart(
        id=trace.pk,
        name=one_line(trace.name),
        native_id=one_line(trace.native_id) if trace.native_id else None,
        content_hash=trace.content_hash,
        upload=one_line(trace.upload.name),
        upload_sha256=trace.upload.sha256,
        task=one_line(trace.task.key) if trace.task else None,
        trial=trace.trial,
        outcome=trace.outcome,
        outcome_words=_outcome_in_words(trace),
        outcome_source=one_line(trace.outcome_source),
    )


def _outcome_in_words(trace: Trace) -> str:
    words: str = trace.outcome
    if trace.outcome == "score":
        of = trace.outcome_out_of
        words = f"score {number(trace.outcome_score)}"
        words += f" of {number(of)}" if of is not None else ""
    if trace.outcome_label and trace.outcome_label != trace.outcome:
        words += f" (“{one_line(trace.outcome_label)}”)"
    return words


def _history_part(entry: HistoryEntry) -> HistoryPart:
    return HistoryPart(
        act=entry.act,
        at=utc(entry.at),
        by=one_line(entry.by.label) if entry.by else _NOBODY.get(entry.act, GONE),
        verdict=entry.verdict,
        reason=entry.reason,
        note=visible(entry.note),
        failure_kind=entry.failure_kind,
        where_agent=one_line(entry.where_agent),
        where_step=entry.where_step,
        evidence_hash=entry.evidence_hash,
    )


def evidence_part(stored: dict[str, Any]) -> EvidencePart:
    """The evidence card of stored evidence, every text bounded and visible."""
    texts: dict[str, Any] = {
        name: one_line(str(stored[name])) if stored.get(name) is not None else None
        for name in _TEXT_FIELDS
    }
    series = stored.get("series")
    return EvidencePart(
        scope=one_line(str(stored["scope"])),
        reason=one_line(str(stored.get("reason", "")), limit=1_500),
        chance=_chance_part(stored.get("chance")),
        series=bounded_series(_visible_series(series)) if series else None,
        steps=tuple(stored.get("steps", ()))[:_MAX_STEPS],
        not_modelled=tuple(one_line(t) for t in stored.get("not_modelled", ())),
        facts=_shown(stored.get("facts", {})),
        parameters=_shown(stored.get("parameters", {})),
        **texts,
        **{name: stored.get(name) for name in _PLAIN_FIELDS},
    )


def _chance_part(stored: dict[str, Any] | None) -> ChancePart | None:
    return msgspec.convert(stored, ChancePart) if stored else None


def _visible_series(series: dict[str, Any]) -> dict[str, Any]:
    labels = [
        one_line(label, limit=200) if isinstance(label, str) else None
        for label in series.get("labels") or []
    ]
    return {**series, "labels": labels, "unit": one_line(series["unit"], limit=80)}


def _shown(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return one_line(value, limit=_MAX_FACT)
    if depth >= _MAX_DEPTH and isinstance(value, dict | list):
        return "[deeper values are in the product]"
    if isinstance(value, dict):
        kept = list(value.items())[:_MAX_ITEMS]
        return {one_line(str(k), limit=80): _shown(v, depth + 1) for k, v in kept}
    if isinstance(value, list):
        shown = [_shown(item, depth + 1) for item in value[:_MAX_ITEMS]]
        left = len(value) - _MAX_ITEMS
        return [*shown, f"[{left} more]"] if left > 0 else shown
    return value
