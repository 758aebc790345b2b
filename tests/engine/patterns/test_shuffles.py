"""Deals keep what runs of one task share, and are those of the null model."""

from __future__ import annotations

from collections import Counter

import pytest
from scipy import stats

from apps.engine.patterns.candidates import Minimum, Support
from apps.engine.patterns.columns import bits_at
from apps.engine.patterns.shuffles import Shuffles
from apps.engine.patterns.strength import Counts, Strength
from apps.engine.patterns.units import Unit, in_order


def units(*tasks, together=""):
    """Units of tasks that are texts of their targets."""
    return in_order(
        [
            Unit(
                id=f"{number:03}/{place:03}",
                task=f"{number:03}",
                features={},
                target=mark == "1",
                together=f"{place // 2}" if together else "",
            )
            for number, text in enumerate(tasks)
            for place, mark in enumerate(text)
        ]
    )


def dealt(found, seed=1):
    return f"{Shuffles(found, seed).drawn():0{len(found)}b}"


def test_tasks_of_one_size_keep_their_targets_together():
    found = units(*["1111"] * 5, *["0000"] * 20)
    text = dealt(found)
    blocks = Counter(text[place : place + 4] for place in range(0, 100, 4))
    assert blocks == {"1111": 5, "0000": 20}
    assert text != "1111" * 5 + "0000" * 20


def test_every_order_within_a_task_is_as_frequent():
    shuffles = Shuffles(units("1100"), 5)
    seen = Counter(shuffles.drawn() for _ in range(6_000))
    assert len(seen) == 6
    assert all(880 < number < 1_120 for number in seen.values())


def test_a_long_task_is_mixed_too():
    text = dealt(units("1" * 15 + "0" * 15))
    assert text.count("1") == 15
    assert text != "1" * 15 + "0" * 15


def test_runs_of_several_units_stay_together():
    found = units(*["11000000"] * 30, together="pairs")
    text = dealt(found)
    pairs = Counter(text[place : place + 2] for place in range(0, len(text), 2))
    assert pairs == {"11": 30, "00": 90}


def test_what_one_agent_did_in_all_its_trials_is_dealt_as_one():
    agents = [
        Unit(
            id=f"{task}/{trial}/{agent}",
            task=str(task),
            features={},
            target=agent == "a" and task < 12,
            together=agent,
        )
        for task in range(25)
        for trial in range(6)
        for agent in "abc"
    ]
    for seed in range(10):
        text = dealt(in_order(agents), seed)
        blocks = Counter(text[place : place + 6] for place in range(0, len(text), 6))
        assert blocks == {"111111": 12, "000000": 63}


def test_large_tasks_are_dealt_among_large_ones():
    found = units(*["1"] * 40, *["0" * 50] * 25)
    text = dealt(found)
    assert text[:40] == "1" * 40
    assert set(text[40:]) == {"0"}


def test_a_task_of_another_size_takes_the_share_as_far_as_it_goes():
    found = units("10", "1010", "10101010")
    for seed in range(20):
        text = dealt(found, seed)
        assert text[:2].count("1") <= 2
        assert text[6:].count("1") == 4


def test_the_same_seed_gives_the_same_deals():
    found = units("10", "01", "11", "00", "10")
    one, other = Shuffles(found, 3), Shuffles(found, 3)
    assert [one.drawn() for _ in range(9)] == [other.drawn() for _ in range(9)]


def test_distinct_tasks_are_counted():
    found = units("11", "111", "1", "1111")
    support = Support(found, Minimum(units=2, tasks=2))
    assert support.tasks(bits_at(range(10), 10)) == 4
    assert support.tasks(bits_at([0, 1, 9], 10)) == 2
    assert support.tasks(bits_at([2, 3, 4], 10)) == 1
    assert support.tasks(0) == 0
    assert support.tasks(bits_at(range(10), 10), most=3) == 3
    assert support.is_enough(bits_at([4, 5], 10))
    assert not support.is_enough(bits_at([2, 4], 10))
    assert not support.is_enough(bits_at([2], 10))


@pytest.mark.parametrize("table", [(14, 2, 9, 75), (5, 0, 5, 90), (3, 3, 1, 40)])
def test_strength_is_half_the_likelihood_ratio_statistic(table):
    a, b, c, d = table
    expected = stats.chi2_contingency(
        [[a, b], [c, d]], correction=False, lambda_="log-likelihood"
    ).statistic
    strength = Strength(a + b + c + d)
    counts = Counts(a, a + b, a + c, a + b + c + d)
    assert strength(counts) == pytest.approx(expected / 2)


def test_a_share_below_that_outside_has_no_strength():
    assert Strength(100)(Counts(1, 20, 40, 100)) == 0
    assert Strength(100)(Counts(4, 10, 40, 100)) == 0
