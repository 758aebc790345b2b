"""How often dealing the outcomes at random makes a fork decisive."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.branching import branching_of, decisive_chance
from tests.benchmarks.planted_forks import path_of


def trials(*said):
    return [
        path_of(f"t{at}", text.split(), passed=passed)
        for at, (text, passed) in enumerate(said)
    ]


def asked_of_every_deal(made):
    """The same by hand: align again for every order of the outcomes."""
    outcomes = [one.passed for one in made]
    found = set(permutations(outcomes))
    hits = 0
    for deal in found:
        dealt = [
            path_of(one.trial_id, [point.label for point in one.points], passed=passed)
            for one, passed in zip(made, deal, strict=True)
        ]
        branching = branching_of(dealt)
        hits += any(fork.is_decisive for fork in branching.in_order)
    return hits, len(found)


def test_one_against_three_is_decisive_in_one_of_four_ways():
    made = trials(
        ("a b x y", False), ("a b x y", False), ("a b x y", False), ("a b p q", True)
    )
    found = decisive_chance(branching_of(made))
    assert (found.hits, found.deals, found.is_exact) == (1, 4, True)
    assert "in 1 of 4 ways" in found.sentence


def test_where_every_trial_goes_its_own_way_any_deal_is_decisive():
    made = trials(("a", True), ("b", False), ("c", False), ("d", False))
    found = decisive_chance(branching_of(made))
    assert found.hits == found.deals == 4


@pytest.mark.parametrize(
    "said",
    [
        (("a b", True), ("a b", False)),
        (("a b", True), ("a c", True)),
        (("a b", None), ("a c", None)),
        (("a b", True), ("a c", None)),
    ],
    ids=["no fork", "all passed", "none known", "one known"],
)
def test_where_no_deal_can_be_decisive_nothing_is_said(said):
    assert decisive_chance(branching_of(trials(*said))) is None


def test_many_ways_are_drawn_and_said_to_be():
    made = trials(*[(f"a {'x y' if at % 2 else 'p q'}", at < 10) for at in range(20)])
    found = decisive_chance(branching_of(made))
    assert (found.deals, found.is_exact) == (1_000, False)
    assert 0 < found.value < 0.1
    assert "random ways" in found.sentence


words = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(words, st.booleans()), min_size=2, max_size=5))
def test_it_is_the_share_of_deals_that_an_alignment_of_each_gives(said):
    made = trials(*said)
    found = decisive_chance(branching_of(made))
    hits, deals = asked_of_every_deal(made)
    if found is None:
        assert hits == 0
    else:
        assert found.hits / found.deals == pytest.approx(hits / deals)
