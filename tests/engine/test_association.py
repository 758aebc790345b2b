"""Fisher's exact test against scipy, against the tea of its inventor, at its edges."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from apps.engine.nulls import association, fisher_exact

CELL = st.integers(0, 40)


@given(CELL, CELL, CELL, CELL)
@settings(max_examples=300, deadline=None)
def test_it_agrees_with_scipy_over_small_tables(a, b, c, d):
    expected = stats.fisher_exact([[a, b], [c, d]]).pvalue
    assert fisher_exact(a, b, c, d) == pytest.approx(expected, rel=1e-9)


def test_it_agrees_with_scipy_over_random_tables_of_all_sizes():
    draw = random.Random(7)
    for _ in range(200):
        top = 10 ** draw.randint(1, 4)
        a, b, c, d = (draw.randint(0, top) for _ in range(4))
        expected = stats.fisher_exact([[a, b], [c, d]]).pvalue
        found = fisher_exact(a, b, c, d)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-290)


def test_the_lady_who_tastes_tea_is_34_of_70():
    assert fisher_exact(3, 1, 1, 3) == pytest.approx(34 / 70)
    assert fisher_exact(4, 0, 0, 4) == pytest.approx(2 / 70)


def test_tables_as_likely_as_the_observed_count_on_both_sides():
    assert fisher_exact(5, 0, 0, 5) == pytest.approx(2 / 252)


def test_one_of_22_against_12_of_39_has_2_2_percent():
    assert fisher_exact(1, 21, 12, 27) == pytest.approx(0.022, abs=5e-4)


@pytest.mark.parametrize(
    "table", [(0, 0, 0, 0), (0, 0, 3, 4), (3, 4, 0, 0), (0, 3, 0, 4), (3, 0, 4, 0)]
)
def test_an_empty_margin_leaves_one_table_and_so_says_nothing(table):
    assert fisher_exact(*table) == 1.0


def test_a_count_below_zero_is_refused():
    with pytest.raises(ValueError, match="at least 0"):
        fisher_exact(1, -1, 2, 3)


def test_an_association_counts_its_table_and_has_a_p_where_no_margin_is_empty():
    found = association(fired=(1, 21), not_fired=(12, 27), tasks=25, without_task=0)
    assert (found.fired, found.fired_passed, found.traces) == (22, 1, 61)
    assert found.p == pytest.approx(0.022, abs=5e-4)
    assert (found.tasks, found.without_task) == (25, 0)
    silent = association(fired=(0, 0), not_fired=(12, 27), tasks=9, without_task=1)
    assert silent.p is None


def test_a_table_of_a_hundred_thousand_traces_takes_less_than_a_second():
    began = time.perf_counter()
    assert 0 < fisher_exact(25_000, 25_100, 24_900, 25_000) <= 1
    assert time.perf_counter() - began < 1
