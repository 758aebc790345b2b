"""Traps that earlier tools of this kind fell into, one test each."""

from __future__ import annotations

import pytest

from apps.engine.consistency import Regime, Stability, consistency_of, summary
from tests.engine.consistency.trials import decided, without


def test_four_of_five_crashed_runs_are_insufficient_and_never_stable():
    found = consistency_of(decided("billing") + without("failed", 4))
    assert found.verdict is Stability.INSUFFICIENT
    assert (found.n, found.decided, found.failed) == (5, 1, 4)
    assert "1 of 5 trials decided anything; 3 are needed." in found.reasons
    assert any("4 of 5 trials" in reason for reason in found.reasons)


def test_crashes_without_a_temperature_stay_in_the_denominator_of_temperature_zero():
    found = consistency_of(decided(*"aaaa", temperature=0.0) + without("failed", 16))
    assert found.n == 20
    assert found.regime is Regime.ZERO
    assert found.verdict is Stability.INSUFFICIENT
    one = consistency_of(decided(*"aaaaaaaaa", temperature=0.0) + without("failed", 1))
    assert (one.regime, one.verdict) == (Regime.ZERO, Stability.DRIFTING)


def test_crashes_count_against_the_share_of_an_answer_and_against_its_majority():
    found = consistency_of(decided(*"aaa") + without("failed", 4))
    assert (found.answers[0].share.k, found.answers[0].share.n) == (3, 7)
    assert found.majority is None
    assert "3 of 7" in found.no_majority
    most = consistency_of(decided(*"aaaa") + without("missing", 3))
    assert (most.majority.answer.share.k, most.majority.answer.share.n) == (4, 7)
    assert not most.majority.is_established


def test_one_run_is_insufficient():
    assert consistency_of(decided("a")).verdict is Stability.INSUFFICIENT


def test_two_equal_runs_are_insufficient():
    assert consistency_of(decided("a", "a")).verdict is Stability.INSUFFICIENT


def test_a_decision_that_is_missing_in_all_runs_is_not_stable():
    found = consistency_of(without("missing", 12))
    assert found.verdict is Stability.INSUFFICIENT
    assert found.missing == 12
    assert any("missing in 12 of 12 trials" in reason for reason in found.reasons)
    assert found.majority is None


def test_a_blank_decision_is_a_missing_one():
    found = consistency_of(decided("", " ", "\n", ""))
    assert (found.decided, found.missing) == (0, 4)
    assert found.verdict is Stability.INSUFFICIENT


def test_equal_prose_that_nobody_asked_to_compare_is_not_stable():
    found = consistency_of(without("not_compared", 8, exact="same"))
    assert found.verdict is Stability.INSUFFICIENT
    assert any(
        "Prose is not compared: define what the agent decides." in reason
        for reason in found.reasons
    )
    assert (found.exact.k, found.exact.n) == (8, 8)


def test_runs_whose_bodies_were_not_kept_are_not_stable():
    found = consistency_of(without("no_bodies", 5))
    assert found.verdict is Stability.INSUFFICIENT
    assert any("No bodies kept" in reason for reason in found.reasons)


def test_three_of_five_is_no_established_majority():
    found = consistency_of(decided(*"aaabb"))
    assert found.verdict is Stability.NON_DETERMINISTIC
    assert found.majority.answer.decision == "a"
    assert not found.majority.is_established
    assert found.majority.words == (
        "3 of 5 (60 %; 95 % interval 23.1 % to 88.2 %), not established"
    )


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(10, 10, 0.72, 1.0), (5, 5, 0.57, 1.0), (3, 5, 0.23, 0.88)],
)
def test_small_counts_leave_open_what_their_interval_says(k, n, low, high):
    found = consistency_of(decided(*["a"] * k, *["b"] * (n - k)))
    assert found.decision.interval.low == pytest.approx(low, abs=0.005)
    assert found.decision.interval.high == pytest.approx(high, abs=0.005)


def test_a_trial_that_is_given_twice_is_refused():
    with pytest.raises(ValueError, match="The trial t000 is given twice"):
        consistency_of(decided("a") + decided("a"))


def test_no_trials_are_refused_and_no_tasks_are_none_yet():
    with pytest.raises(ValueError, match="no trials"):
        consistency_of([])
    assert summary([]).words == "no tasks yet"


def test_a_state_nobody_knows_is_refused_by_name():
    with pytest.raises(ValueError, match="'passed' of t500 is unknown"):
        consistency_of(without("passed", 1))


def test_equal_wrong_answers_are_stable_but_wrong_and_not_unstable():
    found = consistency_of(decided(*"aaaaa", passed=False))
    assert found.verdict is Stability.STABLE
    assert found.is_stable_but_wrong
    assert not found.is_unstable
    assert found.label == "stable but wrong"
    assert "0 of 5" in found.wrong_reasons[0]


def test_one_passed_trial_is_enough_not_to_call_a_stable_task_wrong():
    trials = decided(*"aaaa", passed=False) + decided("a", start=9, passed=True)
    assert not consistency_of(trials).is_stable_but_wrong


def test_an_unknown_outcome_neither_makes_wrong_nor_right():
    assert not consistency_of(decided(*"aaaa")).is_stable_but_wrong
    trials = decided(*"aaaa") + decided("a", start=9, passed=False)
    assert consistency_of(trials).is_stable_but_wrong


def test_a_broken_contract_makes_a_stable_task_wrong_though_it_passed():
    trials = decided(*"aaaa", passed=True, contracts_broken=1)
    found = consistency_of(trials)
    assert found.is_stable_but_wrong
    assert "4 of 4 trials" in found.wrong_reasons[0]


def test_an_unstable_task_that_failed_is_unstable_and_not_stable_but_wrong():
    found = consistency_of(decided(*"aabb", passed=False))
    assert found.is_unstable
    assert not found.is_stable_but_wrong
    assert found.label == "non-deterministic"
