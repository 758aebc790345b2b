"""Calls of one trace beside a baseline: against scipy, enumeration and simulation."""

from __future__ import annotations

import math
import random
import time
from itertools import combinations, product

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from apps.engine.nulls.baselines import (
    FEWEST_SAMPLES,
    MOST_SAMPLES,
    LatencyBaseline,
    error_baseline,
    error_shift,
    latency_baseline,
    latency_shift,
)
from apps.engine.nulls.failures import MOST_EXACT_CALLS


def one_name(samples):
    return latency_baseline([{"m": samples}])


def test_the_ranks_of_one_name_agree_with_mann_and_whitney():
    samples, calls = [float(v) for v in range(30)], [25.5, 28.5, 29.5, 12.5]
    found = latency_shift(one_name(samples), {"m": calls}, seed=1, draws=20_000)
    oracle = stats.mannwhitneyu(calls, samples, method="exact")
    assert found.percentile == pytest.approx(oracle.statistic / (4 * 30))
    assert abs(found.p - oracle.pvalue) < 4 * found.standard_error


def test_ties_share_their_ranks_as_in_all_splits():
    samples, calls = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0], [3.0, 3.0, 5.0]
    both = samples + calls
    ranks = stats.rankdata(both)
    middle = 3 * (len(both) + 1) / 2
    observed = abs(sum(ranks[6:]) - middle)
    splits = [sum(ranks[list(s)]) - middle for s in combinations(range(9), 3)]
    share = sum(abs(v) >= observed - 1e-9 for v in splits) / len(splits)
    found = latency_shift(one_name(samples), {"m": calls}, seed=1, draws=50_000)
    assert abs(found.p - share) < 4 * found.standard_error


def test_the_ranks_of_two_names_are_added_with_van_elteren_weights():
    baseline = latency_baseline([{"m": [1, 2, 3, 4, 5], "n": [10, 20, 30, 40, 50, 60]}])
    calls = {"m": [4.5], "n": [55, 35]}
    strata = []
    for name, own in calls.items():
        ranks = stats.rankdata([*own, *baseline.samples[name]])
        middle = len(own) * (len(ranks) + 1) / 2
        strata.append(
            [
                (sum(ranks[list(s)]) - middle) / (len(ranks) + 1)
                for s in combinations(range(len(ranks)), len(own))
            ]
        )
    observed = abs(strata[0][0] + strata[1][0])
    every = [abs(sum(pair)) >= observed - 1e-9 for pair in product(*strata)]
    found = latency_shift(baseline, calls, seed=3, draws=50_000)
    assert abs(found.p - sum(every) / len(every)) < 4 * found.standard_error
    assert found.calls == 3


def trace_like(source, factor=1.0):
    return {
        "model": [source.lognormvariate(0, 0.5) * factor for _ in range(8)],
        "find": [source.lognormvariate(-1, 0.5) * factor for _ in range(7)],
    }


@pytest.fixture(scope="module")
def baseline():
    source = random.Random(1)
    return latency_baseline([trace_like(source) for _ in range(300)])


def test_slow_calls_are_rare_both_by_call_and_by_trace(baseline):
    slow = latency_shift(baseline, trace_like(random.Random(2), 3.0), seed=1)
    assert slow.p < 0.01
    assert slow.by_trace < 0.01
    assert slow.percentile > 0.7
    assert slow.ratio == pytest.approx(3.0, rel=0.4)
    fast = latency_shift(baseline, trace_like(random.Random(2), 1 / 3), seed=1)
    assert fast.p < 0.01
    assert fast.percentile < 0.3


def test_under_the_null_both_chances_are_as_rare_as_they_say(baseline):
    source = random.Random(9)
    found = [latency_shift(baseline, trace_like(source), seed=n) for n in range(300)]
    for level in (0.05, 0.3):
        # The baseline itself is one draw, so the room is that of both.
        room = 5 * math.sqrt(level * (1 - level) / 300)
        assert abs(sum(one.p <= level for one in found) / 300 - level) < room
        assert abs(sum(one.by_trace <= level for one in found) / 300 - level) < room


def test_traces_that_differ_among_one_another_are_rare_by_call_only():
    source = random.Random(5)

    def moody():
        return trace_like(source, source.lognormvariate(0, 1))

    baseline = latency_baseline([moody() for _ in range(200)])
    found = [latency_shift(baseline, moody(), seed=n) for n in range(200)]
    assert sum(one.p <= 0.05 for one in found) / 200 > 0.3
    assert sum(one.by_trace <= 0.05 for one in found) / 200 < 0.12


def test_what_the_baseline_hardly_has_is_compared_with_nothing():
    baseline = latency_baseline([{"m": [1.0] * FEWEST_SAMPLES, "n": [1.0]}])
    found = latency_shift(baseline, {"m": [2.0], "n": [2.0], "new": [2.0]}, seed=1)
    assert found.without == ("n", "new")
    assert found.calls == 1
    assert latency_shift(baseline, {"n": [2.0], "m": []}, seed=1) is None
    assert latency_shift(latency_baseline([]), {"m": [1.0]}, seed=1) is None


