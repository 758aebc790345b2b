"""Whether more calls of one trace failed than those of other traces let expect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from apps.engine.nulls.association import hypergeometric_weights
from apps.engine.nulls.ranks import FEWEST_SAMPLES, at_least, thinned

MOST_EXACT_CALLS: Final = 1_000
"""Up to this many calls the tail of the errors is exact."""

_Table: TypeAlias = tuple[int, int, int, int]
"""Failed and all calls of the trace, failed and all calls of the baseline."""


class ErrorBaseline(msgspec.Struct, frozen=True):
    """How often calls failed in a set of traces: (failed, calls) by name.

    `scores` holds, ascending, by how many failures each trace of the set exceeds
    what the others let expect, for each of its calls.
    """

    counts: dict[str, tuple[int, int]]
    scores: tuple[float, ...]


class ToolErrors(msgspec.Struct, frozen=True):
    """The failures of one name beside the baseline, and the chance of as many."""

    name: str
    failed: int
    calls: int
    baseline_failed: int
    baseline_calls: int
    p: float


class ErrorShift(msgspec.Struct, frozen=True):
    """Whether more calls of one trace failed than those of a baseline.

    `expected` failures among its `calls` compared calls at the baseline's rates. `p`
    is the chance of as many or more by call, `by_trace` the share of traces that
    exceed by as much, this one counted, over `traces` (`None` without any). `tools`
    has a row for each name, the smallest chance first, not corrected for how many
    names there are. `without` names what the baseline does not have often enough.
    """

    failed: int
    calls: int
    expected: float
    p: float
    method: str
    traces: int
    by_trace: float | None
    tools: tuple[ToolErrors, ...]
    without: tuple[str, ...]


def error_baseline(
    traces: Iterable[Mapping[str, tuple[int, int]]],
) -> ErrorBaseline:
    """The baseline of traces, each given as (failed, calls) by name."""
    given = [dict(trace) for trace in traces]
    pool: dict[str, tuple[int, int]] = {}
    for trace in given:
        for name, (failed, calls) in trace.items():
            before = pool.get(name, (0, 0))
            pool[name] = (before[0] + failed, before[1] + calls)
    scores = [_excess_among_others(trace, pool) for trace in given]
    return ErrorBaseline(
        counts={name: pool[name] for name in sorted(pool)},
        scores=thinned(sorted(score for score in scores if score is not None)),
    )


def error_shift(
    baseline: ErrorBaseline, calls: Mapping[str, tuple[int, int]]
) -> ErrorShift | None:
    """How unusual the failures of one trace's calls, (failed, calls) by name, are.

    By call: given how many calls of each name failed in all, the failures of this
    trace are hypergeometric in each name (Fisher 1935); their sum over the names is
    exact up to 1,000 compared calls, beyond a normal approximation with continuity
    correction. One-sided: fewer failures are never unusual here. By trace: not exact,
    as each trace of the baseline is set against the others and this one against all of
    them. `None` where no name occurs at least 5 times in the baseline. Checked against
    scipy.
    """
    compared = {
        name: (*own, *baseline.counts[name])
        for name, own in sorted(calls.items())
        if own[1] and baseline.counts.get(name, (0, 0))[1] >= FEWEST_SAMPLES
    }
    if not compared:
        return None
    failed = sum(row[0] for row in compared.values())
    made = sum(row[1] for row in compared.values())
    expected = sum(row[1] * row[2] / row[3] for row in compared.values())
    is_exact = made <= MOST_EXACT_CALLS
    tables = list(compared.values())
    rows = [ToolErrors(n, *row, p=_tail([row])) for n, row in compared.items()]
    return ErrorShift(
        failed=failed,
        calls=made,
        expected=expected,
        p=_tail(tables),
        method="exact (sum of hypergeometric counts)"
        if is_exact
        else "normal approximation with continuity correction",
        traces=len(baseline.scores),
        by_trace=at_least(baseline.scores, (failed - expected) / made)
        if baseline.scores
        else None,
        tools=tuple(sorted(rows, key=lambda row: (row.p, row.name))),
        without=tuple(
            name
            for name, own in sorted(calls.items())
            if own[1] and name not in compared
        ),
    )


def _excess_among_others(
    trace: Mapping[str, tuple[int, int]], pool: Mapping[str, tuple[int, int]]
) -> float | None:
    """The score of a trace of the baseline, its own calls taken out of the pool."""
    excess, made = 0.0, 0
    for name, (failed, calls) in trace.items():
        others = pool[name][1] - calls
        if calls and others >= FEWEST_SAMPLES:
            excess += failed - calls * (pool[name][0] - failed) / others
            made += calls
    return excess / made if made else None


def _tail(tables: Sequence[_Table]) -> float:
    """The chance of as many failures in all, or more, given the margins of each."""
    observed = sum(table[0] for table in tables)
    if sum(table[1] for table in tables) > MOST_EXACT_CALLS:
        return _normal_tail(tables, observed)
    lowest, shares = 0, [1.0]
    for failed, calls, baseline_failed, baseline_calls in tables:
        row = calls
        column = failed + baseline_failed
        total = calls + baseline_calls
        weights = list(hypergeometric_weights(row=row, column=column, total=total))
        whole = math.fsum(weights)
        lowest += max(0, row + column - total)
        shares = _convolved(shares, [weight / whole for weight in weights])
    return min(1.0, math.fsum(shares[observed - lowest :]))


def _convolved(one: list[float], other: list[float]) -> list[float]:
    result = [0.0] * (len(one) + len(other) - 1)
    for i, share in enumerate(one):
        for j, more in enumerate(other):
            result[i + j] += share * more
    return result


def _normal_tail(tables: Sequence[_Table], observed: int) -> float:
    expected, variance = 0.0, 0.0
    for failed, calls, baseline_failed, baseline_calls in tables:
        total = calls + baseline_calls
        rate = (failed + baseline_failed) / total
        expected += calls * rate
        variance += calls * rate * (1 - rate) * baseline_calls / max(1, total - 1)
    if variance == 0:
        return 1.0
    return 0.5 * math.erfc((observed - 0.5 - expected) / math.sqrt(2 * variance))
