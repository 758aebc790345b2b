"""The verdict of an agent: what makes it red, unstable, green, and what never does."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.masking import (
    COLOURS,
    OUTCOME_WORDS,
    WORDS,
    AgentEvidence,
    Colour,
    Extent,
    OutcomeColour,
    ReasonCode,
    verdict_of,
    worst,
)

ICONS = Path(__file__).parents[3] / "static" / "icons.svg"


def evidence(**counts):
    """An agent that did something in three traces of two tasks, and `counts`."""
    return AgentEvidence(**({"agent": "memory", "traces": 3, "tasks": 2} | counts))


def codes(reasons):
    return [reason.code for reason in reasons]


def test_an_agent_that_no_task_exercises_is_unknown():
    found = verdict_of(AgentEvidence(agent="escalation", contracts=2))
    assert found.colour is Colour.UNKNOWN
    assert found.reasons[0].code is ReasonCode.NOT_EXERCISED
    assert found.reasons[0].sentence == "No task exercises it."


def test_an_agent_that_a_trace_does_not_exercise_is_unknown_there():
    found = verdict_of(AgentEvidence(agent="a", extent=Extent.TRACE, contracts=1))
    assert found.reasons[0].sentence == "This trace does not exercise it."


def test_an_agent_without_contract_is_unknown_however_stable_it_is():
    found = verdict_of(evidence(stable=50, recalled=9))
    assert found.colour is Colour.UNKNOWN
    assert found.reasons[0].code is ReasonCode.NO_CONTRACT
    assert ReasonCode.TASKS_STABLE in codes(found.reasons)


def test_contracts_that_never_applied_leave_an_agent_unknown():
    found = verdict_of(evidence(contracts=2, not_applying=8, stable=2))
    assert found.colour is Colour.UNKNOWN
    assert found.reasons[0].sentence == "No contract of 2 applied to what it did."


def test_contracts_of_which_none_could_be_decided_leave_an_agent_unknown():
    found = verdict_of(evidence(contracts=1, undecided=4))
    assert found.colour is Colour.UNKNOWN
    assert found.reasons[0].code is ReasonCode.ALL_UNDECIDED


def test_an_agent_whose_every_invocation_failed_is_not_green():
    found = verdict_of(evidence(contracts=1, held=3, invocations=3, failed=3))
    assert found.colour is Colour.UNKNOWN
    assert found.reasons[0].sentence == "All of its 3 invocations failed."


def test_a_contract_that_applied_and_held_makes_an_agent_green():
    found = verdict_of(evidence(contracts=1, held=3, stable=2))
    assert found.colour is Colour.GREEN
    assert codes(found.reasons) == [
        ReasonCode.CONTRACTS_HELD,
        ReasonCode.TASKS_STABLE,
    ]
    assert "3 of 3 (100 %; 95 % interval 43.9 % to 100 %)" in found.reasons[0].sentence
    assert found.gaps == ()


def test_green_says_what_could_not_be_decided_and_what_never_applied():
    found = verdict_of(
        evidence(contracts=3, contracts_applied=1, held=3, undecided=2, insufficient=1)
    )
    assert found.colour is Colour.GREEN
    assert codes(found.gaps) == [
        ReasonCode.UNDECIDED,
        ReasonCode.NEVER_APPLIED,
        ReasonCode.TASKS_INSUFFICIENT,
    ]
    assert (found.gaps[0].k, found.gaps[0].n) == (2, 5)
    assert (found.gaps[1].k, found.gaps[1].n) == (2, 3)


def test_all_contracts_count_so_one_broken_among_many_held_is_red():
    found = verdict_of(evidence(contracts=2, held=99, broken=1))
    assert found.colour is Colour.RED
    assert found.reasons[0].code is ReasonCode.CONTRACT_BROKEN
    assert (found.reasons[0].k, found.reasons[0].n) == (1, 100)
    assert found.reasons[0].share.interval.low > 0


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"findings": 1}, ReasonCode.FINDING),
        ({"lost": 1, "recalled": 9}, ReasonCode.FACT_LOST),
        ({"contradicted": 1}, ReasonCode.FACT_CONTRADICTED),
    ],
)
def test_a_finding_or_a_planted_fact_gone_is_red_though_contracts_held(counts, code):
    found = verdict_of(evidence(contracts=1, held=5, stable=2, **counts))
    assert found.colour is Colour.RED
    assert found.reasons[0].code is code


@pytest.mark.parametrize("word", ["drifting", "non_deterministic"])
def test_a_task_that_does_not_agree_makes_an_agent_unstable(word):
    found = verdict_of(evidence(contracts=1, held=5, stable=1, **{word: 1}))
    assert found.colour is Colour.UNSTABLE
    assert (found.reasons[0].k, found.reasons[0].n) == (1, 2)


def test_an_insufficient_task_is_a_gap_and_not_unstable():
    assert verdict_of(evidence(contracts=1, held=1, insufficient=2)).colour is (
        Colour.GREEN
    )


def test_red_outranks_unstable_and_both_are_said():
    found = verdict_of(evidence(contracts=1, broken=1, drifting=2))
    assert found.colour is Colour.RED
    assert codes(found.reasons) == [
        ReasonCode.CONTRACT_BROKEN,
        ReasonCode.DRIFTING,
    ]


def test_an_unstable_agent_without_contract_has_that_among_its_gaps():
    found = verdict_of(evidence(drifting=1))
    assert found.colour is Colour.UNSTABLE
    assert codes(found.gaps) == [ReasonCode.NO_CONTRACT]


def test_failed_invocations_are_named_and_do_not_decide_alone():
    found = verdict_of(evidence(contracts=1, held=3, invocations=5, failed=2))
    assert found.colour is Colour.GREEN
    assert found.reasons[-1].code is ReasonCode.INVOCATIONS_FAILED
    assert "2 of 5" in found.reasons[-1].sentence


def test_stable_but_wrong_tasks_are_named():
    found = verdict_of(evidence(contracts=1, held=3, stable=2, stable_but_wrong=1))
    assert "1 of 2" in found.reasons[-1].sentence
    assert found.reasons[-1].code is ReasonCode.STABLE_BUT_WRONG


def test_a_count_without_denominator_has_no_interval():
    assert verdict_of(evidence(findings=3)).reasons[0].share is None


@pytest.mark.parametrize(
    ("counts", "match"),
    [
        ({"held": 1}, "has results of contracts but no contract"),
        ({"contracts": 1, "held": -1}, "below 0"),
        ({"invocations": 1, "failed": 2}, "failed than there are"),
        ({"stable": 1, "stable_but_wrong": 2}, "wrong than are stable"),
        ({"contracts": 1, "contracts_applied": 2}, "applied than there are"),
    ],
)
def test_counts_that_contradict_each_other_are_refused(counts, match):
    with pytest.raises(ValueError, match=match):
        verdict_of(evidence(**counts))


def test_the_worst_colour_of_none_is_unknown_and_red_beats_all():
    assert worst([]) is Colour.UNKNOWN
    assert worst([Colour.GREEN, Colour.UNKNOWN]) is Colour.UNKNOWN
    assert worst([Colour.UNKNOWN, Colour.UNSTABLE]) is Colour.UNSTABLE
    assert worst(COLOURS) is Colour.RED


def test_every_colour_has_a_word_and_a_symbol_that_is_there():
    drawn = set(re.findall(r'symbol id="([^"]+)"', ICONS.read_text()))
    for words in (WORDS, OUTCOME_WORDS):
        assert {each.symbol for each in words.values()} <= drawn
        assert len({each.label for each in words.values()}) == len(words)
    assert set(WORDS) == set(Colour) == set(COLOURS)
    assert set(OUTCOME_WORDS) == set(OutcomeColour)
    assert len({each.symbol for each in WORDS.values()}) == len(WORDS)


small = st.integers(0, 3)
EXERCISED = ["held", "broken", "undecided", "not_applying"]
COUNTS = (
    *("traces", "contracts", *EXERCISED),
    *("stable", "drifting", "non_deterministic", "insufficient"),
    *("recalled", "lost", "contradicted", "findings"),
)
evidences = st.fixed_dictionaries(dict.fromkeys(COUNTS, small)).map(
    lambda counts: AgentEvidence(
        agent="a",
        **(counts if counts["contracts"] else counts | dict.fromkeys(EXERCISED, 0)),
    )
)


@given(evidences)
def test_green_always_has_a_contract_that_held_and_nothing_against_it(found):
    verdict = verdict_of(found)
    assert verdict.reasons
    if verdict.colour is Colour.GREEN:
        assert found.held
        assert found.traces
        against = found.broken + found.drifting + found.non_deterministic
        assert against + found.lost + found.contradicted + found.findings == 0


@given(evidences)
def test_without_its_contracts_an_agent_is_never_green(found):
    before = verdict_of(found)
    without = msgspec.structs.replace(found, contracts=0, **dict.fromkeys(EXERCISED, 0))
    after = verdict_of(without)
    assert after.colour is not Colour.GREEN
    only_contracts = {ReasonCode.CONTRACT_BROKEN, ReasonCode.CONTRACTS_HELD}
    neutral = {ReasonCode.TASKS_STABLE, ReasonCode.FACTS_RECALLED}
    if before.colour is Colour.GREEN or (
        before.colour is Colour.RED
        and set(codes(before.reasons)) <= only_contracts | neutral
    ):
        assert after.colour is Colour.UNKNOWN


@given(evidences)
def test_another_broken_contract_is_always_red(found):
    more = msgspec.structs.replace(
        found, contracts=found.contracts + 1, broken=found.broken + 1
    )
    assert verdict_of(more).colour is Colour.RED