def test_a_baseline_of_one_trace_has_no_chance_by_trace_and_zeros_no_ratio():
    found = latency_shift(one_name([0.0] * 9), {"m": [0.0]}, seed=1)
    assert (found.by_trace, found.traces, found.ratio, found.p) == (None, 0, None, 1)


def test_a_baseline_is_bounded_and_keeps_the_distribution_and_its_order():
    durations = [float(v) for v in range(10_001)]
    shuffled = durations.copy()
    random.Random(1).shuffle(shuffled)
    found = one_name(durations)
    assert found == one_name(shuffled)
    kept = found.samples["m"]
    assert len(kept) == MOST_SAMPLES
    assert list(kept) == sorted(set(kept))
    assert kept[0] == pytest.approx(10, abs=2)
    assert kept[250] == pytest.approx(5_010, abs=2)
    assert found.medians["m"] == 5_000
    as_json = msgspec.json.encode(found)
    assert msgspec.json.decode(as_json, type=LatencyBaseline) == found


def test_the_order_of_traces_and_calls_does_not_matter():
    source = random.Random(3)
    traces = [trace_like(source) for _ in range(40)]
    one = latency_baseline(traces)
    turned = [
        {name: values[::-1] for name, values in reversed(list(trace.items()))}
        for trace in reversed(traces)
    ]
    other = latency_baseline(turned)
    assert other.samples == one.samples
    assert other.scores == pytest.approx(one.scores)


def test_draws_stop_early_where_nothing_is_unusual(baseline):
    usual = latency_shift(baseline, trace_like(random.Random(4)), seed=1)
    rare = latency_shift(baseline, trace_like(random.Random(4), 5.0), seed=1)
    assert usual.draws < 500
    assert rare.draws == 2_000
    assert rare.p == rare.floor


ROW = st.tuples(
    st.integers(0, 6), st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)
)


@given(ROW)
@settings(max_examples=150, deadline=None)
def test_the_errors_of_one_name_agree_with_fisher(row):
    failed, worked, before_failed, before_worked = row
    before = before_failed + before_worked
    baseline = error_baseline([{"t": (before_failed, before)}])
    found = error_shift(baseline, {"t": (failed, failed + worked)})
    if failed + worked == 0 or before < FEWEST_SAMPLES:
        assert found is None
        return
    table = [[failed, worked], [before_failed, before_worked]]
    oracle = stats.fisher_exact(table, alternative="greater").pvalue
    assert found.p == pytest.approx(oracle, rel=1e-9)
    assert found.tools[0].p == pytest.approx(oracle, rel=1e-9)


def test_the_errors_of_two_names_are_added_up():
    baseline = error_baseline([{"a": (2, 40), "b": (9, 30)}])
    found = error_shift(baseline, {"a": (2, 6), "b": (3, 5), "new": (1, 1)})
    first, second = stats.hypergeom(46, 4, 6), stats.hypergeom(35, 12, 5)
    share = sum(
        first.pmf(x) * second.pmf(y) for x in range(7) for y in range(6) if x + y >= 5
    )
    assert found.p == pytest.approx(share)
    assert (found.failed, found.calls, found.without) == (5, 11, ("new",))
    assert found.expected == pytest.approx(6 * 2 / 40 + 5 * 9 / 30)
    assert [row.name for row in found.tools] == ["a", "b"]
    assert found.tools[0].p == pytest.approx(first.sf(1))


def test_many_calls_use_the_normal_approximation_near_the_exact_tail():
    baseline = error_baseline([{"t": (500, 5_000)}])
    found = error_shift(baseline, {"t": (330, 3_000)})
    oracle = stats.hypergeom(8_000, 830, 3_000).sf(329)
    assert "normal" in found.method
    assert found.p == pytest.approx(oracle, rel=0.02)
    few = error_shift(baseline, {"t": (110, MOST_EXACT_CALLS)})
    assert "exact" in few.method
    oracle = stats.hypergeom(6_000, 610, MOST_EXACT_CALLS).sf(109)
    assert few.p == pytest.approx(oracle, rel=1e-9)


def test_a_name_that_never_failed_has_chance_1():
    baseline = error_baseline([{"t": (0, 50)}] * 3)
    found = error_shift(baseline, {"t": (0, 9)})
    assert (found.p, found.by_trace) == (1, 1)
    many = error_shift(baseline, {"t": (0, 2_000)})
    assert many.p == 1


def test_errors_that_come_in_bursts_are_rare_by_call_only():
    source = random.Random(7)

    def bursty():
        return {"t": (10 if source.random() < 0.2 else 0, 20)}

    baseline = error_baseline([bursty() for _ in range(300)])
    found = [error_shift(baseline, bursty()) for _ in range(200)]
    assert sum(one.p <= 0.05 for one in found) / 200 > 0.1
    assert min(one.by_trace for one in found) > 0.1


def test_a_trace_is_compared_quickly(baseline):
    source = random.Random(8)
    traces = [trace_like(source) for _ in range(100)]
    errors = error_baseline([{"t": (1, 20)}] * 200)
    began = time.process_time()
    for trace in traces:
        latency_shift(baseline, trace, seed=1)
        error_shift(errors, {"t": (3, 20)})
    # 1 ms and 0.05 ms each on an idle core.
    assert time.process_time() - began < 1.5
