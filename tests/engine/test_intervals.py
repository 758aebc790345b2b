"""Intervals of rates against statsmodels and scipy, at their edges, and their coverage."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from statsmodels.stats.proportion import (
    confint_proportions_2indep,
    proportion_confint,
)

from apps.engine.nulls import binomial_at_least, clopper_pearson, newcombe, wilson

COUNTS = st.integers(1, 3_000).flatmap(
    lambda n: st.tuples(st.integers(0, n), st.just(n))
)
CONFIDENCES = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999])


@given(COUNTS, CONFIDENCES)
@settings(max_examples=200, deadline=None)
def test_wilson_agrees_with_statsmodels(counts, confidence):
    found = wilson(*counts, confidence=confidence)
    oracle = proportion_confint(*counts, alpha=1 - confidence, method="wilson")
    assert (found.low, found.high) == pytest.approx(oracle, abs=1e-12)


@given(COUNTS, CONFIDENCES)
@settings(max_examples=200, deadline=None)
def test_clopper_pearson_agrees_with_statsmodels(counts, confidence):
    found = clopper_pearson(*counts, confidence=confidence)
    oracle = proportion_confint(*counts, alpha=1 - confidence, method="beta")
    assert (found.low, found.high) == pytest.approx(oracle, abs=1e-10)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(3, 5, 0.23, 0.88), (5, 5, 0.57, 1.0), (10, 10, 0.72, 1.0), (0, 5, 0.0, 0.43)],
)
def test_wilson_gives_the_published_values(k, n, low, high):
    found = wilson(k, n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.005)
    assert found.method == "Wilson score"


def test_clopper_pearson_of_no_success_is_the_rule_of_three():
    found = clopper_pearson(0, 100, confidence=0.9)
    assert found.low == 0
    assert found.high == pytest.approx(1 - 0.05 ** (1 / 100), abs=1e-12)


def test_a_million_trials_keep_their_precision():
    found = clopper_pearson(400_123, 1_000_000)
    oracle = stats.binomtest(400_123, 1_000_000).proportion_ci()
    assert (found.low, found.high) == pytest.approx(tuple(oracle), abs=1e-9)


@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
def test_nothing_is_said_of_no_trials(interval):
    assert interval(0, 0) is None


@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
@pytest.mark.parametrize(
    ("k", "n", "confidence"), [(-1, 5, 0.9), (6, 5, 0.9), (1, 5, 1.0), (1, 5, 0.0)]
)
def test_impossible_counts_and_confidences_are_refused(interval, k, n, confidence):
    with pytest.raises(ValueError, match="must"):
        interval(k, n, confidence=confidence)


@given(COUNTS)
@settings(deadline=None)
def test_an_interval_holds_its_rate_and_mirrors_its_complement(counts):
    k, n = counts
    for interval in (wilson, clopper_pearson):
        found, mirrored = interval(k, n), interval(n - k, n)
        assert 0 <= found.low <= k / n <= found.high <= 1
        assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx(
            (found.low, found.high), abs=1e-12
        )


@given(COUNTS)
@settings(max_examples=50, deadline=None)
def test_more_confidence_never_makes_an_interval_narrower(counts):
    for interval in (wilson, clopper_pearson):
        inner, outer = interval(*counts, confidence=0.8), interval(*counts)
        assert outer.low <= inner.low
        assert inner.high <= outer.high


def coverage(interval, n, rate):
    held = 0.0
    for k in range(n + 1):
        found = interval(k, n)
        if found.low <= rate <= found.high:
            held += stats.binom.pmf(k, n, rate)
    return held


@pytest.mark.parametrize("n", [5, 20, 61])
def test_clopper_pearson_always_covers_and_wilson_covers_on_average(n):
    rates = [step / 50 for step in range(1, 50)]
    exact = [coverage(clopper_pearson, n, rate) for rate in rates]
    score = [coverage(wilson, n, rate) for rate in rates]
    assert min(exact) >= 0.95 - 1e-9
    assert sum(score) / len(score) == pytest.approx(0.95, abs=0.015)


@given(COUNTS, COUNTS)
@settings(max_examples=200, deadline=None)
def test_newcombe_agrees_with_statsmodels(first, second):
    found = newcombe(first, second)
    oracle = confint_proportions_2indep(
        *first, *second, compare="diff", method="newcomb"
    )
    assert (found.low, found.high) == pytest.approx(oracle, abs=1e-9)


def test_newcombe_gives_the_value_of_its_paper():
    # Newcombe 1998, table II, row (a) 56/70 against 48/80 by method 10.
    found = newcombe((56, 70), (48, 80))
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_newcombe_keeps_a_width_where_both_rates_are_zero():
    found = newcombe((0, 10), (0, 20))
    assert found.low < 0 < found.high
    assert newcombe((0, 0), (1, 2)) is None
    assert newcombe((1, 2), (0, 0)) is None


@given(COUNTS, st.floats(0.001, 0.999))
@settings(max_examples=200, deadline=None)
def test_the_binomial_tail_agrees_with_scipy(counts, rate):
    k, n = counts
    found = binomial_at_least(k, n, rate)
    assert found == pytest.approx(stats.binom.sf(k - 1, n, rate), rel=1e-8, abs=1e-14)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_the_binomial_tail_is_certain_at_the_ends(rate):
    assert binomial_at_least(0, 5, rate) == 1
    assert binomial_at_least(3, 5, rate) == rate
    with pytest.raises(ValueError, match="between 0 and 1"):
        binomial_at_least(1, 2, 1.5)


@pytest.mark.parametrize("a", [1, 2, 30, 4_000])
@pytest.mark.parametrize("b", [1, 7, 900])
@pytest.mark.parametrize("x", [1e-6, 0.01, 0.3, 0.82, 0.999])
def test_the_beta_function_behind_it_agrees_with_scipy(a, b, x):
    found = binomial_at_least(a, a + b - 1, x)
    assert found == pytest.approx(special.betainc(a, b, x), rel=1e-9, abs=1e-300)
