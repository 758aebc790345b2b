"""Cuts stand between the values, read well, and need no luck at the extremes."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.patterns.bins import cut_between, cuts_of, filled_cuts
from apps.engine.patterns.conditions import Condition, Kind


@pytest.mark.parametrize(
    ("low", "high", "cut"),
    [
        (0.3971, 0.4012, 0.4),
        (0.12345, 0.12346, 0.12346),
        (3, 4, 4),
        (9, 12, 10),
        (-0.02, 0.3, 0),
        (980, 1_130, 1_000),
        (-12, -9, -10),
    ],
)
def test_a_cut_is_the_shortest_number_between_two(low, high, cut):
    assert cut_between(low, high) == cut


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_a_cut_is_above_the_lower_and_not_above_the_higher(one, other):
    if one != other:
        low, high = sorted((one, other))
        assert low < cut_between(low, high) <= high


def test_shares_are_cut_at_tenths():
    values = [place / 997 for place in range(997)]
    expected = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert list(cuts_of(values).even)[:-1] == expected or (
        list(cuts_of(values).even) == expected
    )


def test_few_different_values_are_all_told_apart():
    assert cuts_of([3, 1, 1, 2, 7]).even == (2, 3, 7)
    assert cuts_of([5.0]).even == ()
    assert cuts_of([]).even == ()


def test_cuts_at_quantiles_make_bins_of_about_the_same_number():
    ranked = [place**2 / 7 for place in range(1_000)]
    cuts = filled_cuts(ranked, 10)
    assert len(cuts) == 9
    bounds = [-math.inf, *cuts, math.inf]
    sizes = [
        sum(low <= value < high for value in ranked) for low, high in pairwise(bounds)
    ]
    assert min(sizes) >= 80
    assert max(sizes) <= 120


@given(st.lists(st.floats(allow_nan=False), max_size=60))
def test_every_cut_parts_the_values(values):
    cuts = cuts_of(values)
    for cut in (*cuts.even, *cuts.filled):
        assert min(values) < cut <= max(values)


def _range(low, high, *, is_whole=False):
    return Condition(
        feature="calls", kind=Kind.RANGE, low=low, high=high, is_whole=is_whole
    ).words.removeprefix("number of tool calls is ")


def test_ranges_read_as_what_they_hold():
    assert _range(0.4, 0.5) == "0.4 to under 0.5"
    assert _range(None, 0.5) == "under 0.5"
    assert _range(1_000, None) == "1,000 or more"
    assert _range(3, 6, is_whole=True) == "3 to 5"
    assert _range(3, 4, is_whole=True) == "3"
    assert _range(None, 4, is_whole=True) == "at most 3"
    assert _range(4, None, is_whole=True) == "4 or more"


def test_long_names_and_values_are_cut_in_sentences():
    words = Condition(feature="input.a.b", kind=Kind.IS, value="x" * 500).words
    assert words.startswith("input a b is “xxx")
    assert len(words) < 90
