"""The table of null models is complete, and its bootstrap is what scipy gives."""

from __future__ import annotations

import inspect
import random

import numpy as np
import pytest
from scipy import stats

from apps.engine import nulls
from apps.engine.nulls import NULL_MODELS
from apps.engine.nulls.bootstrap import (
    Ratio,
    bootstrap_difference,
    draws_for,
    redrawn_mean,
    redrawn_median,
    redrawn_ratio,
)

NOT_A_MODEL = {"never_rises"}
"""Says what was observed, not how likely it is."""


def test_every_function_of_the_module_is_in_the_table_once():
    public = {n for n in nulls.__all__ if inspect.isroutine(getattr(nulls, n))}
    named = [name for model in NULL_MODELS for name in model.functions]
    assert len(named) == len(set(named))
    assert set(named) == public - NOT_A_MODEL


@pytest.mark.parametrize("model", NULL_MODELS, ids=lambda model: model.name)
def test_every_row_says_what_it_assumes_and_where_it_is_from(model):
    for text in (model.assumptions, model.source, model.checked):
        assert len(text) > 10
        assert text.endswith(".")
    assert model.used
    assert len({one.name for one in NULL_MODELS}) == len(NULL_MODELS)


@pytest.mark.parametrize("name", nulls.__all__)
def test_everything_public_says_what_it_is(name):
    thing = getattr(nulls, name)
    if callable(thing):
        assert len(inspect.getdoc(thing)) > 40


SOURCE = random.Random(2)
FIRST = [SOURCE.lognormvariate(0, 1) for _ in range(40)]
SECOND = [SOURCE.lognormvariate(0.5, 1) for _ in range(61)]


@pytest.mark.parametrize(
    ("redrawn", "figure"), [(redrawn_mean, np.mean), (redrawn_median, np.median)]
)
def test_the_bootstrap_interval_agrees_with_scipy(redrawn, figure):
    found = bootstrap_difference(redrawn(FIRST), redrawn(SECOND), draws=8_000, seed=1)
    oracle = stats.bootstrap(
        (FIRST, SECOND),
        lambda one, other, axis: figure(other, axis=axis) - figure(one, axis=axis),
        n_resamples=8_000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    width = oracle.high - oracle.low
    assert found.low == pytest.approx(oracle.low, abs=0.05 * width)
    assert found.high == pytest.approx(oracle.high, abs=0.05 * width)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 10, 31])
def test_a_median_drawn_directly_is_the_median_of_drawn_values(size):
    values = FIRST[:size]
    redraw, source = redrawn_median(values), random.Random(4)
    direct = [redraw(source) for _ in range(6_000)]
    plain = [np.median(source.choices(values, k=size)) for _ in range(6_000)]
    levels = np.unique(np.concatenate([direct, plain]))
    one, other = (np.searchsorted(np.sort(x), levels, "right") for x in (direct, plain))
    # The distance of two empirical distributions of 6,000 draws, at chance 0.0001.
    assert np.abs(one - other).max() / 6_000 < 2.23 * (2 / 6_000) ** 0.5


def test_a_ratio_is_drawn_by_whole_traces():
    pairs = [Ratio(0, 10), Ratio(5, 10), Ratio(0, 30), Ratio(9, 9)]
    redraw, source = redrawn_ratio(pairs), random.Random(5)
    found = sorted(redraw(source) for _ in range(4_000))
    plain = []
    for _ in range(4_000):
        drawn = source.choices(pairs, k=4)
        plain.append(sum(r.part for r in drawn) / sum(r.whole for r in drawn))
    assert np.mean(found) == pytest.approx(np.mean(plain), abs=0.02)
    assert found[100] == pytest.approx(sorted(plain)[100], abs=0.05)


def test_the_same_seed_gives_the_same_interval_and_draws_are_bounded():
    one, again = (
        bootstrap_difference(
            redrawn_mean(FIRST), redrawn_mean(SECOND), draws=200, seed=9
        )
        for _ in range(2)
    )
    assert one == again
    assert one.low < one.high
    assert (draws_for(0), draws_for(1_000), draws_for(10**7)) == (1_000, 500, 200)
