"""How each figure is read from a trace, summed up over a set and drawn again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import fsum
from statistics import median
from typing import Final, TypeAlias

import msgspec

from apps.engine.comparison.figures import Side, ToolShare, TraceFigures
from apps.engine.nulls import Interval, Statistic, newcombe
from apps.engine.nulls.bootstrap import (
    Ratio,
    Redraw,
    bootstrap_difference,
    draws_for,
    redrawn_mean,
    redrawn_median,
    redrawn_ratio,
)


class Figure(msgspec.Struct, frozen=True):
    """One figure and how it is read from a trace: (part, whole), or `None` if missing.

    A rate adds up parts and wholes over the traces; for the others the whole is 1. One
    that `needs_ends` is missing in a set of which no call records how it ended: sources
    that mark failures alone are told from those that mark nothing by the whole set.
    """

    slug: str
    label: str
    unit: str
    statistic: Statistic
    read: Callable[[TraceFigures], tuple[float, int] | None]
    needs_ends: bool = False


def _number(value: float | None) -> tuple[float, int] | None:
    return None if value is None else (value, 1)


RATE: Final = "%"
FIGURES: Final = (
    Figure(
        "outcome", "Traces that passed", RATE, Statistic.RATE,
        lambda t: _number(t.passed),
    ),
    Figure(
        "duration", "Median duration of a trace", "s", Statistic.MEDIAN,
        lambda t: _number(t.duration_s),
    ),
    Figure(
        "latency", "Median latency of model calls", "s", Statistic.MEDIAN,
        lambda t: _number(t.latency_s),
    ),
    Figure(
        "errors", "Calls that failed", RATE, Statistic.RATE,
        lambda t: (t.failed, t.calls) if t.calls else None,
        needs_ends=True,
    ),
    Figure(
        "traces-with-errors", "Traces with a failed call", RATE, Statistic.RATE,
        lambda t: (t.failed > 0, 1) if t.calls else None,
        needs_ends=True,
    ),
    Figure(
        "input-tokens", "Mean input tokens of a trace", "tokens", Statistic.MEAN,
        lambda t: _number(t.input_tokens),
    ),
    Figure(
        "output-tokens", "Mean output tokens of a trace", "tokens", Statistic.MEAN,
        lambda t: _number(t.output_tokens),
    ),
    Figure(
        "model-calls", "Mean model calls of a trace", "calls", Statistic.MEAN,
        lambda t: _number(t.model_calls),
    ),
    Figure(
        "tool-calls", "Mean tool calls of a trace", "calls", Statistic.MEAN,
        lambda t: _number(sum(t.tools.values())),
    ),
)  # fmt: skip

Known: TypeAlias = list[tuple[TraceFigures, float, int]]
"""The traces that have a figure, with its part and its whole."""


def known_of(side: list[TraceFigures], figure: Figure) -> Known:
    """The traces of a set that have the figure."""
    if figure.needs_ends and not any(trace.told for trace in side):
        return []
    read = ((trace, figure.read(trace)) for trace in side)
    return [(trace, *value) for trace, value in read if value is not None]


def side_of(figure: Figure, known: Known, traces: int) -> Side:
    """The figure of one set of so many `traces`."""
    value = summed_up(figure, known) if known else None
    return Side(value=value, n=len(known), missing=traces - len(known))


def summed_up(figure: Figure, known: Known) -> float:
    """The figure over all of `known`, which holds at least one trace."""
    parts = [part for _, part, _ in known]
    if figure.statistic is Statistic.MEDIAN:
        return median(parts)
    return fsum(parts) / sum(whole for _, _, whole in known)


def interval_of(figure: Figure, one: Known, other: Known, seed: int) -> Interval | None:
    """Newcombe's where each trace is one trial, or where drawing again gives nothing new.

    In the second case the trials are calls, and its method says what that takes.
    """
    if figure.statistic is Statistic.RATE:
        counts = [(int(_parts(side)), _wholes(side)) for side in (one, other)]
        is_flat = any(k in {0, n} for k, n in counts)
        is_of_traces = all(
            n == len(side) for side, (_, n) in zip((one, other), counts, strict=True)
        )
        if is_flat or is_of_traces:
            interval = newcombe(counts[1], counts[0])
            return interval if is_of_traces else _of_calls(interval)
    return bootstrap_difference(
        _redraw(figure, one),
        _redraw(figure, other),
        draws=draws_for(len(one) + len(other)),
        seed=seed,
    )


def _of_calls(interval: Interval | None) -> Interval | None:
    if interval is None:
        return None
    method = f"{interval.method}, calls of one trace taken as independent: too narrow"
    return Interval(interval.low, interval.high, method)


def _parts(known: Known) -> float:
    return sum(part for _, part, _ in known)


def _wholes(known: Known) -> int:
    return sum(whole for _, _, whole in known)


def _redraw(figure: Figure, known: Known) -> Redraw:
    if figure.statistic is Statistic.RATE:
        return redrawn_ratio([Ratio(int(part), whole) for _, part, whole in known])
    parts = [part for _, part, _ in known]
    is_median = figure.statistic is Statistic.MEDIAN
    return redrawn_median(parts) if is_median else redrawn_mean(parts)


def tool_counts(side: list[TraceFigures]) -> Counter[str]:
    """The tool calls of a set by name."""
    counts: Counter[str] = Counter()
    for trace in side:
        counts.update(trace.tools)
    return counts


def tool_shares(
    first: list[TraceFigures], second: list[TraceFigures]
) -> tuple[ToolShare, ...]:
    """Every tool of either set, the largest change of its share first."""
    one, other = tool_counts(first), tool_counts(second)
    all_one, all_other = one.total(), other.total()
    rows = [
        ToolShare(
            name=name,
            first=one[name],
            second=other[name],
            first_share=one[name] / all_one if all_one else None,
            second_share=other[name] / all_other if all_other else None,
        )
        for name in one | other
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.change or 0), row.name)))
