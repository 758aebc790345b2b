"""The trials of a task as they are compared: by their decisions, or by texts on request.

Decisions come from stored points. Only the comparison of texts reads traces, and no
more of them than can be read while somebody waits.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from apps.engine.branching import (
    Branching,
    Compare,
    TrialPath,
    branching_of,
    has_uncertain_order,
    points_of,
    unpacked,
)
from apps.scoring.models import TraceScore
from apps.scoring.queries import MOST_TRIALS
from apps.traces.contents import packed_sizes, stored_contents
from apps.traces.models import Task, Trace
from apps.traces.storage import size_in_words

MOST_TEXT_TRIALS: Final = 20
MOST_TEXT_STEPS: Final = 2_000
MOST_TEXT_BYTES: Final = 8_000_000
_PASSED: Final = {"green": True, "red": False}


class ComparedTrial(msgspec.Struct, frozen=True):
    """A trial: `label` names it once among the trials, `pk` is that of its trace."""

    pk: int
    label: str
    outcome: str
    decision: str
    step_count: int


class Compared(msgspec.Struct, frozen=True):
    """The trials side by side; `total` is how many the task has.

    `said` are sentences about trials that are left out of this comparison.
    """

    branching: Branching
    trials: dict[str, ComparedTrial]
    total: int
    said: list[str]


def compared_trials(task: Task, compare: Compare) -> Compared:
    """The trials of the task by their decisions or by their texts."""
    total = Trace.everything.filter(task=task).count()
    rows = list(
        TraceScore.objects.filter(trace__task=task)
        .order_by("trace__trial", "trace_id")
        .values_list(
            "trace_id",
            "trace__trial",
            "trace__name",
            "outcome",
            "shown",
            "trace__step_count",
            "points",
            "is_order_uncertain",
            named=True,
        )[:MOST_TRIALS]
    )
    names = _unique(
        [
            row.trace__name if row.trace__trial is None else f"trial {row.trace__trial}"
            for row in rows
        ],
        [row.trace_id for row in rows],
    )
    trials = {
        name: ComparedTrial(
            row.trace_id, name, row.outcome, row.shown, row.trace__step_count
        )
        for name, row in zip(names, rows, strict=True)
    }
    said = _unscored(total, len(rows))
    if compare == "text":
        chosen = _readable(list(trials.values()), said)
        return Compared(_by_text(chosen), trials, total, said)
    branching = branching_of(
        [
            TrialPath(
                trial_id=name,
                points=unpacked(bytes(row.points)) if row.points else (),
                passed=_PASSED.get(row.outcome),
                order_uncertain=row.is_order_uncertain,
            )
            for name, row in zip(names, rows, strict=True)
        ]
    )
    return Compared(branching, trials, total, said)


def _unique(names: list[str], ids: list[int]) -> list[str]:
    """The names, with the id of the trace where two trials have one name."""
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name} (trace {pk})"
        for name, pk in zip(names, ids, strict=True)
    ]


def _unscored(total: int, scored: int) -> list[str]:
    if scored == MOST_TRIALS < total:
        return [f"The first {scored:,} of {total:,} trials are compared."]
    if scored < total:
        return [f"{total - scored:,} of {total:,} trials are not scored yet."]
    return []


def _readable(trials: list[ComparedTrial], said: list[str]) -> list[ComparedTrial]:
    """The trials whose texts are read; what is left out goes into `said`."""
    short = [one for one in trials if one.step_count <= MOST_TEXT_STEPS]
    if len(short) < len(trials):
        said.append(
            f"{len(trials) - len(short):,} trials of more than {MOST_TEXT_STEPS:,} "
            "steps are left out: their texts are too long to be compared here."
        )
    chosen = _within_bytes(short[:MOST_TEXT_TRIALS])
    if len(chosen) < len(short):
        said.append(
            f"Texts are compared for {len(chosen)} of {len(short):,} trials: for "
            f"{MOST_TEXT_TRIALS} at most, and for {size_in_words(MOST_TEXT_BYTES)} of "
            "packed texts."
        )
    return chosen


def _within_bytes(trials: list[ComparedTrial]) -> list[ComparedTrial]:
    """Those of the trials, in order, whose packed texts fit together."""
    sizes = packed_sizes([one.pk for one in trials])
    taken, total = [], 0
    for one in trials:
        if total + sizes[one.pk] <= MOST_TEXT_BYTES:
            taken.append(one)
            total += sizes[one.pk]
    return taken


def _by_text(trials: list[ComparedTrial]) -> Branching:
    rows = Trace.everything.select_related("task").in_bulk([one.pk for one in trials])
    by_pk = {one.pk: one for one in trials if one.pk in rows}
    paths = []
    for content in stored_contents([rows[pk] for pk in by_pk]):
        one, trace = by_pk[content.trace.pk], content.decoded()
        paths.append(
            TrialPath(
                trial_id=one.label,
                points=points_of(trace, compare="text"),
                passed=_PASSED.get(one.outcome),
                order_uncertain=has_uncertain_order(trace),
            )
        )
    return branching_of(paths)
