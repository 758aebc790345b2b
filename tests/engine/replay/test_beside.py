"""What was decided in the pipeline beside what is decided alone."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from apps.engine.replay.beside import (
    ContractCounts,
    Standing,
    beside,
    contract_counts,
    contracts_beside,
)
from apps.engine.replay.told_apart import told_apart
from apps.engine.trials import Decided


def decided(*answers, **fields):
    """Runs by their answers; one in brackets is a state without a decision."""
    return [
        Decided(state=one[1:-1], **fields)
        if one.startswith("(")
        else Decided(state="decided", decision=f'"{one}"', shown=one, **fields)
        for one in answers
    ]


def test_so_few_runs_cannot_be_told_apart():
    found = beside(decided(*"AAAA"), decided(*"BBBAA"))
    assert found.standing is Standing.NOT_TOLD_APART
    assert (found.recorded_majority, found.alone_majority) == ("A", "B")
    assert found.sentence == (
        "In the pipeline it decided “A” in 4 of 4; alone it decides “B” in 3 of 5, “A” "
        "in 2 of 5. They cannot be told apart (exact test, p = 0.17): chance alone "
        "often gives as much."
    )
    (first, second) = found.answers
    assert (first.shown, first.recorded.k, first.alone.k) == ("A", 4, 2)
    assert first.recorded.interval.low == pytest.approx(0.51, abs=0.01)
    assert second.alone.words.startswith("3 of 5 (60 %; 95 % interval 23.1 % to 88.2 %")


def test_two_against_two_could_never_be_told_apart():
    found = beside(decided(*"AA"), decided(*"BB"))
    assert found.standing is Standing.NOT_TOLD_APART
    assert "no result could be below 0.33" in found.sentence


def test_a_difference_that_chance_does_not_give_is_said():
    found = beside(decided(*"AAAA"), decided(*"BBBBB"))
    assert found.standing is Standing.DIFFER
    assert found.test.p == pytest.approx(fisher_exact([[4, 0], [0, 5]])[1])
    assert found.sentence.endswith("They differ (exact test, p = 0.0079).")


def test_runs_that_failed_count_and_agreement_is_no_proof():
    same = beside(decided(*"AAA"), decided(*"AA"))
    assert same.standing is Standing.SAME
    assert same.sentence.endswith("that does not show that they always do.")
    failed = beside(decided("(failed)", "(failed)", "(failed)", "A"), decided(*"AAAA"))
    assert (failed.recorded_majority, failed.distinct) == ("", 1)
    assert "it decided “A” in 1 of 4, nothing in 3" in failed.sentence
    assert failed.answers[0].recorded.n == 4
    never = beside(decided("(failed)"), decided("(failed)", "(failed)"))
    assert never.standing is Standing.NOTHING_TO_COMPARE
    assert "nothing in 1 of 1 (failed before it decided)" in never.sentence


def test_what_cannot_be_read_differs_from_nothing():
    found = beside(decided("(not_compared)", "(no_bodies)"), decided(*"AAAAA"))
    assert (found.standing, found.test) == (Standing.NOTHING_TO_COMPARE, None)
    assert [one.state for one in found.answers] == [
        "decided",
        "no_bodies",
        "not_compared",
    ]
    assert beside([], decided("A")).sentence.startswith(
        "In the pipeline there is no run; alone it decides “A” in 1 of 1."
    )


def test_other_conditions_are_said_beside_the_counts():
    found = beside(
        decided(*"AA", input="1", temperature=0.7),
        decided(*"AA", input="2", temperature=0),
    )
    assert found.reasons == (
        "The inputs are not all the same, so a difference may come from them.",
        "The temperature was 0.7 in the pipeline and 0 alone.",
    )
    assert beside(decided("A"), decided("A")).reasons == (
        "The input of some runs is not recorded.",
        "A single run says nothing about how often an answer comes.",
    )


def test_contracts_stand_beside_each_other():
    judged = [
        {"name": "refund limit", "held": 2, "broken": 1, "undecided": 0},
        {"name": "refund limit", "held": 2, "broken": 0, "undecided": 1},
        {"name": "polite", "held": 4, "broken": 0, "undecided": 0},
    ]
    recorded = contract_counts(judged)
    assert recorded[0] == ContractCounts(
        name="refund limit", held=4, broken=1, undecided=1
    )
    rows = contracts_beside(
        recorded, [ContractCounts(name="polite", broken=8), ContractCounts(name="new")]
    )
    assert [one.sentence for one in rows] == [
        "“refund limit”: broke in 1 of 6 applications, 1 undecided in the pipeline, "
        "never applied alone.",
        "“polite”: broke in 0 of 4 applications in the pipeline, broke in 8 of 8 "
        "applications alone. They differ (exact test, p = 0.002).",
        "“new”: never applied in the pipeline, never applied alone.",
    ]
    assert rows[1].alone.value == 1.0


def test_the_exact_test_of_two_answers_is_that_of_scipy():
    for a, b, c, d in product(range(5), range(4), range(6), range(3)):
        found = told_apart([a, b], [c, d])
        if found is None:
            assert 0 in (a + b, c + d, a + c, b + d)
        else:
            expected = fisher_exact([[a, b], [c, d]])[1]
            assert found.p == pytest.approx(expected, abs=1e-12)


counts = st.lists(st.integers(0, 6), min_size=3, max_size=3)


@settings(max_examples=60)
@given(counts, counts)
def test_the_exact_test_of_three_answers_deals_every_hand(first, second):
    found = told_apart(first, second)
    assert found == told_apart(second, first) == told_apart(first[::-1], second[::-1])
    if found is None:
        return
    assert 0 < found.smallest_p <= found.p <= 1
    assert found.merged == 0


def test_many_answers_are_merged_without_looking_at_who_gave_them():
    found = told_apart([1] * 60, [1] * 60)
    assert found.merged > 2
    assert found.p > 0.5
    with pytest.raises(ValueError, match="for each answer"):
        told_apart([1], [1, 2])


def test_the_same_answers_shuffled_are_rarely_said_to_differ():
    """Of all ways to deal 4 A and 4 B to two sides, at most 5 % are called different."""
    dealt = [
        told_apart([sum(hand), 4 - sum(hand)], [4 - sum(hand), sum(hand)])
        for hand in product((0, 1), repeat=8)
        if sum(hand) == 4
        for hand in [hand[:4]]
    ]
    differ = [one for one in dealt if one is not None and one.p <= 0.05]
    assert len(dealt) == 70
    assert len(differ) / len(dealt) <= 0.05
