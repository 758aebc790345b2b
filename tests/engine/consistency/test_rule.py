"""The rule of consistency, word by word, and the numbers beside it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from apps.engine.consistency import (
    FEWEST_DECIDED,
    MOST_CONTRADICTIONS,
    RULE,
    SMALLEST_STABLE,
    Regime,
    Stability,
    TrialConduct,
    TrialState,
    by_regime,
    consistency_of,
    regime_of,
    share,
    summary,
    summary_of_counts,
)
from tests.engine.consistency.trials import decided, without

STABLE, DRIFTING = Stability.STABLE, Stability.DRIFTING
NON_DETERMINISTIC = Stability.NON_DETERMINISTIC
INSUFFICIENT = Stability.INSUFFICIENT


@pytest.mark.parametrize(
    ("decisions", "lost", "verdict"),
    [
        ("aaa", 0, INSUFFICIENT),
        ("aaaa", 0, STABLE),
        ("aaaaa", 0, STABLE),
        ("aaaa", 1, INSUFFICIENT),
        ("aaaaaaaa", 1, DRIFTING),
        ("aaaaaaaaa", 1, DRIFTING),
        ("ab", 0, INSUFFICIENT),
        ("aab", 0, NON_DETERMINISTIC),
        ("abc", 0, NON_DETERMINISTIC),
        ("aaab", 0, NON_DETERMINISTIC),
        ("aaaab", 0, NON_DETERMINISTIC),
        ("aaaaaab", 0, NON_DETERMINISTIC),
        ("aaaaaaab", 0, DRIFTING),
        ("aaaaaaabbb", 0, NON_DETERMINISTIC),
        ("aaaaaaab", 4, NON_DETERMINISTIC),
        ("aabb", 0, NON_DETERMINISTIC),
    ],
)
def test_the_rule_gives_each_word_where_it_says(decisions, lost, verdict):
    found = consistency_of(decided(*decisions) + without("failed", lost))
    assert found.verdict is verdict
    assert str(found.n) in found.reasons[0]


def test_the_rule_on_the_page_names_the_numbers_that_are_used():
    assert f"fewer than {FEWEST_DECIDED} trials decided" in RULE
    assert f"which needs {SMALLEST_STABLE} trials" in RULE
    assert consistency_of(decided(*["a"] * SMALLEST_STABLE)).verdict is STABLE
    below = consistency_of(decided(*["a"] * (SMALLEST_STABLE - 1)))
    assert below.verdict is INSUFFICIENT


def test_at_temperature_zero_one_divergence_is_non_deterministic():
    trials = "a" * 19 + "b"
    assert consistency_of(decided(*trials)).verdict is DRIFTING
    assert consistency_of(decided(*trials, temperature=0.7)).verdict is DRIFTING
    found = consistency_of(decided(*trials, temperature=0.0))
    assert found.verdict is NON_DETERMINISTIC
    assert "at temperature 0" in found.reasons[0]


def test_two_trials_that_differ_at_temperature_zero_are_enough():
    assert consistency_of(decided(*"ab", temperature=0)).verdict is NON_DETERMINISTIC
    assert consistency_of(decided(*"ab", temperature=1)).verdict is INSUFFICIENT


def test_regimes_are_scored_apart_and_the_worst_counts():
    trials = decided(*"aaaaab", temperature=0.0)
    trials += decided(*"aaaaa", start=20, temperature=0.8)
    trials += decided(*"aaaa", start=40)
    zero, above, unknown = by_regime(trials)
    assert (zero.regime, zero.n, zero.verdict) == (Regime.ZERO, 6, NON_DETERMINISTIC)
    assert (above.regime, above.n, above.verdict) == (Regime.ABOVE_ZERO, 5, STABLE)
    assert (unknown.regime, unknown.verdict) == (Regime.NOT_RECORDED, STABLE)
    whole = consistency_of(trials)
    assert whole.verdict is NON_DETERMINISTIC
    assert whole.regime is Regime.MIXED
    assert "3 temperature regimes are scored apart" in whole.reasons[0]


def test_one_regime_is_not_scored_apart():
    assert by_regime(decided(*"aaaa", temperature=0.3)) == ()
    assert by_regime(decided(*"aaaa") + without("failed", 2)) == ()


def test_regimes_that_are_each_stable_but_not_alike_are_drifting():
    trials = decided(*"aaaaa", temperature=0) + decided(
        *"bbbbb", start=9, temperature=1
    )
    assert {part.verdict for part in by_regime(trials)} == {STABLE}
    found = consistency_of(trials)
    assert found.verdict is DRIFTING
    assert any("do not agree with each other" in reason for reason in found.reasons)


@pytest.mark.parametrize(
    ("temperature", "regime"),
    [
        (None, Regime.NOT_RECORDED),
        (0, Regime.ZERO),
        (-0.0, Regime.ZERO),
        (0.01, Regime.ABOVE_ZERO),
        (-1.0, Regime.NOT_RECORDED),
        (float("nan"), Regime.NOT_RECORDED),
    ],
)
def test_a_temperature_has_its_regime(temperature, regime):
    assert regime_of(temperature) is regime


def test_a_tie_has_no_majority_and_says_so():
    found = consistency_of(decided(*"aabb"))
    assert found.majority is None
    assert found.no_majority.startswith("A tie has no majority: 2 decisions")
    assert found.outliers == ()


def test_the_most_frequent_of_many_is_no_majority_below_half():
    found = consistency_of(decided(*"aabcd"))
    assert found.majority is None
    assert "2 of 5" in found.no_majority
    assert "not more than half" in found.no_majority


def test_outliers_are_all_trials_outside_the_majority():
    found = consistency_of(decided(*"aabaaaa") + without("missing", 1))
    assert found.outliers == ("t002", "t500")
    assert found.majority.answer.trials == (
        "t000",
        "t001",
        "t003",
        "t004",
        "t005",
        "t006",
    )


def test_contradictions_are_the_pairs_of_values_with_their_trials():
    found = consistency_of(decided(*"abac"))
    pairs = [
        (each.first.decision, each.second.decision) for each in found.contradictions
    ]
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found.contradictions[0].first.trials == ("t000", "t002")
    assert found.contradiction_count == 3


def test_many_contradictions_are_counted_and_only_some_listed():
    found = consistency_of(decided(*(f"v{number}" for number in range(40))))
    assert found.contradiction_count == 780
    assert len(found.contradictions) == MOST_CONTRADICTIONS


def test_numbers_that_are_close_are_not_equal():
    assert len(consistency_of(decided("0.41", "0.410001")).answers) == 2


def test_agreement_is_exact_structural_and_of_decisions():
    trials = decided("a", "a", exact="x", structure="s")
    trials += decided("a", start=10, exact="y", structure="s")
    trials += decided("b", start=20, structure="r")
    trials += without("failed", 3, exact="boom", structure="boom")
    found = consistency_of(trials)
    assert (found.exact.k, found.exact.n) == (2, 7)
    assert (found.structural.k, found.structural.n) == (3, 7)
    assert (found.decision.k, found.decision.n) == (3, 7)


def test_outputs_that_nobody_recorded_agree_on_nothing():
    found = consistency_of(decided(*"aaaa"))
    assert found.exact.interval is None
    assert found.exact.words == "no outputs were recorded"
    assert found.structural.words == "no shapes were recorded"


def test_differing_inputs_are_said_with_what_they_explain():
    trials = decided(*"aa", input="x") + decided(*"bb", start=9, input="y")
    found = consistency_of(trials)
    assert found.inputs.distinct == 2
    assert (found.inputs.divided.k, found.inputs.divided.n) == (0, 2)
    assert any("may come from upstream" in reason for reason in found.reasons)
    assert any("different decisions are 0 of 2" in reason for reason in found.reasons)


def test_one_input_that_leads_to_different_decisions_is_divided():
    found = consistency_of(decided(*"ab", input="x") + decided("a", start=9, input="y"))
    assert (found.inputs.divided.k, found.inputs.divided.n) == (1, 1)


def test_the_same_input_everywhere_is_no_reason():
    found = consistency_of(decided(*"aaab", input="x"))
    assert len(found.reasons) == 1
    assert found.inputs.distinct == 1


def test_inputs_that_only_some_trials_record_are_counted():
    found = consistency_of(decided(*"aaa", input="x") + decided("a", start=9))
    assert any("input of 1 trial is not recorded" in reason for reason in found.reasons)


def test_a_summary_counts_each_task_once_with_intervals():
    tasks = [
        consistency_of(decided(*"aaaa", passed=False)),
        consistency_of(decided(*"aaaaa")),
        consistency_of(decided(*"aabb")),
        consistency_of(decided("a")),
    ]
    found = summary(tasks)
    assert found.n == 4
    assert found.verdicts[STABLE].words == share(2, 4).words
    assert found.unstable.words == share(1, 4).words
    assert found.stable_but_wrong.k == 1
    assert "non-deterministic: 1 of 4" in found.words
    assert "drifting" not in found.words


def test_a_summary_with_more_wrong_than_stable_tasks_is_refused():
    with pytest.raises(ValueError, match="stable but wrong"):
        summary_of_counts({STABLE: 1}, stable_but_wrong=2)


conducts = st.builds(
    lambda state, decision, exact, structure, passed, temperature, given, broken: (
        TrialConduct(
            trial="",
            state=state,
            decision=decision if state == "decided" else "",
            exact=exact,
            structure=structure,
            passed=passed,
            temperature=temperature,
            input=given,
            contracts_broken=broken,
        )
    ),
    st.one_of(st.just("decided"), st.sampled_from([str(s) for s in TrialState])),
    st.sampled_from(["a", "a", "a", "a", "b", "c", ""]),
    st.sampled_from(["", "x", "y"]),
    st.sampled_from(["", "p", "q"]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, None, 0.0, 0.7]),
    st.sampled_from(["", "i", "j"]),
    st.integers(0, 2),
)


def numbered(found, start=0):
    return [
        TrialConduct(
            **{f: getattr(each, f) for f in TrialConduct.__struct_fields__}
            | {"trial": f"t{number:03}"}
        )
        for number, each in enumerate(found, start)
    ]


groups = st.lists(conducts, min_size=1, max_size=24).map(numbered)


@given(groups, st.randoms(use_true_random=False))
def test_the_order_of_the_trials_never_matters(trials, order: random.Random):
    shuffled = list(trials)
    order.shuffle(shuffled)
    assert consistency_of(shuffled) == consistency_of(trials)
    assert by_regime(shuffled) == by_regime(trials)


@given(groups)
def test_the_counts_add_up_to_n(trials):
    found = consistency_of(trials)
    without_decision = found.missing + found.failed + found.not_compared
    assert found.decided + without_decision + found.no_bodies == found.n == len(trials)
    listed = [trial for answer in found.answers for trial in answer.trials]
    listed += [trial for each in found.undecided for trial in each.trials]
    assert sorted(listed) == [trial.trial for trial in trials]
    assert sum(part.n for part in by_regime(trials)) in {0, found.n}


@given(groups)
def test_no_count_exceeds_its_n_and_every_interval_is_wilsons(trials):
    found = consistency_of(trials)
    shares = [found.exact, found.structural, found.decision, found.outcomes]
    shares += [found.inputs.divided, *(answer.share for answer in found.answers)]
    for each in shares:
        assert 0 <= each.k <= each.n
        if each.n:
            low, high = proportion_confint(each.k, each.n, method="wilson")
            scipys = binomtest(each.k, each.n).proportion_ci(method="wilson")
            assert each.interval.low == pytest.approx(low, abs=1e-9)
            assert each.interval.high == pytest.approx(high, abs=1e-9)
            assert each.interval.low == pytest.approx(scipys.low, abs=1e-9)
            assert each.interval.high == pytest.approx(scipys.high, abs=1e-9)


NOT_BETTER = {
    STABLE: {DRIFTING, INSUFFICIENT},
    DRIFTING: {DRIFTING, NON_DETERMINISTIC, INSUFFICIENT},
    NON_DETERMINISTIC: {NON_DETERMINISTIC},
    INSUFFICIENT: {INSUFFICIENT},
}


@given(
    groups,
    st.sampled_from(["failed", "missing", "not_compared", "no_bodies"]),
    st.sampled_from([None, 0.0, 0.7]),
)
def test_another_trial_that_decided_nothing_never_makes_a_verdict_better(
    trials, state, temperature
):
    before = consistency_of(trials)
    more = [*trials, *without(state, 1, start=900, temperature=temperature)]
    after = consistency_of(more)
    allowed = set(NOT_BETTER[before.verdict])
    if after.regime is Regime.MIXED:
        # A stable part beside an insufficient one may begin to drift: no better.
        allowed |= {DRIFTING} if before.verdict is INSUFFICIENT else set()
    assert after.verdict in allowed


def test_a_crash_in_the_stable_part_of_a_mixed_task_makes_it_drift():
    trials = decided(*"aaaaaaaaa", temperature=0.0)
    trials += decided("a", "a", start=50, temperature=0.7)
    assert consistency_of(trials).verdict is INSUFFICIENT
    more = trials + without("failed", 1, temperature=0.0)
    assert consistency_of(more).verdict is DRIFTING


@given(groups)
def test_stable_needs_one_decision_in_every_trial_of_every_regime(trials):
    found = consistency_of(trials)
    if found.verdict is STABLE:
        assert found.decided == found.n >= SMALLEST_STABLE
        assert len(found.answers) == 1


@given(groups)
def test_unstable_and_stable_but_wrong_never_meet(trials):
    found = consistency_of(trials)
    assert not (found.is_unstable and found.is_stable_but_wrong)
    assert found.reasons
