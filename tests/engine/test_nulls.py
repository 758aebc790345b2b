"""Null models against brute force up to n = 8, against scipy, and against tables."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from apps.engine import nulls
from apps.engine.nulls import transitions

SMALL = st.lists(st.integers(1, 6), min_size=1, max_size=6)
NAMES = st.lists(st.sampled_from("abcd"), min_size=4, max_size=7)


def falls(values):
    return all(b <= a for a, b in pairwise(values))


def trend(values):
    n = len(values)
    pairs = [(values[i], values[j]) for i in range(n) for j in range(i + 1, n)]
    return sum((b > a) - (b < a) for a, b in pairs)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((784, 700, 646), Fraction(1, 6)),
        ((100, 95, 90, 85, 80), Fraction(1, 120)),
        ((100, 90, 80, 70, 60), Fraction(1, 120)),
        ((100, 100, 90, 80, 60), Fraction(1, 60)),
        ((100, 100, 100, 100, 60), Fraction(1, 5)),
        ((0, 0, 0, 0, 0), Fraction(1)),
        ((7,), Fraction(1)),
        ((), Fraction(1)),
    ],
)
def test_the_chance_of_a_falling_order_is_exact_and_ties_cost_evidence(
    values, expected
):
    assert nulls.falling_order(values) == expected


@given(SMALL)
@settings(max_examples=60, deadline=None)
def test_the_chance_of_a_falling_order_is_the_share_of_all_orders(values):
    orders = list(permutations(values))
    share = Fraction(sum(map(falls, orders)), len(orders))
    assert nulls.falling_order(values) == share


@pytest.mark.parametrize(
    "values",
    [(1, 2, 3, 4, 5, 6, 7, 8), (1, 1, 2, 2, 3, 3, 4, 4), (5, 5, 5, 5, 5, 1, 2, 3)],
)
def test_eight_values_agree_with_all_40_320_orders(values):
    orders = list(permutations(values))
    assert nulls.falling_order(values) == Fraction(sum(map(falls, orders)), 40_320)
    found = nulls.mann_kendall(tuple(reversed(values)))
    tail = sum(trend(order) <= found.s for order in orders)
    assert found.p == pytest.approx(tail / 40_320, abs=1e-12)


@pytest.mark.parametrize(
    ("n", "floor"), [(3, 0.1667), (4, 0.0417), (5, 0.0083), (6, 0.0014), (7, 0.0002)]
)
def test_the_smallest_attainable_chance_is_one_of_n_factorial(n, floor):
    assert float(nulls.falling_order_floor(n)) == pytest.approx(floor, abs=5e-5)


@pytest.mark.parametrize(
    ("values", "s", "p"),
    [
        ((784, 700, 646), -3, 0.1667),
        ((100, 90, 80, 70, 60), -10, 0.0083),
        ((100, 90, 95, 70, 60), -8, 0.0417),
        ((100, 100, 90, 80, 60), -9, 0.0167),
    ],
)
def test_mann_kendall_gives_the_published_values(values, s, p):
    found = nulls.mann_kendall(values)
    assert found.s == s
    assert found.p == pytest.approx(p, abs=5e-5)
    assert found.method == "exact"


@given(SMALL)
@settings(max_examples=60, deadline=None)
def test_mann_kendall_is_the_share_of_orders_with_ties_or_without(values):
    found = nulls.mann_kendall(values)
    orders = list(permutations(values))
    assert found.s == trend(values)
    tail = sum(trend(order) <= found.s for order in orders)
    assert found.p == pytest.approx(tail / len(orders), abs=1e-12)


@given(st.permutations(list(range(10))))
@settings(max_examples=40, deadline=None)
def test_mann_kendall_without_ties_agrees_with_exact_kendall_tau(values):
    oracle = stats.kendalltau(
        range(10), values, method="exact", alternative="less"
    ).pvalue
    assert nulls.mann_kendall(values).p == pytest.approx(oracle, abs=1e-12)


@given(st.lists(st.integers(0, 30), min_size=11, max_size=40))
@settings(max_examples=40, deadline=None)
def test_beyond_ten_values_it_is_the_corrected_normal_approximation(values):
    found = nulls.mann_kendall(values)
    n = len(values)
    ties = [values.count(v) for v in set(values)]
    spread = n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)
    if spread == 0:
        assert found.p == 1
        return
    z = (trend(values) + 1) / math.sqrt(spread / 18)
    assert found.p == pytest.approx(stats.norm.cdf(z), abs=1e-12)
    assert "normal" in found.method


@pytest.mark.parametrize(
    ("n", "share"),
    [(5, 0.0083), (8, 0.029), (13, 0.063), (20, 0.109), (30, 0.171), (50, 0.281)],
)
def test_searching_a_longer_sequence_for_any_run_raises_the_chance(n, share):
    assert nulls.any_falling_run(n) == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize(("n", "run"), list(product(range(2, 9), (2, 3, 5))))
def test_the_chance_of_any_run_is_the_share_of_all_orders(n, run):
    def has_run(order):
        return any(
            all(b < a for a, b in pairwise(order[i : i + run]))
            for i in range(n - run + 1)
        )

    share = sum(map(has_run, permutations(range(n)))) / math.factorial(n)
    assert nulls.any_falling_run(n, run) == pytest.approx(share, abs=1e-12)


def test_any_run_says_nothing_beyond_200_values_and_refuses_runs_of_one():
    assert nulls.any_falling_run(201) is None
    with pytest.raises(ValueError, match="at least 2"):
        nulls.any_falling_run(5, 1)


def falling_by_quadrature(longest, phi, points=1_201, limit=7.0):
    grid = np.linspace(-limit, limit, points)
    width = grid[1] - grid[0]
    spread = math.sqrt(1 - phi * phi)
    density = stats.norm.pdf(grid)
    kernel = stats.norm.pdf((grid[None, :] - phi * grid[:, None]) / spread) / spread
    falling = np.tril(kernel)
    falling[np.arange(points), np.arange(points)] *= 0.5
    found = {}
    for n in range(2, longest + 1):
        density = density @ falling * width
        found[n] = density.sum() * width
    return found


@pytest.mark.parametrize("phi", nulls.AUTOREGRESSION_PHIS)
def test_the_table_of_dependent_chances_is_what_quadrature_gives(phi):
    found = falling_by_quadrature(12, phi)
    for n in range(5, 13):
        table = nulls.sensitivity(n)[f"{phi:g}"]
        assert table == pytest.approx(found[n], rel=0.01)


@pytest.mark.parametrize(
    ("phi", "published"),
    [(0.0, 0.0084), (0.3, 0.015), (0.5, 0.024), (0.7, 0.035), (0.9, 0.052)],
)
def test_five_dependent_calls_fall_as_often_as_simulated(phi, published):
    share, error = nulls.falling_under_autoregression(5, phi, draws=40_000, seed=7)
    table = nulls.sensitivity(5)[f"{phi:g}"]
    assert abs(share - table) < 4 * error
    assert table == pytest.approx(published, abs=0.0015)
    again = nulls.falling_under_autoregression(5, phi, draws=40_000, seed=7)
    assert again == (share, error)


def test_dependence_is_silent_where_nothing_was_computed():
    assert nulls.sensitivity(4) == {}
    assert nulls.sensitivity(13) == {}
    with pytest.raises(ValueError, match="phi"):
        nulls.falling_under_autoregression(5, 1.0, draws=1, seed=0)


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=12))
def test_entropy_is_that_of_scipy(names):
    counts = [names.count(name) for name in set(names)]
    assert nulls.entropy(names) == pytest.approx(stats.entropy(counts), abs=1e-12)


def test_the_lattice_of_four_calls_has_nine_values_and_a_gap():
    expected = [0, 0.1308, 0.3466, 0.4774, 0.5623, 0.6931, 0.8240, 1.0397, 1.3863]
    assert [round(v, 4) for v in nulls.entropy_lattice(4)] == expected


def drops(names, width):
    return [
        nulls.entropy(order[:width]) - nulls.entropy(order[-width:])
        for order in permutations(names)
    ]


@given(NAMES, st.integers(2, 3))
@settings(max_examples=60, deadline=None)
def test_both_tails_of_drift_are_the_share_of_all_orders(names, width):
    width = min(width, len(names) // 2)
    found = nulls.drift_null(names, width)
    every = drops(names, width)
    observed = every[0]
    above = sum(drop >= observed - 1e-9 for drop in every)
    below = sum(drop <= observed + 1e-9 for drop in every)
    assert found.at_least(observed) == Fraction(above, len(every))
    assert found.at_most(observed) == Fraction(below, len(every))
    assert found.floors[0] == found.at_least(max(every))
    assert found.floors[1] == found.at_most(min(every))


@pytest.mark.parametrize("names", ["abcdeeee", "abccbbad", "aabbccdd"])
def test_eight_tool_calls_agree_with_all_40_320_orders(names):
    found = nulls.drift_null(names, 4)
    every = drops(names, 4)
    for bound in (0.3, 0.5, every[0]):
        share = Fraction(sum(drop >= bound - 1e-9 for drop in every), 40_320)
        assert found.at_least(bound) == share


@given(st.lists(st.sampled_from("abcdef"), min_size=8, max_size=40))
@settings(max_examples=50, deadline=None)
def test_every_difference_of_the_null_lies_on_the_lattice_and_ways_add_up(names):
    found = nulls.drift_null(names, 4)
    n = len(names)
    assert found.total == math.comb(n, 4) * math.comb(n - 4, 4)
    lattice = nulls.entropy_lattice(4)
    assert all(min(abs(abs(d) - v) for v in lattice) < 1e-9 for d in found.deltas)


def test_windows_that_overlap_or_are_too_wide_are_refused():
    with pytest.raises(ValueError, match="twice"):
        nulls.drift_null("abcdefg", 4)
    with pytest.raises(ValueError, match="1 to 6"):
        nulls.drift_null("a" * 20, 7)


def same_transitions(names):
    """Distinct orders with the same first call and the same transition counts."""

    def counts(order):
        return sorted(pairwise(order))

    kept = counts(names)
    return {
        order
        for order in permutations(names)
        if order[0] == names[0] and counts(order) == kept
    }


@given(NAMES)
@settings(max_examples=60, deadline=None)
def test_listing_orders_with_the_same_transitions_finds_each_once(names):
    codes = transitions._coded(names)
    found = [tuple(order) for order in transitions._all_orders(codes)]
    assert len(found) == len(set(found))
    assert set(found) == same_transitions(tuple(codes))


@given(NAMES)
@settings(max_examples=60, deadline=None)
def test_the_exact_transition_tail_is_the_share_of_those_orders(names):
    orders = same_transitions(tuple(names))

    def drop(order):
        return nulls.entropy(order[:2]) - nulls.entropy(order[-2:])

    tail = nulls.transition_tail(names, 2, seed=1)
    hits = sum(drop(order) >= drop(names) - 1e-9 for order in orders)
    assert (tail.hits, tail.orders) == (hits, len(orders))
    assert tail.standard_error is None


def test_drawn_orders_keep_the_transitions_and_are_uniform():
    codes = transitions._coded("abacabcab")
    orders = [tuple(order) for order in transitions._all_orders(codes)]
    source = random.Random(3)
    drawn = list(map(tuple, transitions._drawn_orders(codes, 6_000, source)))
    assert set(drawn) == set(orders)
    observed = [drawn.count(order) for order in orders]
    assert stats.chisquare(observed).pvalue > 0.001


def test_many_orders_are_sampled_with_an_error_and_a_seed():
    names = random.Random(5).choices("abcde", k=60)
    one = nulls.transition_tail(names, 4, seed=11)
    assert one == nulls.transition_tail(names, 4, seed=11)
    assert one.standard_error > 0
    assert one.p == (one.hits + 1) / (one.orders + 1)


def test_a_sampled_tail_agrees_with_the_exact_one(monkeypatch):
    names = "abcadbcaddbacabc"
    exact = nulls.transition_tail(names, 4, seed=1)
    monkeypatch.setattr(transitions, "MOST_VISITS", 5)
    drawn = nulls.transition_tail(names, 4, seed=1)
    assert exact.standard_error is None
    assert abs(drawn.p - exact.p) < 4 * drawn.standard_error + 0.01


def test_long_trajectories_stay_quick_and_the_longest_are_not_sampled():
    names = random.Random(2).choices("abcdefgh", k=2_000)
    started = time.process_time()
    assert nulls.transition_tail(names, 4, seed=1).orders == 50
    assert nulls.transition_tail(["a"] * 2_001, 4, seed=1) is None
    nulls.drift_null(random.Random(4).choices(range(40), k=5_000), 4)
    assert time.process_time() - started < 3
