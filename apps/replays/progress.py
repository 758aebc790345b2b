"""How far a batch has come, and how long the rest may take."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
from django.db.models import (
    Aggregate,
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    Q,
)
from django.db.models.functions import Now

from apps.replays.models import Batch
from apps.replays.transitions import EXECUTED, BatchState, RunState


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a batch stands: runs by state, and what is spent and reserved.

    `remaining_seconds` is `None` where nothing says how long a run takes, and 0 for a
    batch that has ended.
    """

    state: BatchState
    counts: dict[RunState, int]
    remaining_seconds: int | None
    spent_calls: int
    spent_tokens: int
    spent_money: Decimal
    reserved_calls: int
    reserved_tokens: int
    reserved_money: Decimal
    is_money_known: bool

    @property
    def executed(self) -> int:
        """How many runs were executed to their end, well or not."""
        return sum(self.counts[state] for state in EXECUTED)

    @property
    def total(self) -> int:
        """How many runs the batch has."""
        return sum(self.counts.values())


class _Median(Aggregate):
    """The median of the values that are not NULL; PostgreSQL knows it under this name."""

    function = "percentile_cont"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


_BATCH = (
    "state",
    "concurrency",
    "spent_calls",
    "spent_tokens",
    "spent_money",
    "reserved_calls",
    "reserved_tokens",
    "reserved_money",
    "is_money_known",
)


def batch_progress(batch: Batch) -> Progress:
    """How far a batch has come at this moment. One query."""
    counts = {
        f"count_{state.value}": Count("run", filter=Q(run__state=state.value))
        for state in RunState
    }
    row = (
        Batch.objects.filter(pk=batch.pk)
        .annotate(
            **counts,
            median=_Median(
                F("run__finished_at") - F("run__started_at"),
                filter=Q(run__state__in=[one.value for one in EXECUTED]),
            ),
            pause=ExpressionWrapper(
                F("target_version__target__paused_until") - Now(),
                output_field=DurationField(),
            ),
            target_settings=F("target_version__settings"),
        )
        .values(*_BATCH, *counts, "median", "pause", "target_settings")
        .get()
    )
    by_state = {state: row[f"count_{state.value}"] for state in RunState}
    return Progress(
        **{name: row[name] for name in _BATCH[2:]},
        state=BatchState(row["state"]),
        counts=by_state,
        remaining_seconds=_remaining(row, by_state),
    )


def _remaining(row: dict[str, Any], counts: dict[RunState, int]) -> int | None:
    """The seconds that the rest may take: rounds of the usual run, or the rate of calls.

    Those at work are taken as half done. The longer of both counts, after a pause.
    """
    waiting, running = counts[RunState.WAITING], counts[RunState.RUNNING]
    if row["state"] != BatchState.RUNNING.value or not waiting + running:
        return 0
    usual: timedelta | None = row["median"]
    if usual is None:
        return None
    settings = row["target_settings"]
    lanes = max(1, min(row["concurrency"], settings.get("concurrency", 1)))
    seconds = (waiting + running / 2) * usual.total_seconds() / lanes
    pause: timedelta | None = row["pause"]
    waits = 0.0 if pause is None else max(0.0, pause.total_seconds())
    rest: float = waits + max(seconds, _at_rate(row, counts, settings))
    return math.ceil(rest)


def _at_rate(
    row: dict[str, Any], counts: dict[RunState, int], settings: dict[str, Any]
) -> float:
    """The seconds that the calls of the rest take at the rate of the target."""
    per_minute = settings.get("requests_per_minute") or 0
    executed = sum(counts[state] for state in EXECUTED)
    if not per_minute or not executed:
        return 0.0
    calls_each: float = row["spent_calls"] / executed
    return counts[RunState.WAITING] * calls_each * 60 / per_minute
