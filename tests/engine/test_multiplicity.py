"""q-values against statsmodels, with tests that are not listed, and their properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from apps.engine.nulls import benjamini_hochberg

CHANCES = st.lists(st.floats(0, 1), min_size=1, max_size=60)


@given(CHANCES)
def test_it_agrees_with_statsmodels(chances):
    oracle = multipletests(chances, method="fdr_bh")[1]
    assert benjamini_hochberg(chances) == pytest.approx(oracle, abs=1e-12)


@given(CHANCES, st.integers(0, 100))
def test_tests_that_are_not_listed_count_as_chance_1(chances, others):
    oracle = multipletests([*chances, *[1.0] * others], method="fdr_bh")[1]
    found = benjamini_hochberg(chances, tests=len(chances) + others)
    assert found == pytest.approx(oracle[: len(chances)], abs=1e-12)


def test_it_gives_the_values_of_the_worked_example():
    # Benjamini and Hochberg 1995, section 3.2: four of the 15 are kept at 5 %.
    chances = (0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
               0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0)  # fmt: skip
    found = benjamini_hochberg(chances)
    assert sum(q <= 0.05 for q in found) == 4
    assert found[3] == pytest.approx(0.0095 * 15 / 4)


@given(CHANCES)
def test_a_q_is_no_smaller_than_its_chance_and_keeps_the_order(chances):
    found = benjamini_hochberg(chances)
    assert all(p <= q + 1e-12 and q <= 1 for p, q in zip(chances, found, strict=True))
    in_order = [q for _, q in sorted(zip(chances, found, strict=True))]
    assert in_order == sorted(in_order)


@given(CHANCES)
def test_it_answers_in_the_given_order(chances):
    pairs = dict(zip(chances, benjamini_hochberg(chances), strict=True))
    turned = benjamini_hochberg(tuple(reversed(chances)))
    assert turned == tuple(pairs[chance] for chance in reversed(chances))


def test_no_tests_have_no_q_values():
    assert benjamini_hochberg(()) == ()
    assert benjamini_hochberg((), tests=3) == ()


@pytest.mark.parametrize(
    ("chances", "tests"), [((0.5, 0.5), 1), ((1.5,), None), ((float("nan"),), None)]
)
def test_impossible_input_is_refused_in_a_sentence(chances, tests):
    with pytest.raises(ValueError, match=r"\.$"):
        benjamini_hochberg(chances, tests=tests)
