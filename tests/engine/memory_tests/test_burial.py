"""Recall by depth: intervals, where it stops being certain, and what is not said."""

from __future__ import annotations

from itertools import combinations
from math import comb, sqrt

import msgspec
import pytest
from scipy.stats import fisher_exact

from apps.engine.memory_tests import (
    Standing,
    burial_from,
    burial_of,
    falling_trend,
    needed_for,
    planned,
    probed_in,
    run_memory_test,
    sentences_of,
    trend,
)
from apps.engine.nulls.intervals import wilson
from apps.engine.replay.run import ErrorKind
from tests.engine.memory_tests.agents import (
    COLOUR,
    LOCKER,
    Agent,
    Breaking,
    Forgetful,
    a_test,
    last,
)


def burial_by(test, conversation):
    return burial_of(test, run_memory_test(planned(test), conversation))


def test_needed_trials_are_the_least_that_show_the_share():
    for share in (0.1, 0.5, 0.8, 0.9, 0.99):
        needed = needed_for(share)
        assert wilson(needed, needed).low >= share
        assert needed == 1 or wilson(needed - 1, needed - 1).low < share
    assert needed_for(0.8) == 16


@pytest.mark.parametrize("window", [1, 3, 6, 9])
@pytest.mark.parametrize("repeats", [5, 16])
def test_the_first_uncertain_depth_brackets_the_window_of_an_agent(window, repeats):
    test = a_test(COLOUR, depths=[0, 1, 2, 4, 8, 12], repeats=repeats)
    whole = burial_by(test, Agent(test, hands=last(window))).whole
    assert whole.last_before < window <= whole.first_uncertain
    assert whole.first_lapse == whole.first_uncertain
    sure = Standing.CERTAIN if repeats == 16 else Standing.TOO_FEW
    standings = [one.standing for one in whole.points if one.depth < window]
    assert set(standings) == {sure}


def test_five_repeats_are_honest_about_what_they_show():
    test = a_test(COLOUR, depths=[0, 8, 12])
    burial = burial_by(test, Agent(test, hands=last(10)))
    [near, deep, gone] = burial.whole.points
    assert (near.interval, deep.trials) == (wilson(5, 5), 5)
    assert (gone.recalled, gone.standing) == (0, Standing.UNCERTAIN)
    said = sentences_of(burial)
    assert said[0] == (
        "Recall is no longer certain from depth 12 on, where it is 0 of 5 (0 % to "
        "43.4 %); at depth 8 it is 5 of 5 (56.6 % to 100 %). If recall only gets worse "
        "with depth, these trials put the limit between 8 and 12 turns."
    )
    assert "That takes 16 trials without a lapse." in said[1]
    assert said[2] == (
        "At depth 0, 8 everything was recalled, and 5 trials show no more than a rate "
        "of at least 56.6 %; 16 are needed for 80 %."
    )
    assert "5 facts were lost or contradicted: 5 stored and not retrieved." in said
    assert any(
        "names the fact in 15 of 15 cases" in one and "10 of these" in one
        for one in said
    )
    assert said[-1].startswith("Not judged: paraphrases")


def test_nothing_lost_and_nothing_tried_are_two_answers():
    test = a_test(COLOUR, depths=[0, 4], repeats=2)
    none = burial_of(test, [])
    assert [one.standing for one in none.whole.points] == [Standing.NOT_TESTED] * 2
    assert [one.interval for one in none.whole.points] == [None, None]
    assert (none.trend, none.whole.first_uncertain) == (None, None)
    assert sentences_of(none) == ("Not tested: no trial was run.",)
    records = list(run_memory_test(planned(test), Agent(test)))
    half = burial_of(test, [one for one in records if one.trial.depth == 0])
    assert half.whole.points[1].standing is Standing.NOT_TESTED
    assert sentences_of(half)[0].startswith("Nothing was lost down to depth 0")
    assert sentences_of(half)[1] == "Not tested: depth 4."
    assert burial_of(test, records[::-1]).whole == burial_of(test, records).whole
    probed = [one for record in records for one in probed_in(test, record)]
    assert burial_from(test, probed) == burial_of(test, records)
    # Each depth was planned by itself, so that numbers of trials come twice.
    again = [msgspec.structs.replace(one, trial=one.repeat) for one in probed]
    assert burial_from(test, again).whole == burial_of(test, records).whole


@pytest.mark.parametrize("at", ["restart", COLOUR["telling"].format(value="green")])
def test_where_no_trial_came_to_an_answer_nothing_is_said_of_recall(at):
    test = a_test(COLOUR, depths=[0, 2, 4], repeats=2, length="equal")
    burial = burial_by(test, Breaking(test, at, ErrorKind.TARGET))
    assert burial.is_unanswered
    standings = {one.standing for one in burial.whole.points}
    assert standings == {Standing.UNANSWERED}
    assert {one.interval for one in burial.whole.points} == {None}
    assert {p.standing for c in burial.facts for p in c.points} == standings
    whole = burial.whole
    assert (whole.first_uncertain, whole.first_lapse, whole.last_before) == (None,) * 3
    assert (burial.trend, burial.middle) == (None, None)
    assert sentences_of(burial) == (
        "No trial came to an answer: all 6 questions have none, so that nothing is "
        "known of what is remembered. The trial broke off before it was asked for: "
        f"It broke at {at}.",
    )


