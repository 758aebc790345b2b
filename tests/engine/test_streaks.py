"""Failures in a row: against enumeration, a second count, simulation and its edges."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from itertools import combinations, groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.check import exact_chance
from apps.engine.nulls import STREAK_EXACT_UP_TO, streak_chance, streaks


def longest(order):
    return max((len(list(run)) for failed, run in groupby(order) if failed), default=0)


def enumerated(n, failures, length):
    orders = [
        [place in chosen for place in range(n)]
        for chosen in map(set, combinations(range(n), failures))
    ]
    return Fraction(sum(longest(order) >= length for order in orders), len(orders))


@pytest.mark.parametrize("n", range(1, 10))
def test_it_is_the_share_of_all_orders(n):
    for failures in range(n + 1):
        for length in range(1, n + 2):
            found = streak_chance(n, failures, length)
            assert found == enumerated(n, failures, length)


@pytest.mark.parametrize(
    ("n", "failures", "length", "chance"),
    [
        (5, 5, 3, Fraction(1)),
        (5, 2, 3, Fraction(0)),
        (5, 3, 3, Fraction(3, 10)),
        (10, 3, 3, Fraction(8, 120)),
        (19, 3, 3, Fraction(17, 969)),
        (0, 0, 1, Fraction(0)),
    ],
)
def test_small_cases_can_be_counted_by_hand(n, failures, length, chance):
    assert streak_chance(n, failures, length) == chance


def by_recurrence(n, failures, length):
    """Orders without a long streak, counted place by place."""
    ways = {(0, 0): 1}
    for _ in range(n):
        following: dict[tuple[int, int], int] = {}
        for (failed, run), number in ways.items():
            steps = [(failed, 0)]
            if run + 1 < length and failed < failures:
                steps.append((failed + 1, run + 1))
            for step in steps:
                following[step] = following.get(step, 0) + number
        ways = following
    without = sum(number for (failed, _), number in ways.items() if failed == failures)
    return 1 - Fraction(without, math.comb(n, failures))


@given(st.integers(1, 60), st.data())
@settings(max_examples=60, deadline=None)
def test_it_agrees_with_counting_place_by_place(n, data):
    failures = data.draw(st.integers(0, n))
    length = data.draw(st.integers(1, n))
    assert streak_chance(n, failures, length) == by_recurrence(n, failures, length)


@given(st.integers(2, 200), st.data())
@settings(max_examples=60, deadline=None)
def test_longer_streaks_are_rarer_and_more_failures_make_them_likelier(n, data):
    failures = data.draw(st.integers(1, n - 1))
    length = data.draw(st.integers(1, n))
    chance = streak_chance(n, failures, length)
    assert 0 <= chance <= 1
    assert streak_chance(n, failures, length + 1) <= chance
    assert streak_chance(n, failures + 1, length) >= chance


@pytest.mark.parametrize(
    ("n", "failures", "length"),
    [(1_001, 500, 9), (3_000, 40, 3), (5_000, 2_500, 20), (4_000, 3_900, 400)],
)
def test_beyond_the_bound_it_is_the_exact_count_rounded(n, failures, length):
    found = streak_chance(n, failures, length)
    exact = streaks._counted(n, failures, length)
    assert float(found) == pytest.approx(float(exact), rel=1e-14)
    assert n > STREAK_EXACT_UP_TO


def test_a_rounded_chance_shows_no_fraction():
    found = streak_chance(3_000, 40, 3)
    shown = exact_chance(found, model="m", assumptions="a", method="x", floor=found)
    assert shown.numerator is None
    exact = streak_chance(30, 4, 3)
    shown = exact_chance(exact, model="m", assumptions="a", method="x", floor=exact)
    assert Fraction(shown.numerator, shown.denominator) == exact


def test_a_streak_that_is_all_but_certain_has_chance_1():
    assert streak_chance(25_000, 12_500, 3) == 1
    assert float(streaks._counted(2_000, 1_500, 2)) == 1


def test_shuffled_failures_streak_as_often_as_it_says():
    source, order = random.Random(3), [True] * 12 + [False] * 28
    draws, hits = 20_000, 0
    for _ in range(draws):
        source.shuffle(order)
        hits += longest(order) >= 4
    chance = float(streak_chance(40, 12, 4))
    error = math.sqrt(chance * (1 - chance) / draws)
    assert abs(hits / draws - chance) < 4 * error


@pytest.mark.parametrize("case", [(5, 6, 1), (5, -1, 1), (5, 2, 0), (-1, 0, 1)])
def test_impossible_numbers_are_refused_in_a_sentence(case):
    with pytest.raises(ValueError, match="at least"):
        streak_chance(*case)


def test_the_longest_traces_stay_quick():
    began = time.process_time()
    for failures in (100, 5_000, 12_500, 24_000):
        for length in (3, 10, 100):
            streak_chance(25_000, failures, length)
    assert time.process_time() - began < 1
