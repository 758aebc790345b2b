"""The five operators against a brute-force oracle: every way the unknown may turn out."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.contracts import operators

known = st.sampled_from([True, False, None])
pairs = st.lists(st.tuples(known, known), max_size=6)


def worlds(values):
    """Every sequence of true and false that the unknown ones may stand for."""
    options = [[True, False] if value is None else [value] for value in values]
    return [list(world) for world in product(*options)]


def breaks_always(chosen, then):
    return [n for n, one in enumerate(chosen) if one and not then[n]]


def breaks_precedes(chosen, before):
    return [n for n, one in enumerate(chosen) if one and not any(before[:n])]


def sure(values, others, rule):
    """The places that break in every world, and those that break in some."""
    found = [
        set(rule(one, other)) for one in worlds(values) for other in worlds(others)
    ]
    return set.intersection(*found), set.union(*found)


@pytest.mark.parametrize(
    ("operator", "rule"),
    [(operators.always, breaks_always), (operators.precedes, breaks_precedes)],
)
@given(pairs)
def test_what_breaks_it_does_so_in_every_world_and_what_holds_in_none(
    operator, rule, drawn
):
    chosen, other = [one for one, _ in drawn], [two for _, two in drawn]
    tally = operator(chosen, other)
    certain, possible = sure(chosen, other, rule)
    assert set(tally.breaking) == certain
    assert possible - certain <= set(tally.undecided)
    assert not possible & set(tally.holding)
    assert all(chosen[place] is True for place in tally.holding)
    parts = [*tally.breaking, *tally.holding, *tally.undecided]
    assert len(parts) == len(set(parts))
    assert set(parts) == {n for n, one in enumerate(chosen) if one is not False}


@given(st.lists(known, max_size=9), st.integers(1, 4))
def test_counts_are_of_what_is_certainly_chosen(chosen, n):
    certain = [place for place, one in enumerate(chosen) if one is True]
    fewest = min(sum(world) for world in worlds(chosen))
    tally = operators.at_most(chosen, n)
    assert len(tally.breaking) == max(0, fewest - n)
    assert [*tally.holding, *tally.breaking] == certain
    assert list(operators.never(chosen).breaking) == certain
    assert list(operators.eventually(chosen).holding) == certain
    for found in (tally, operators.never(chosen), operators.eventually(chosen)):
        assert list(found.undecided) == [
            place for place, one in enumerate(chosen) if one is None
        ]