def test_one_answer_is_enough_for_failed_trials_to_count_as_not_recalled():
    test = a_test(COLOUR, depths=[0, 2], repeats=2)
    broken = list(
        run_memory_test(planned(test), Breaking(test, "restart", ErrorKind.TARGET))
    )
    [good, *_] = run_memory_test(planned(test), Agent(test))
    burial = burial_of(test, [good, *broken[1:]])
    assert not burial.is_unanswered
    assert [(one.recalled, one.trials) for one in burial.whole.points] == [
        (1, 2),
        (0, 2),
    ]
    assert any("3 of 4 questions have no answer" in one for one in sentences_of(burial))


def test_a_few_lapses_among_many_stay_certain_at_the_declared_share():
    test = a_test(COLOUR, depths=[0, 1], repeats=60, certain_from=0.7)
    whole = burial_by(test, Forgetful(test, {0: 0.95, 1: 0.4}, seed=3)).whole
    assert whole.points[0].recalled < 60
    assert whole.points[0].standing is Standing.CERTAIN
    assert (whole.first_lapse, whole.first_uncertain) == (0, 1)


def test_intervals_cover_the_rate_that_was_simulated_as_often_as_they_say():
    rates = {0: 0.95, 1: 0.6, 2: 0.25}
    test = a_test(COLOUR, depths=[0, 1, 2], repeats=20)
    plan, curves, covered = planned(test), 300, {0: 0, 1: 0, 2: 0}
    agent = Forgetful(test, rates, seed=20)
    for _ in range(curves):
        whole = burial_of(test, run_memory_test(plan, agent)).whole
        for point in whole.points:
            low, high = point.interval.low, point.interval.high
            covered[point.depth] += low <= rates[point.depth] <= high
    assert 0.92 <= sum(covered.values()) / (3 * curves) <= 0.985
    for depth, rate in rates.items():
        # What Wilson's interval covers at this very rate, which is not always 95 %.
        expected = sum(
            comb(20, k) * rate**k * (1 - rate) ** (20 - k)
            for k in range(21)
            if wilson(k, 20).low <= rate <= wilson(k, 20).high
        )
        error = sqrt(expected * (1 - expected) / curves)
        assert abs(covered[depth] / curves - expected) < 4 * error


def test_what_is_lost_in_the_middle_is_seen_in_conversations_of_equal_length():
    def ends(log):
        return log[:3] + log[-3:]

    fields = {"depths": [0, 2, 6, 9, 12], "repeats": 8}
    test = a_test(COLOUR, length="equal", **fields)
    burial = burial_by(test, Agent(test, hands=ends))
    assert [one.recalled for one in burial.whole.points] == [8, 8, 0, 0, 8]
    assert (burial.middle.ends, burial.middle.middle) == ((16, 16), (8, 24))
    assert burial.middle.interval.low > 0.3
    assert any("in between 8 of 24" in one for one in sentences_of(burial))
    grows = a_test(COLOUR, **fields)
    assert burial_by(grows, Agent(grows, hands=ends)).middle is None


def test_positions_show_that_only_the_fact_told_last_is_kept():
    test = a_test(LOCKER, COLOUR, depths=[1], repeats=6)
    agent = Agent(
        test, hands=lambda log: [t for t in log if "green" in t or "X9" in t][-1:]
    )
    burial = burial_by(test, agent)
    assert [
        c.points[0].recalled for c in burial.positions if c.name == "told first"
    ] == [0]
    assert [c.points[0].recalled for c in burial.facts] != [0, 6]


class TestTheTrend:
    """The exact test for a fall with depth."""

    @pytest.mark.parametrize(
        "counts",
        [
            [(3, 3), (2, 3), (0, 3)],
            [(1, 4), (1, 2), (0, 2), (0, 1)],
            [(0, 2), (2, 2), (3, 3)],
            [(2, 2), (0, 0), (1, 4), (1, 3)],
        ],
    )
    def test_it_counts_every_way_to_spread_the_recalls(self, counts):
        tried = [(k, n) for k, n in counts if n]
        scores = [score for score, (_, n) in enumerate(tried) for _ in range(n)]
        recalled = sum(k for k, _ in tried)
        sums = [sum(chosen) for chosen in combinations(scores, recalled)]
        observed = sum(score * k for score, (k, _) in enumerate(tried))
        found = falling_trend(counts)
        assert found.p == pytest.approx(sum(s <= observed for s in sums) / len(sums))
        assert found.floor == pytest.approx(sums.count(min(sums)) / len(sums))

    @pytest.mark.parametrize(
        ("first", "second"), [((9, 10), (4, 10)), ((1, 9), (3, 7))]
    )
    def test_for_two_depths_it_is_the_test_of_fisher(self, first, second):
        table = [[k, n - k] for k, n in (first, second)]
        expected = fisher_exact(table, alternative="greater").pvalue
        assert falling_trend([first, second]).p == pytest.approx(expected)

    def test_the_approximation_for_many_trials_is_close_to_the_exact_test(
        self, monkeypatch
    ):
        counts = [(27, 40), (25, 40), (23, 40), (22, 40), (19, 40)]
        exact = falling_trend(counts)
        assert exact.method.startswith("exact")
        assert sum(n for _, n in counts) == trend.EXACT_UP_TO
        monkeypatch.setattr(trend, "EXACT_UP_TO", 0)
        near = falling_trend(counts)
        assert near.method == "normal approximation"
        assert near.p == pytest.approx(exact.p, rel=0.05)
        assert 0 < near.floor < near.p < 0.1

    def test_it_says_nothing_where_nothing_could_fall(self):
        for counts in (
            [],
            [(3, 5)],
            [(5, 5), (5, 5)],
            [(0, 5), (0, 5)],
            [(1, 2), (0, 0)],
        ):
            assert falling_trend(counts) is None
        with pytest.raises(ValueError, match="As many recalls"):
            falling_trend([(3, 2), (0, 2)])
