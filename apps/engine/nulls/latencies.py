"""Whether the calls of one trace took unusually long beside those of other traces."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from random import Random
from typing import Final

import msgspec

from apps.engine.nulls.ranks import FEWEST_SAMPLES, at_least, at_most, middle, thinned

ENOUGH_HITS: Final = 20
"""As many draws as extreme as the recorded calls settle a p that is not small."""

_TOLERANCE: Final = 1e-9


class LatencyBaseline(msgspec.Struct, frozen=True):
    """How long calls took in a set of traces.

    `samples` holds the durations by name (a model, a tool) in seconds, ascending, at
    most 500 of each: beyond, evenly spaced ones in order of size, which keep the
    distribution. `medians` is over all of them. `scores` holds, ascending, how high
    the calls of each trace of the set rank among those of the others (0 to 1).
    """

    samples: dict[str, tuple[float, ...]]
    medians: dict[str, float]
    scores: tuple[float, ...]


class LatencyShift(msgspec.Struct, frozen=True):
    """Whether the calls of one trace rank high (slow) or low among a baseline.

    `percentile` is the mean rank of its `calls` compared calls among those with the
    same name, 0.5 where nothing differs. `ratio` is the median of duration to the
    baseline's median, `None` where those are 0. `p` is two-sided by call, with
    `standard_error`, `method`, `draws` and `floor` as for a permutation test; `by_trace`
    is the p by trace, over `traces` traces of the baseline, `None` without any, and
    `ranks_high` whether it is that of the slow side: a trace may lie above most calls
    of a baseline and still below most of its traces. `without` names what the baseline
    does not have often enough.
    """

    calls: int
    percentile: float
    ratio: float | None
    p: float
    standard_error: float
    method: str
    draws: int
    floor: float
    traces: int
    by_trace: float | None
    ranks_high: bool
    without: tuple[str, ...]


def latency_baseline(
    traces: Iterable[Mapping[str, Sequence[float]]],
) -> LatencyBaseline:
    """The baseline of traces, each given as the durations of its calls by name."""
    given = [dict(trace) for trace in traces]
    pool: dict[str, list[float]] = {}
    for trace in given:
        for name, durations in trace.items():
            pool.setdefault(name, []).extend(durations)
    for durations in pool.values():
        durations.sort()
    scores = [_score_among_others(trace, pool) for trace in given]
    return LatencyBaseline(
        samples={name: thinned(pool[name]) for name in sorted(pool) if pool[name]},
        medians={name: middle(pool[name]) for name in sorted(pool) if pool[name]},
        scores=thinned(sorted(score for score in scores if score is not None)),
    )


def latency_shift(
    baseline: LatencyBaseline,
    calls: Mapping[str, Sequence[float]],
    *,
    seed: int,
    draws: int = 2_000,
) -> LatencyShift | None:
    """How unusual the durations of one trace's calls, by name, are.

    By call: the rank sums within each name, added with the weights 1 / (N + 1) (van
    Elteren 1960), against random draws of as many ranks of each name, ties as mean
    ranks. Draws stop after 20 that are as extreme, which leaves p = hits / draws
    valid (Besag and Clifford 1991); otherwise p = (hits + 1) / (draws + 1). By trace:
    twice the smaller of the two shares of traces that rank as high or as low, this one
    counted. Not exact: each trace of the baseline is ranked among the others and this
    one among all of them, which in simulations came out no smaller than it should.
    `None` where no name occurs at least 5 times in the baseline. The same arguments
    give the same answer. Checked against scipy's rank tests.
    """
    strata, ratios = [], []
    own = {name: values for name, values in sorted(calls.items()) if values}
    for name, values in own.items():
        samples = baseline.samples.get(name, ())
        if len(samples) >= FEWEST_SAMPLES:
            strata.append(_stratum(samples, values))
            ratios.extend(_ratios(values, baseline.medians[name]))
    if not strata:
        return None
    p, error, made = _rank_test(strata, Random(seed), draws)  # noqa: S311
    score = _score_beside(baseline.samples, own)
    return LatencyShift(
        calls=sum(stratum.taken for stratum in strata),
        percentile=score,
        ratio=middle(sorted(ratios)) if ratios else None,
        p=p,
        standard_error=error,
        method=f"seeded Monte Carlo of rank sums within each name, {made:,} draws",
        draws=made,
        floor=1 / (draws + 1),
        traces=len(baseline.scores),
        by_trace=_both_ways(baseline.scores, score),
        ranks_high=at_least(baseline.scores, score) <= at_most(baseline.scores, score),
        without=tuple(
            name for name in own if len(baseline.samples.get(name, ())) < FEWEST_SAMPLES
        ),
    )


class _Stratum(msgspec.Struct, frozen=True):
    """All ranks of the calls of one name, from -1 to 1, and how many are the trace's."""

    ranks: list[float]
    taken: int
    observed: float


def _stratum(samples: Sequence[float], values: Sequence[float]) -> _Stratum:
    both = sorted(chain(samples, values))
    width = len(both) + 1
    if len(set(both)) == len(both):
        ranks = [2 * place / width - 1 for place in range(1, width)]
    else:
        ranks = [_mean_rank(both, value) for value in both]
    return _Stratum(
        ranks=ranks,
        taken=len(values),
        observed=math.fsum([_mean_rank(both, value) for value in values]),
    )


def _mean_rank(both: Sequence[float], value: float) -> float:
    """The rank from -1 to 1; equal values share the mean of their ranks."""
    return (_twice_below(both, value) + 1) / (len(both) + 1) - 1


def _rank_test(
    strata: list[_Stratum], source: Random, draws: int
) -> tuple[float, float, int]:
    observed = abs(math.fsum([one.observed for one in strata])) - _TOLERANCE
    hits = 0
    for made in range(1, draws + 1):
        drawn = sum([sum(source.sample(one.ranks, one.taken)) for one in strata])
        hits += abs(drawn) >= observed
        if hits == ENOUGH_HITS:
            p = hits / made
            return p, p * math.sqrt((1 - p) / hits), made
    p = (hits + 1) / (draws + 1)
    return p, math.sqrt(p * (1 - p) / draws), draws


def _score_beside(
    samples: Mapping[str, Sequence[float]], own: Mapping[str, Sequence[float]]
) -> float:
    """The mean share of the baseline below each call, a tie counted half."""
    total, count = 0.0, 0
    for name, values in own.items():
        ordered = samples.get(name, ())
        if len(ordered) >= FEWEST_SAMPLES:
            total += sum(_twice_below(ordered, v) for v in values) / (2 * len(ordered))
            count += len(values)
    return total / count


def _score_among_others(
    trace: Mapping[str, Sequence[float]], pool: Mapping[str, Sequence[float]]
) -> float | None:
    """The same of a trace of the baseline, its own calls taken out of the pool."""
    total, count = 0.0, 0
    for name, values in trace.items():
        others = len(pool[name]) - len(values)
        if values and others >= FEWEST_SAMPLES:
            inside = sorted(values)
            twice = sum(
                _twice_below(pool[name], v) - _twice_below(inside, v) for v in values
            )
            total += twice / (2 * others)
            count += len(values)
    return total / count if count else None


def _twice_below(ordered: Sequence[float], value: float) -> int:
    return bisect_left(ordered, value) + bisect_right(ordered, value)


def _both_ways(scores: Sequence[float], score: float) -> float | None:
    if not scores:
        return None
    return min(1.0, 2 * min(at_least(scores, score), at_most(scores, score)))


def _ratios(values: Sequence[float], median: float) -> list[float]:
    return [value / median for value in values] if median > 0 else []
