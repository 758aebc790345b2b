"""What a check is worth: rates, groups, drift, agreement, and rules beside it."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa as kappa_oracle
from statsmodels.stats.multitest import multipletests

from apps.engine.calibration import (
    FEWEST_DOUBLES,
    Labelled,
    LabelledSteps,
    Rule,
    cohens_kappa,
    compare_rates,
    drift_over,
    group_rates,
    precision,
    rate,
    rules_beside,
    step_rules_beside,
)


def test_a_rate_says_its_counts_and_its_interval():
    found = rate(22, 61)
    assert found.value == pytest.approx(0.3607, abs=5e-5)
    assert found.words == "22 of 61 (36.1 %; 95 % interval 25.2 % to 48.6 %)"


def test_nothing_of_nothing_is_no_decisions_yet_and_no_rate():
    found = precision(confirmed=0, dismissed=0, cannot_tell=0)
    assert found.words == "no decisions yet"
    assert found.confirmed.value is None
    assert found.confirmed.interval is None


def test_all_of_three_is_never_shown_without_its_interval():
    words = precision(confirmed=3, dismissed=0, cannot_tell=2).words
    assert words == "3 of 3 (100 %; 95 % interval 43.9 % to 100 %); cannot tell: 2"


def test_what_nobody_could_tell_is_in_no_denominator():
    found = precision(confirmed=0, dismissed=0, cannot_tell=9)
    assert found.words == "no decisions yet; cannot tell: 9"
    assert precision(confirmed=1, dismissed=3, cannot_tell=9).confirmed.n == 4


def test_two_rates_are_compared_with_an_interval_and_fisher():
    found = compare_rates(rate(1, 22), rate(12, 39))
    assert found.difference == pytest.approx(1 / 22 - 12 / 39)
    assert found.interval.low < found.difference < found.interval.high < 0
    assert found.p == pytest.approx(0.022, abs=5e-4)


def test_a_rate_of_nothing_is_compared_with_nothing():
    found = compare_rates(rate(0, 0), rate(3, 5))
    assert (found.difference, found.interval, found.p) == (None, None, None)


GROUPS = {"capped": (8, 10), "converged": (12, 40), "empty": (0, 0), "all": (25, 61)}


def test_each_group_is_compared_with_all_traces_outside_of_it():
    found = {one.group: one for one in group_rates(GROUPS, whole=(25, 61))}
    assert list(found) == list(GROUPS)
    capped = found["capped"].against_rest
    assert (capped.second.k, capped.second.n) == (17, 51)
    assert capped.p == pytest.approx(stats.fisher_exact([[8, 2], [17, 34]]).pvalue)
    chances = [found["capped"].against_rest.p, found["converged"].against_rest.p]
    oracle = multipletests(chances, method="fdr_bh")[1]
    assert [found["capped"].q, found["converged"].q] == pytest.approx(list(oracle))
    assert found["empty"].inside.words == "no traces yet"
    assert (found["empty"].q, found["all"].q) == (None, None)


def test_a_group_larger_than_the_whole_is_refused():
    with pytest.raises(ValueError, match="successes"):
        group_rates({"x": (3, 90)}, whole=(2, 61))


def test_drift_compares_the_latest_period_with_all_before():
    weeks = [("w1", 2, 20), ("w2", 3, 20), ("w3", 0, 0), ("w4", 12, 20)]
    found = drift_over(weeks)
    assert [one.label for one in found.periods] == ["w1", "w2", "w3", "w4"]
    assert found.periods[2].rate.words == "no traces yet"
    assert (found.latest.first.k, found.latest.first.n) == (12, 20)
    assert (found.latest.second.k, found.latest.second.n) == (5, 40)
    assert found.latest.p < 0.01


def test_one_period_has_no_drift():
    assert drift_over([("w1", 2, 20), ("w2", 0, 0)]).latest is None
    assert drift_over([]).periods == ()


VERDICTS = st.sampled_from(["confirm", "dismiss", "cannot tell"])


@given(st.lists(st.tuples(VERDICTS, VERDICTS), min_size=20, max_size=120))
@settings(max_examples=50, deadline=None)
def test_kappa_and_its_error_agree_with_statsmodels(pairs):
    found = cohens_kappa(pairs)
    names = sorted({name for pair in pairs for name in pair})
    table = np.zeros((len(names), len(names)))
    for a, b in pairs:
        table[names.index(a), names.index(b)] += 1
    if len(names) == 1:
        assert found.value is None
        return
    with np.errstate(invalid="ignore", divide="ignore"):
        oracle = kappa_oracle(table)
    assert found.value == pytest.approx(oracle.kappa, abs=1e-12)
    if not oracle.std_kappa > 1e-6:
        assert found.interval is None
        return
    low, high = max(-1, oracle.kappa_low), min(1, oracle.kappa_upp)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (low, high), abs=1e-7
    )


def test_there_is_no_kappa_below_20_doubles_nor_of_one_verdict():
    few = cohens_kappa([("confirm", "dismiss")] * (FEWEST_DOUBLES - 1))
    assert (few.value, few.interval, few.agreed.k) == (None, None, 0)
    assert few.words == "19 doubles; kappa is given from 20 on"
    assert cohens_kappa([]).agreed.words == "no doubles yet"
    same = cohens_kappa([("confirm", "confirm")] * 30)
    assert same.value is None
    perfect = cohens_kappa([("confirm", "confirm"), ("dismiss", "dismiss")] * 15)
    assert (perfect.value, perfect.interval) == (1, None)
    assert "no interval" in perfect.words
    assert same.agreed.value == 1


def labelled(*rows):
    return [Labelled(n, *row) for n, row in enumerate(rows)]


def by_rule(scores):
    return {score.rule: score for score in scores}


def test_a_check_stands_beside_rules_that_know_nothing():
    rows = labelled(
        (True, True, 9), (True, False, 8), (False, True, 7), (False, False, 20),
        (False, False, 3), (False, True, 30), (False, False, 1), (False, False, 2),
    )  # fmt: skip
    found = by_rule(rules_beside(rows))
    check, always = found[Rule.CHECK], found[Rule.ALWAYS]
    assert (check.precision, check.recall, check.f1) == (1 / 2, 1 / 3, 2 / 5)
    assert (always.precision, always.recall) == (3 / 8, 1)
    assert found[Rule.LONGEST].hits == 1
    assert found[Rule.LONGEST].pointed == 2
    chance = found[Rule.RANDOM]
    assert chance.precision == pytest.approx(3 / 8)
    assert chance.recall == pytest.approx(2 / 8)
    assert chance.f1 == pytest.approx(2 * 0.75 / 5)


def test_the_interval_of_f1_is_that_of_the_jaccard_index():
    rows = labelled(*[(True, True, 1)] * 6, *[(True, False, 1)] * 3, (False, True, 1))
    check = by_rule(rules_beside(rows))[Rule.CHECK]
    jaccard = rate(6, 10)
    assert check.f1 == pytest.approx(2 * 0.6 / 1.6)
    assert check.f1_interval.low == pytest.approx(
        2 * jaccard.interval.low / (1 + jaccard.interval.low)
    )
    assert check.f1_interval.low < check.f1 < check.f1_interval.high


def test_the_random_rule_is_what_random_firing_gives():
    rows = labelled(*[(n < 12, n % 3 == 0, 5) for n in range(60)])
    expected = by_rule(rules_beside(rows))[Rule.RANDOM]
    source = random.Random(3)
    bad = [row.bad for row in rows]
    drawn = sorted(sum(source.sample(bad, 12)) for _ in range(20_000))
    assert expected.hits == pytest.approx(sum(drawn) / 20_000, abs=0.05)
    low, high = expected.recall_interval.low * 20, expected.recall_interval.high * 20
    inside = sum(low <= hits <= high for hits in drawn) / 20_000
    assert 0.94 < inside < 0.99


def test_equally_long_traces_are_taken_by_number_in_any_order():
    rows = labelled((True, False, 5), (False, True, 5), (False, True, 5))
    found = by_rule(rules_beside(rows))[Rule.LONGEST]
    assert found == by_rule(rules_beside(rows[::-1]))[Rule.LONGEST]
    assert found.hits == 0


@pytest.mark.parametrize("rows", [[], labelled((False, False, 3))])
def test_without_anything_bad_there_is_no_recall_and_no_f1(rows):
    for score in rules_beside(rows):
        assert (score.recall, score.f1, score.f1_interval) == (None, None, None)
    assert by_rule(rules_beside(rows))[Rule.CHECK].precision is None


def test_step_rules_point_at_the_last_the_first_every_and_random_steps():
    rows = [
        LabelledSteps(steps=10, labelled=(9,), pointed=(3, 3, 9)),
        LabelledSteps(steps=4, labelled=(0, 3), pointed=(1,)),
        LabelledSteps(steps=6, labelled=(5,), pointed=()),
        LabelledSteps(steps=0, labelled=(), pointed=()),
    ]
    found = by_rule(step_rules_beside(rows))
    check = found[Rule.CHECK]
    assert (check.hits, check.pointed, check.bad) == (1, 3, 4)
    last = found[Rule.LAST_STEP]
    assert (last.hits, last.pointed) == (3, 3)
    assert last.f1 == pytest.approx(6 / 7)
    assert found[Rule.FIRST_STEP].hits == 1
    every = found[Rule.EVERY_STEP]
    assert (every.hits, every.pointed, every.recall) == (4, 20, 1)
    assert found[Rule.RANDOM_STEP].hits == pytest.approx(2 * 1 / 10 + 1 * 2 / 4)


ROW = st.tuples(st.booleans(), st.booleans(), st.integers(1, 9))


@given(st.lists(ROW, min_size=1, max_size=40))
def test_every_figure_lies_inside_its_interval_and_between_0_and_1(rows):
    for score in rules_beside(labelled(*rows)):
        for value, interval in (
            (score.precision, score.precision_interval),
            (score.recall, score.recall_interval),
            (score.f1, score.f1_interval),
        ):
            assert (value is None) == (interval is None)
            if value is not None:
                assert 0 <= value <= 1
                assert interval.low - 1e-9 <= value <= interval.high + 1e-9
                assert not math.isnan(interval.low)


def test_one_double_is_spoken_of_as_one():
    assert cohens_kappa([("a", "b")]).words.startswith("1 double; ")
