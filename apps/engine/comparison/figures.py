"""The figures of a trace, and what a comparison of two sets of them holds."""

from __future__ import annotations

from typing import Final

import msgspec

from apps.engine.nulls import Interval, PermutationTest

FEWEST_TRACES: Final = 2
"""With fewer known values on a side there is no difference to speak of."""


class TraceFigures(msgspec.Struct, frozen=True):
    """The figures of one trace. `None` is not recorded; a recorded zero is a zero.

    `latency_s` is the median duration of its model calls, `failed` of its `calls`
    (model and tool calls) ended with an error, and of `told` of them the end is
    recorded. Token counts are totals, `None` if any
    call of the trace misses its count. `tools` counts tool calls by name.
    """

    trace: int
    task: str | None = None
    passed: bool | None = None
    duration_s: float | None = None
    latency_s: float | None = None
    calls: int = 0
    told: int = 0
    failed: int = 0
    model_calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    tools: dict[str, int] = {}


class Side(msgspec.Struct, frozen=True):
    """One figure of one set: its value over `n` traces; `missing` others lack it."""

    value: float | None
    n: int
    missing: int


class Metric(msgspec.Struct, frozen=True):
    """One figure of both sets.

    `difference` is the second minus the first (a distance has no sign) over all
    traces that have the figure, `interval` its 95 % interval. `test` is the
    permutation test, within tasks where the comparison says so; its `observed` is
    then the mean difference within tasks. `q` is its p after Benjamini and Hochberg
    over all figures compared. All four are `None` where `too_few`.
    """

    slug: str
    label: str
    unit: str
    first: Side
    second: Side
    sentence: str
    difference: float | None = None
    interval: Interval | None = None
    test: PermutationTest | None = None
    q: float | None = None
    too_few: bool = False


class ToolShare(msgspec.Struct, frozen=True):
    """The calls of one tool in each set, and their share of all tool calls there."""

    name: str
    first: int
    second: int
    first_share: float | None
    second_share: float | None

    @property
    def change(self) -> float | None:
        """The share in the second set minus that in the first."""
        if self.first_share is None or self.second_share is None:
            return None
        return self.second_share - self.first_share


class Comparison(msgspec.Struct, frozen=True):
    """Everything that is compared between two sets of `first` and `second` traces.

    `within_tasks` says whether traces change sides only within one of the
    `shared_tasks` tasks, which holds where most traces of both sets belong to one.
    `tools` are in the order of the size of their change.
    """

    first: int
    second: int
    shared_tasks: int
    within_tasks: bool
    metrics: tuple[Metric, ...]
    tools: tuple[ToolShare, ...]
    notes: tuple[str, ...]
