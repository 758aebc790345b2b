"""Two sets of traces side by side: the figures, their tests and what to say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import fsum
from typing import Any, Final, TypeAlias

import msgspec

from apps.engine.check import percent
from apps.engine.comparison.figures import (
    FEWEST_TRACES,
    Comparison,
    Metric,
    Side,
    TraceFigures,
)
from apps.engine.comparison.measures import (
    FIGURES,
    RATE,
    Figure,
    Known,
    interval_of,
    known_of,
    side_of,
    summed_up,
    tool_counts,
    tool_shares,
)
from apps.engine.comparison.sentences import sentence_of, too_few
from apps.engine.nulls import (
    PermutationTest,
    Sample,
    Statistic,
    benjamini_hochberg,
    permutation_test,
)

MOST_TOOLS: Final = 100
"""The tools beyond the most used ones are compared as one."""

OTHER_TOOLS: Final = "(other tools)"

_MOST_SPLITS: Final = 2_000
_FEWEST_SPLITS: Final = 200
_VALUES_SPLIT: Final = 2_000_000


def compare(
    first: Sequence[TraceFigures], second: Sequence[TraceFigures], *, seed: int
) -> Comparison:
    """All figures of two sets beside each other; the same arguments, the same answer.

    Where at least half of the traces of each set belong to tasks that both sets have,
    permutation tests move traces within those tasks only. Traces of one set may come
    in any order.
    """
    one = sorted(first, key=lambda trace: trace.trace)
    other = sorted(second, key=lambda trace: trace.trace)
    shared = _tasks(one) & _tasks(other)
    within = all(_is_mostly_of(side, shared) for side in (one, other))
    plan = _Plan(one, other, shared if within else None, seed)
    metrics = [*(_compared(plan, figure) for figure in FIGURES), _mix(plan)]
    return Comparison(
        first=len(one),
        second=len(other),
        shared_tasks=len(shared),
        within_tasks=within,
        metrics=_with_q(metrics),
        tools=tool_shares(one, other),
        notes=tuple(_notes(plan, len(shared))),
    )


class _Plan(msgspec.Struct, frozen=True):
    """The two sets, and the tasks within which traces change sides, if at all."""

    first: list[TraceFigures]
    second: list[TraceFigures]
    tasks: set[str] | None
    seed: int

    @property
    def words(self) -> str:
        return "" if self.tasks is None else "within shared tasks"

    def is_tested(self, trace: TraceFigures) -> bool:
        return self.tasks is None or trace.task in self.tasks

    def block_of(self, trace: TraceFigures) -> str | None:
        return None if self.tasks is None else trace.task


def _tasks(side: list[TraceFigures]) -> set[str]:
    return {trace.task for trace in side if trace.task is not None}


def _is_mostly_of(side: list[TraceFigures], tasks: set[str]) -> bool:
    inside = sum(trace.task in tasks for trace in side)
    return inside > 0 and 2 * inside >= len(side)


def _notes(plan: _Plan, shared: int) -> list[str]:
    if plan.tasks is not None:
        return [
            f"Traces change sides only within the {shared:,} tasks that both sets "
            "have, so that a harder task is no difference."
        ]
    return [
        "Most traces do not belong to tasks that both sets have: a difference may be "
        "one of the tasks."
    ]


def _compared(plan: _Plan, figure: Figure) -> Metric:
    one, other = known_of(plan.first, figure), known_of(plan.second, figure)
    metric = Metric(
        slug=figure.slug,
        label=figure.label,
        unit=figure.unit,
        first=side_of(figure, one, len(plan.first)),
        second=side_of(figure, other, len(plan.second)),
        sentence="",
    )
    if min(len(one), len(other)) < FEWEST_TRACES:
        return too_few(metric)
    found = msgspec.structs.replace(
        metric,
        difference=summed_up(figure, other) - summed_up(figure, one),
        interval=interval_of(figure, one, other, plan.seed),
        test=_test(plan, figure, one, other),
    )
    return msgspec.structs.replace(found, sentence=sentence_of(found, plan.words))


def _test(
    plan: _Plan, figure: Figure, one: Known, other: Known
) -> PermutationTest | None:
    first, second = (
        [
            (t, _values(figure, part, whole))
            for t, part, whole in side
            if plan.is_tested(t)
        ]
        for side in (one, other)
    )
    return _permuted(plan, figure.statistic, first, second)


def _values(figure: Figure, part: float, whole: int) -> Sequence[float]:
    if figure.statistic is not Statistic.RATE:
        return (part,)
    return [1] * int(part) + [0] * (whole - int(part))


_Valued: TypeAlias = Sequence[tuple[TraceFigures, Sequence[Any]]]


def _permuted(
    plan: _Plan, statistic: Statistic, first: _Valued, second: _Valued
) -> PermutationTest | None:
    if min(len(first), len(second)) < FEWEST_TRACES:
        return None
    one, other = _sample(plan, first), _sample(plan, second)
    values = len(one.values) + len(other.values)
    draws = max(_FEWEST_SPLITS, min(_MOST_SPLITS, _VALUES_SPLIT // values))
    return permutation_test(
        other, one, statistic=statistic, seed=plan.seed, draws=draws
    )


def _sample(plan: _Plan, valued: _Valued) -> Sample:
    return Sample(
        values=[value for _, values in valued for value in values],
        blocks=[plan.block_of(trace) for trace, values in valued for _ in values],
        clusters=[trace.trace for trace, values in valued for _ in values],
    )


def _mix(plan: _Plan) -> Metric:
    """How far apart the tool mixes are: the share of calls that would have to change."""
    kept = {
        name
        for name, _ in tool_counts(plan.first + plan.second).most_common(MOST_TOOLS)
    }
    one, other = (
        [
            (
                trace,
                [
                    name if name in kept else OTHER_TOOLS
                    for name in Counter(trace.tools).elements()
                ],
            )
            for trace in side
            if any(trace.tools.values())
        ]
        for side in (plan.first, plan.second)
    )
    metric = Metric(
        slug="tool-mix",
        label="Tool mix",
        unit=RATE,
        first=Side(value=None, n=len(one), missing=len(plan.first) - len(one)),
        second=Side(value=None, n=len(other), missing=len(plan.second) - len(other)),
        sentence="",
    )
    if min(len(one), len(other)) < FEWEST_TRACES:
        return too_few(metric)
    distance = 0.5 * fsum(
        abs(row.change or 0) for row in tool_shares(plan.first, plan.second)
    )
    tested = [
        [pair for pair in side if plan.is_tested(pair[0])] for side in (one, other)
    ]
    test = _permuted(plan, Statistic.VARIATION, *tested)
    within = f" {plan.words}" if plan.words else ""
    chance = f"; permutation p {percent(test.p)}{within}" if test else ""
    sentence = (
        f"Tool mix: {percent(distance)} of the tool calls would have to be of another "
        f"tool to make the mixes the same (n = {len(one):,} and {len(other):,} traces "
        f"with tool calls){chance}."
    )
    return msgspec.structs.replace(
        metric, difference=distance, test=test, sentence=sentence
    )


def _with_q(metrics: list[Metric]) -> tuple[Metric, ...]:
    chances = {m.slug: m.test.p for m in metrics if m.test is not None}
    q_values = benjamini_hochberg(tuple(chances.values()))
    q_of = dict(zip(chances, q_values, strict=True))
    return tuple(msgspec.structs.replace(m, q=q_of.get(m.slug)) for m in metrics)
