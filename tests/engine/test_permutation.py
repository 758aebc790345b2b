"""Permutation tests against enumeration, scipy, and their own promises."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from itertools import combinations, product
from statistics import fmean, median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from apps.engine.nulls import Sample, Statistic, permutation, permutation_test
from apps.engine.nulls.subsets import every_split, random_split

VALUES = st.lists(st.integers(-5, 5), min_size=1, max_size=5)
NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=5)


def means(one, other):
    return fmean(one) - fmean(other)


def medians(one, other):
    return median(one) - median(other)


def variation(one, other):
    names = {*one, *other}
    return 0.5 * sum(
        abs(one.count(n) / len(one) - other.count(n) / len(other)) for n in names
    )


def enumerated(first, second, statistic):
    both = [*first, *second]
    found = [
        statistic(
            [both[i] for i in chosen],
            [both[i] for i in range(len(both)) if i not in chosen],
        )
        for chosen in combinations(range(len(both)), len(first))
    ]
    observed = abs(statistic(first, second))
    return sum(abs(value) >= observed - 1e-9 for value in found) / len(found)


@pytest.mark.parametrize(
    ("statistic", "oracle"), [(Statistic.MEAN, means), (Statistic.MEDIAN, medians)]
)
@given(first=VALUES, second=VALUES)
@settings(max_examples=60, deadline=None)
def test_few_values_agree_with_all_splits(statistic, oracle, first, second):
    found = permutation_test(Sample(first), Sample(second), statistic=statistic, seed=1)
    assert found.observed == pytest.approx(oracle(first, second), abs=1e-9)
    assert found.p == pytest.approx(enumerated(first, second, oracle))
    assert found.standard_error is None
    assert found.draws == math.comb(len(first) + len(second), len(first))
    assert found.floor <= found.p


@given(NAMES, NAMES)
@settings(max_examples=60, deadline=None)
def test_few_names_agree_with_all_splits(first, second):
    found = permutation_test(
        Sample(first), Sample(second), statistic=Statistic.VARIATION, seed=1
    )
    assert found.observed == pytest.approx(variation(first, second))
    assert found.p == pytest.approx(enumerated(first, second, variation))


def test_a_rate_agrees_with_fisher_where_both_sides_are_equally_large():
    first, second = [1] * 9 + [0] * 3, [1] * 3 + [0] * 9
    found = permutation_test(
        Sample(first), Sample(second), statistic=Statistic.RATE, seed=5, draws=20_000
    )
    oracle = stats.fisher_exact([[9, 3], [3, 9]]).pvalue
    assert abs(found.p - oracle) < 4 * found.standard_error
    assert found.observed == pytest.approx(0.5)


@pytest.mark.parametrize("statistic", [Statistic.MEAN, Statistic.MEDIAN])
def test_drawn_splits_agree_with_scipy(statistic):
    source = random.Random(4)
    first = [source.gauss(0, 1) for _ in range(40)]
    second = [source.gauss(0.4, 1) for _ in range(40)]
    centre = np.mean if statistic is Statistic.MEAN else np.median
    found = permutation_test(
        Sample(first), Sample(second), statistic=statistic, seed=2, draws=10_000
    )
    oracle = stats.permutation_test(
        (first, second),
        lambda x, y, axis: np.abs(centre(x, axis=axis) - centre(y, axis=axis)),
        n_resamples=10_000,
        alternative="greater",
        rng=np.random.default_rng(1),
    )
    assert found.observed == pytest.approx(centre(first) - centre(second))
    assert abs(found.p - oracle.pvalue) < 6 * found.standard_error


def blocked(first, second, statistic):
    """All splits within blocks, each given as {block: values}."""
    names = sorted({*first, *second})

    def weighted(pairs):
        weights = [len(a) * len(b) / len(a + b) for a, b in pairs]
        parts = [
            w * statistic(a, b) for (a, b), w in zip(pairs, weights, strict=True) if w
        ]
        return sum(parts) / sum(weights)

    def splits(name):
        both = [*first.get(name, []), *second.get(name, [])]
        for chosen in combinations(range(len(both)), len(first.get(name, []))):
            rest = [both[i] for i in range(len(both)) if i not in chosen]
            yield [both[i] for i in chosen], rest

    observed = weighted([(first.get(n, []), second.get(n, [])) for n in names])
    found = [weighted(pairs) for pairs in product(*map(splits, names))]
    share = sum(abs(v) >= abs(observed) - 1e-9 for v in found) / len(found)
    return observed, share


def sample_of(blocks):
    pairs = [(value, name) for name, values in blocks.items() for value in values]
    return Sample([value for value, _ in pairs], blocks=[name for _, name in pairs])


@pytest.mark.parametrize(
    ("statistic", "oracle"), [(Statistic.MEAN, means), (Statistic.MEDIAN, medians)]
)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"x": [1, 5, 2], "y": [9]}, {"x": [4, 8], "y": [11, 14, 10]}),
        ({"x": [1, 2], "only": [50]}, {"x": [3, 7, 9]}),
        ({"x": [1], "y": [2], "z": [3]}, {"x": [2], "y": [4], "z": [1]}),
    ],
)
def test_values_change_sides_within_their_block_only(statistic, oracle, first, second):
    found = permutation_test(
        sample_of(first), sample_of(second), statistic=statistic, seed=1
    )
    observed, share = blocked(first, second, oracle)
    assert found.observed == pytest.approx(observed)
    assert found.p == pytest.approx(share)


def test_a_harder_task_is_no_difference_within_blocks():
    source = random.Random(8)
    easy, hard = (lambda: source.gauss(0, 1)), (lambda: source.gauss(20, 1))
    first = {"easy": [easy() for _ in range(30)], "hard": [hard() for _ in range(5)]}
    second = {"easy": [easy() for _ in range(5)], "hard": [hard() for _ in range(30)]}
    one, other = sample_of(first), sample_of(second)
    mixed = permutation_test(
        Sample(one.values), Sample(other.values), statistic=Statistic.MEAN, seed=1
    )
    within = permutation_test(one, other, statistic=Statistic.MEAN, seed=1)
    assert mixed.p == mixed.floor
    assert within.p > 0.05


def test_sides_without_a_common_block_say_nothing():
    found = permutation_test(
        Sample([1, 2], blocks=["x", "x"]),
        Sample([8, 9], blocks=["y", "y"]),
        statistic=Statistic.MEAN,
        seed=1,
    )
    assert (found.p, found.floor, found.draws) == (1, 1, 1)


def test_a_cluster_moves_as_a_whole():
    first = Sample([1, 2, 3, 4], clusters=["p", "p", "q", "q"])
    second = Sample([7, 8, 9], clusters=["r", "s", "s"])
    found = permutation_test(first, second, statistic=Statistic.MEAN, seed=1)
    groups = [[1, 2], [3, 4], [7], [8, 9]]
    values = []
    for chosen in combinations(range(4), 2):
        one = [v for i in chosen for v in groups[i]]
        rest = [v for i in range(4) if i not in chosen for v in groups[i]]
        values.append(means(one, rest))
    observed = means(first.values, second.values)
    assert found.observed == pytest.approx(observed)
    assert found.draws == 6
    assert found.p == sum(abs(v) >= abs(observed) - 1e-9 for v in values) / 6


@pytest.mark.parametrize("statistic", [Statistic.MEDIAN, Statistic.VARIATION])
def test_clusters_of_medians_and_mixes_move_as_a_whole_too(statistic):
    first = Sample([1, 1, 1, 1], clusters=[0, 0, 0, 0])
    second = Sample([2, 2, 2, 2], clusters=[1, 1, 1, 1])
    found = permutation_test(first, second, statistic=statistic, seed=1)
    assert (found.draws, found.p) == (2, 1)


def test_the_same_seed_gives_the_same_answer_and_another_one_nearly():
    source = random.Random(1)
    first = Sample([source.random() for _ in range(50)])
    second = Sample([source.random() + 0.1 for _ in range(60)])
    one, again, other = (
        permutation_test(first, second, statistic=Statistic.MEAN, seed=seed)
        for seed in (1, 1, 2)
    )
    assert one == again
    assert one != other
    assert abs(one.p - other.p) < 6 * one.standard_error


def test_a_drawn_p_is_never_zero_and_has_an_error():
    found = permutation_test(
        Sample([0.0] * 30), Sample([1.0] * 30), statistic=Statistic.MEAN, seed=1
    )
    assert found.p == found.floor == 1 / 2_001
    assert found.standard_error > 0


def test_under_the_null_small_chances_are_as_rare_as_they_say():
    source = random.Random(6)
    chances = []
    for seed in range(300):
        one, other = ([source.gauss(0, 1) for _ in range(9)] for _ in range(2))
        found = permutation_test(
            Sample(one), Sample(other), statistic=Statistic.MEAN, seed=seed, draws=199
        )
        chances.append(found.p)
    for level in (0.05, 0.2, 0.5):
        share = sum(p <= level for p in chances) / len(chances)
        assert abs(share - level) < 4 * math.sqrt(level * (1 - level) / 300)


def test_rounding_of_equal_values_makes_nothing_extreme():
    found = permutation_test(
        Sample([0.1] * 40), Sample([0.1] * 33), statistic=Statistic.MEAN, seed=1
    )
    assert found.p == 1


@pytest.mark.parametrize(
    ("first", "second", "statistic"),
    [
        (Sample([]), Sample([1]), Statistic.MEAN),
        (Sample([1]), Sample([]), Statistic.MEDIAN),
        (Sample([0.5]), Sample([1]), Statistic.RATE),
        (Sample([1, 2], blocks=["x"]), Sample([1]), Statistic.MEAN),
        (Sample([1, 2], clusters=["x"]), Sample([1]), Statistic.MEAN),
    ],
)
def test_impossible_samples_are_refused_in_a_sentence(first, second, statistic):
    with pytest.raises(ValueError, match=r"\.$"):
        permutation_test(first, second, statistic=statistic, seed=1)


@pytest.mark.parametrize(("size", "taken"), [(6, 3), (8, 2), (9, 6), (7, 4)])
def test_random_splits_are_uniform_over_all_of_them(size, taken):
    source = random.Random(11)
    every = list(every_split(size, taken))
    assert len(set(every)) == math.comb(size, taken)
    drawn = Counter(random_split(size, taken, source) for _ in range(20_000))
    assert set(drawn) == set(every)
    assert stats.chisquare([drawn[split] for split in every]).pvalue > 0.001


@pytest.mark.parametrize(
    ("size", "taken"), [(2_000, 1_000), (500, 90), (500, 410), (300, 4), (5, 0), (5, 5)]
)
def test_large_splits_take_the_right_number_and_every_place_alike(size, taken):
    source = random.Random(2)
    counts = np.zeros(size)
    for _ in range(400):
        split = random_split(size, taken, source)
        assert (len(split), sum(split)) == (size, taken)
        counts += np.frombuffer(split, dtype=np.uint8)
    expected, spread = 400 * taken / size, taken * (size - taken) / size**2 * 400
    assert np.abs(counts - expected).max() <= 5 * math.sqrt(spread)


def test_a_thousand_values_a_side_stay_quick():
    source = random.Random(3)
    one, other = ([source.random() for _ in range(1_000)] for _ in range(2))
    began = time.process_time()
    for statistic in (Statistic.MEAN, Statistic.MEDIAN):
        permutation_test(Sample(one), Sample(other), statistic=statistic, seed=1)
    # 0.1 s and 0.35 s on an idle core.
    assert time.process_time() - began < 3
    assert permutation.EXACT_SPLITS >= 2_000


def clustered(traces: int, calls: int, failing: int = 0) -> Sample:
    """Traces of as many calls each; the first call of the first ones failed."""
    values, clusters = [], []
    for trace in range(traces):
        for place in range(calls):
            values.append(int(trace < failing and place == 0))
            clusters.append((calls, trace))
    return Sample(values=values, clusters=clusters)


def test_a_single_failure_is_no_difference_because_the_traces_are_longer():
    found = permutation_test(
        clustered(110, 12, failing=1),
        clustered(119, 21),
        statistic=Statistic.RATE,
        seed=1,
        draws=500,
    )
    assert found.observed == pytest.approx(1 / 1_320)
    assert found.p > 0.2


def test_many_failing_traces_are_a_difference_all_the_same():
    found = permutation_test(
        clustered(110, 12, failing=40),
        clustered(119, 21, failing=10),
        statistic=Statistic.RATE,
        seed=1,
        draws=500,
    )
    assert found.p < 0.01


def test_traces_of_other_lengths_and_the_same_rate_are_told_apart_as_rarely_as_said():
    source = random.Random(5)
    rejected, tried = 0, 120
    for seed in range(tried):
        one, other = (
            Sample(
                values=[int(source.random() < 0.1) for _ in range(30 * calls)],
                clusters=[(calls, place // calls) for place in range(30 * calls)],
            )
            for calls in (4, 16)
        )
        found = permutation_test(
            one, other, statistic=Statistic.RATE, seed=seed, draws=199
        )
        rejected += found.p <= 0.05
    assert rejected / tried <= 0.05 + 3 * (0.05 * 0.95 / tried) ** 0.5
