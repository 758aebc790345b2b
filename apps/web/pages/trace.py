"""What the page of one trace needs: facts, answers, and a window of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from apps.engine.check import Answer
from apps.engine.trace import AgentInvocation, OrderSource, OutcomeKind
from apps.review.models import Signal
from apps.screening.models import Screening
from apps.screening.queries import answers_about
from apps.traces.models import Trace, Upload
from apps.traces.queries import (
    bodies_between,
    has_step_times,
    invocations_of,
    steps_of,
    trials_of,
)
from apps.traces.transitions import RawKept, UploadSource
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.agent_panel import AgentPanel, agent_panel
from apps.web.pages.replay_place import ReplayPlace, replay_of_trace
from apps.web.pages.scoring_state import ScoringState, trace_scoring
from apps.web.pages.steps import StepLine, duration_between, step_lines
from apps.web.pages.uploads import FORMAT_LABELS
from apps.web.words import chance_in_words, number_in_words

WINDOW = 100
MOST_TRIALS = 50
MOST_ANSWERS = 100
# A trace of more steps leaves only as its raw upload: no request loads a big one.
MAX_DOWNLOAD_STEPS = 5_000


class AnswerRow(msgspec.Struct, frozen=True):
    """One check's answer about this trace, with its signal if it is queued."""

    screening: Screening
    label: str
    chance: str
    reason: str
    signal_id: int | None


class TracePage(msgspec.Struct, frozen=True):
    """One trace."""

    place: Place
    trace: Trace
    usage_missing: int
    duration_ns: int | None
    order_text: str
    has_raw: bool
    invocations: list[AgentInvocation]
    answers: list[AnswerRow]
    not_applicable: list[AnswerRow]
    trials: list[Trace]
    steps: list[StepLine]
    first: int
    last: int
    window: str
    first_query: str
    next_query: str
    outcome_text: str
    format_label: str
    may_download: bool
    labels: list[tuple[str, Any]]
    metadata: list[tuple[str, Any]]
    panel: AgentPanel
    scoring: ScoringState
    replay: ReplayPlace | None


def answer_rows(place: Place, trace: Trace) -> list[AnswerRow]:
    """What the current keys of the checks say of a trace, signals first."""
    labels = place.lineup.labels
    signals = dict(Signal.objects.filter(trace=trace).values_list("screening_id", "pk"))
    return [
        AnswerRow(
            screening=screening,
            label=labels.get(screening.check_slug, screening.check_slug),
            chance=(
                chance_in_words(screening.evidence["chance"])
                if screening.evidence.get("chance")
                else ""
            ),
            reason=screening.evidence.get("reason", ""),
            signal_id=signals.get(screening.pk),
        )
        for screening in answers_about(trace.pk, lineup=place.lineup)[:MOST_ANSWERS]
    ]


def _is_not_applicable(row: AnswerRow) -> bool:
    return row.screening.answer == Answer.NOT_APPLICABLE


def first_of_window(query: Mapping[str, str], step_count: int) -> int:
    """The first step of the window: `from` or the window that holds `step` (from 1)."""
    asked = (whole(query.get("from", query.get("step", "1"))) or 1) - 1
    return min(asked, max(0, step_count - 1)) // WINDOW * WINDOW


def window_in_words(first: int, last: int, step_count: int) -> str:
    """`Steps 1 to 100 of 8 142`."""
    return (
        f"Steps {number_in_words(first + 1)} to {number_in_words(last + 1)} "
        f"of {number_in_words(step_count)}"
    )


def outcome_in_words(trace: Trace) -> str:
    """`pass`, `fail`, `score 3 of 5`, or that it is not recorded."""
    if trace.outcome == OutcomeKind.UNKNOWN:
        return "not recorded"
    if trace.outcome != OutcomeKind.SCORE:
        return trace.outcome
    of = (
        f" of {number_in_words(trace.outcome_out_of)}"
        if trace.outcome_out_of is not None
        else ""
    )
    return f"score {number_in_words(trace.outcome_score)}{of}"


def order_in_words(trace: Trace) -> str:
    """What the order of the steps rests on; a file's order may still have times."""
    if trace.order == OrderSource.TIME:
        return "by recorded start times"
    if has_step_times(trace.pk):
        return "by position in the file"
    return "by position in the file: no times are recorded"


def has_raw(upload: Upload) -> bool:
    """Whether the bytes of an upload can be had; live spans never were a file."""
    return upload.source != UploadSource.LIVE and upload.raw_kept != RawKept.GONE


def trace_page(place: Place, trace: Trace, query: Mapping[str, str]) -> TracePage:
    """The page of one trace, showing 100 steps of it."""
    first = first_of_window(query, trace.step_count)
    last = min(first + WINDOW, trace.step_count) - 1
    invocations = invocations_of(trace.pk)
    answers = answer_rows(place, trace)
    evidence = {
        step: ""
        for row in answers
        if row.signal_id is not None
        for step in row.screening.evidence.get("steps") or []
    }
    return TracePage(
        place=place,
        trace=trace,
        usage_missing=trace.model_call_count - trace.usage_known,
        duration_ns=duration_between(trace.start_ns, trace.end_ns),
        order_text=order_in_words(trace),
        has_raw=has_raw(trace.upload),
        invocations=invocations[:MOST_TRIALS],
        answers=[row for row in answers if not _is_not_applicable(row)],
        not_applicable=[row for row in answers if _is_not_applicable(row)],
        trials=list(trials_of(trace)[:MOST_TRIALS]),
        steps=step_lines(
            steps_of(trace.pk, first=first, last=last),
            invocations=invocations,
            bodies=bodies_between(trace.pk, first=first, last=last),
            evidence=evidence,
            is_replay=trace.is_replay,
        ),
        first=first,
        last=last,
        window=window_in_words(first, last, trace.step_count),
        first_query="?from=1" if first else "",
        next_query=f"?from={last + 2}" if last + 1 < trace.step_count else "",
        outcome_text=outcome_in_words(trace),
        may_download=trace.step_count <= MAX_DOWNLOAD_STEPS,
        format_label=FORMAT_LABELS.get(trace.format, trace.format),
        labels=sorted(trace.labels.items()),
        metadata=sorted(trace.metadata.items()),
        panel=agent_panel(trace),
        scoring=trace_scoring(trace, is_noted=getattr(trace, "is_noted", False)),
        replay=replay_of_trace(trace),
    )
