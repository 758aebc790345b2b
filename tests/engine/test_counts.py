"""How many of many tests fire: against enumeration, convolution and scipy."""

from __future__ import annotations

import json
import math
import time
from itertools import product

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from apps.engine.check import Answer
from apps.engine.checks.tool_drift import ToolDrift
from apps.engine.nulls import CountNull, count_null
from apps.engine.nulls.counts import EXACT_CHANCES, RESOLUTION
from tests.engine.traces import tools_trace

CHANCE = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 1 / 120, 0.5]))


def tails(chances):
    """P(k or more) for each k, by convolution in floats."""
    shares = np.array([1.0])
    for chance in chances:
        shares = np.convolve(shares, [1 - chance, chance])
    return shares[::-1].cumsum()[::-1]


def each(chances):
    return count_null([(chance, 1) for chance in chances])


@given(st.lists(CHANCE, max_size=8))
@settings(deadline=None)
def test_few_tests_agree_with_all_of_their_outcomes(chances):
    found = each(chances)
    for k in range(len(chances) + 2):
        share = math.fsum(
            math.prod(
                p if fires else 1 - p for p, fires in zip(chances, outcome, strict=True)
            )
            for outcome in product((0, 1), repeat=len(chances))
            if sum(outcome) >= k
        )
        assert found.at_least(k) == pytest.approx(share, abs=1e-12)


@given(st.lists(CHANCE, min_size=1, max_size=200))
@settings(max_examples=60, deadline=None)
def test_it_agrees_with_convolution_and_has_the_right_moments(chances):
    found, oracle = each(chances), tails(chances)
    assert [found.at_least(k) for k in range(len(chances) + 1)] == pytest.approx(
        list(oracle), abs=1e-12
    )
    assert found.expected == pytest.approx(sum(chances))
    assert found.variance == pytest.approx(sum(p * (1 - p) for p in chances))
    assert found.tests == len(chances)


@given(st.integers(1, 400), st.floats(0.001, 0.999))
@settings(max_examples=60, deadline=None)
def test_tests_alike_are_binomial_and_so_is_the_interval(number, chance):
    found = count_null([(chance, number)])
    oracle = stats.binom(number, chance)
    assert (found.low, found.high) == oracle.interval(0.95)
    for k in range(number + 1):
        assert found.at_least(k) == pytest.approx(oracle.sf(k - 1), abs=1e-12)


def test_it_agrees_with_the_poisson_binomial_of_scipy():
    chances = [0.01 * k for k in range(1, 60)]
    found, oracle = each(chances), stats.poisson_binom(chances)
    assert (found.low, found.high) == (oracle.ppf(0.025), oracle.ppf(0.975))
    for k in range(60):
        assert found.at_least(k) == pytest.approx(oracle.sf(k - 1), abs=1e-12)


def test_far_tails_keep_their_relative_precision():
    found = count_null([(1 / 120, 400)])
    for k in range(4, 15):
        exact = stats.binom.sf(k - 1, 400, 1 / 120)
        assert found.at_least(k) == pytest.approx(exact, rel=1e-9)


def test_a_tail_below_the_resolution_is_an_upper_bound_and_never_zero():
    found = count_null([(0.001, 50), (0.0, 10)])
    assert found.at_least(50) == RESOLUTION
    assert found.at_least(51) == 0
    assert (found.tests, found.possible) == (60, 50)


def test_the_smallest_count_of_certain_tests_is_certain():
    found = count_null([(1.0, 3), (0.5, 2), (0.0, 4)])
    assert found.at_least(3) == 1
    assert found.at_least(4) == pytest.approx(0.75)
    assert (found.low, found.high) == (3, 5)


def test_nothing_screened_gives_nothing_by_chance():
    found = count_null([])
    assert (found.expected, found.low, found.high, found.tests) == (0, 0, 0, 0)
    assert found.at_least(0) == 1
    assert found.at_least(1) == 0


def test_the_order_and_grouping_of_tests_do_not_matter():
    one = count_null([(0.1, 2), (0.3, 1), (0.1, 1)])
    assert one == count_null([(0.3, 1), (0.1, 3)])
    assert one == msgspec.json.decode(msgspec.json.encode(one), type=CountNull)


@pytest.mark.parametrize(
    ("chance", "number"), [(0.5, 20_000), (0.01, 1_000_000), (0.97, 200_000)]
)
def test_beyond_the_bound_the_normal_approximation_is_near_the_binomial(chance, number):
    found = count_null([(chance, number)])
    oracle = stats.binom(number, chance)
    assert "normal" in found.method
    assert (found.low, found.high) == pytest.approx(oracle.interval(0.95), abs=1)
    for z in (-3, -1, 0, 1, 2, 3):
        k = round(oracle.mean() + z * oracle.std())
        assert found.at_least(k) == pytest.approx(oracle.sf(k - 1), abs=1e-5)


def test_the_two_methods_agree_where_both_are_possible():
    exact = count_null([(0.2, 15_000)])
    close = count_null([(0.2, 15_700)])
    assert "exact" in exact.method
    assert "normal" in close.method
    scaled = (exact.high - exact.expected) / math.sqrt(exact.variance)
    other = (close.high - close.expected) / math.sqrt(close.variance)
    assert scaled == pytest.approx(other, abs=0.03)


@pytest.mark.parametrize("group", [(1.5, 1), (-0.1, 1), (0.5, -1), (float("nan"), 1)])
def test_impossible_chances_and_numbers_are_refused(group):
    with pytest.raises(ValueError, match="between 0 and 1"):
        count_null([group])


def test_the_bound_of_different_chances_stays_quick_and_exact():
    chances = [(i + 1) / (EXACT_CHANCES + 1) for i in range(EXACT_CHANCES)]
    began = time.process_time()
    found = each(chances)
    # 35 ms on an idle core; the test leaves room for a busy one.
    assert time.process_time() - began < 1
    assert found.method.startswith("exact")
    oracle = tails(chances)
    for k in range(2_300, 2_700, 7):
        assert found.at_least(k) == pytest.approx(oracle[k], rel=1e-9, abs=1e-15)
    assert "normal" in each([*chances, 0.123456]).method


def test_chance_gives_as_many_collapses_in_the_airline_file(shared_data):
    path = shared_data / "tau_bench_results" / "gpt-4o-airline.json"
    if not path.exists():
        pytest.skip("The tau-bench file lies outside of the repository and is absent.")
    answers = []
    for record in json.loads(path.read_text("utf-8")):
        names = [
            asked["function"]["name"]
            for message in record["traj"]
            if message["role"] == "assistant"
            for asked in message.get("tool_calls") or []
        ]
        answers.extend(ToolDrift().run(tools_trace(*names)))
    chances = [a.evidence.chance_of_signal for a in answers]
    found = each([chance for chance in chances if chance is not None])
    observed = sum(answer.answer is Answer.SIGNAL for answer in answers)
    assert (found.tests, observed) == (61, 22)
    assert found.expected / 61 == pytest.approx(0.316, abs=0.001)
    assert found.at_least(22) == pytest.approx(0.265, abs=0.005)
    assert found.low <= 22 <= found.high
