"""Outcomes are typed: green, red or unknown, and prose is never parsed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.agent_contracts import (
    BadDefinition,
    TraceColour,
    decoded_expectation,
    expectation_for,
    expectation_sentence,
    outcome_verdict,
)
from apps.engine.trace import Outcome, OutcomeKind

GREEN, RED, UNKNOWN = TraceColour.GREEN, TraceColour.RED, TraceColour.UNKNOWN
PASSED, FAILED = Outcome(kind=OutcomeKind.PASS), Outcome(kind=OutcomeKind.FAIL)


def score(value, out_of=None, **fields):
    return Outcome(kind=OutcomeKind.SCORE, score=value, out_of=out_of, **fields)


def color(outcome, **expectation):
    expected = decoded_expectation(expectation) if expectation else None
    verdict = outcome_verdict(outcome, expected)
    assert verdict.sentence.endswith(".")
    return verdict.colour


@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [
        (PASSED, GREEN),
        (FAILED, RED),
        (Outcome(), UNKNOWN),
        (score(5, 5), GREEN),
        (score(0, 5), RED),
        (score(3, 5), UNKNOWN),
        (score(95, 100), UNKNOWN),
        (score(1), UNKNOWN),
        (score(0), UNKNOWN),
        (score(1, 0), UNKNOWN),
        (score(None, 5), UNKNOWN),
        (score(float("nan"), 5), UNKNOWN),
        (score(float("inf"), 5), UNKNOWN),
    ],
)
def test_without_an_expectation_only_what_is_certain_has_a_color(outcome, wanted):
    assert color(outcome) is wanted
    assert color(outcome, expect="pass") is wanted


@pytest.mark.parametrize(
    "label",
    [
        "did not pass",
        "FAIL (0 passes)",
        "1%",
        "95/100",
        "passed",
        "pass",
        "100%",
        "true",
    ],
)
def test_a_label_is_never_parsed(label):
    for expectation in ({}, {"expect": "pass"}, {"expect": "share", "at_least": 0.01}):
        assert color(Outcome(label=label), **expectation) is UNKNOWN
    assert color(Outcome(kind=OutcomeKind.FAIL, label=label)) is RED
    assert color(score(1, 100, label=label)) is UNKNOWN


def test_the_sentence_says_that_no_expectation_says_which_score_passes():
    said = outcome_verdict(score(95, 100)).sentence
    assert "95 of 100" in said
    assert "no expectation says which score passes" in said


@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [
        (score(4, 5), GREEN),
        (score(0.8, 1), GREEN),
        (score(3, 5), RED),
        (score(95, 100), GREEN),
        (score(0.1 + 0.7, 1), GREEN),
        (score(4), UNKNOWN),
        (PASSED, GREEN),
        (FAILED, RED),
        (Outcome(), UNKNOWN),
    ],
)
def test_a_share_of_the_score_is_asked_of_typed_scores(outcome, wanted):
    assert color(outcome, expect="share", at_least=0.8) is wanted


def test_points_are_asked_of_scores_and_a_pass_has_none():
    assert color(score(3), expect="points", at_least=3) is GREEN
    assert color(score(2, 5), expect="points", at_least=3) is RED
    assert color(PASSED, expect="points", at_least=3) is UNKNOWN
    assert color(FAILED, expect="points", at_least=3) is RED
    assert color(score(float("nan")), expect="points", at_least=3) is UNKNOWN


def test_a_declared_label_is_compared_letter_by_letter():
    labels = ["did not pass", "1%"]
    assert color(Outcome(label="1%"), expect="label", labels=labels) is GREEN
    assert color(Outcome(label="1 %"), expect="label", labels=labels) is RED
    assert color(PASSED, expect="label", labels=labels) is UNKNOWN


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, ""),
        ({"expect": "nearly"}, "expect"),
        ({"expect": "pass", "at_least": 1}, "at_least"),
        ({"expect": "share"}, "at_least"),
        ({"expect": "share", "at_least": 0}, "at_least"),
        ({"expect": "share", "at_least": 1.01}, "at_least"),
        ({"expect": "share", "at_least": True}, "at_least"),
        ({"expect": "points", "at_least": float("nan")}, "at_least"),
        ({"expect": "points", "at_least": 1e15}, "at_least"),
        ({"expect": "label"}, "labels"),
        ({"expect": "label", "labels": [""]}, "labels"),
        ({"expect": "pass", "labels": ["a"]}, "labels"),
        ({"expect": "pass", "more": 1}, ""),
        ([], ""),
    ],
)
def test_a_wrong_expectation_is_refused_with_its_field(value, field):
    with pytest.raises(BadDefinition) as refused:
        decoded_expectation(value)
    assert refused.value.field == field
    assert str(refused.value).endswith(".")


def test_the_closest_expectation_of_a_task_is_taken():
    kinds = {
        "*": {"expect": "pass"},
        "refund *": {"expect": "share", "at_least": 0.5},
        "refund 1?": {"expect": "share", "at_least": 0.6},
        "refund 12": {"expect": "share", "at_least": 0.7},
    }
    known = {name: decoded_expectation(one) for name, one in kinds.items()}
    chosen = {
        task: expectation_for(task, known)
        for task in ("refund 12", "refund 13", "refund 2", "cancel", None)
    }
    assert [one.at_least for one in chosen.values()] == [0.7, 0.6, 0.5, None, None]
    assert expectation_for("cancel", {"refund *": known["*"]}) is None
    assert expectation_for("a|b", {"a|b": known["*"]}) is known["*"]
    for one in known.values():
        assert expectation_sentence(one).endswith(".")


@given(
    kind=st.sampled_from(OutcomeKind),
    value=st.none() | st.floats(),
    out_of=st.none() | st.floats(),
    label=st.none() | st.text(max_size=20),
)
def test_no_outcome_raises_and_unknown_scores_are_never_green(
    kind, value, out_of, label
):
    outcome = Outcome(kind=kind, score=value, out_of=out_of, label=label)
    for expectation in (
        {},
        {"expect": "pass"},
        {"expect": "share", "at_least": 0.5},
        {"expect": "points", "at_least": 1},
        {"expect": "label", "labels": ["yes"]},
    ):
        found = color(outcome, **expectation)
        if kind is OutcomeKind.UNKNOWN and value is None and label != "yes":
            assert found is not GREEN
