"""What replays add to a verdict: they may speak against an agent, never for it alone."""

from __future__ import annotations

import pytest

from apps.engine.masking import (
    AgentCounts,
    AgentEvidence,
    AloneEvidence,
    Colour,
    Masked,
    OutcomeCounts,
    ReasonCode,
    masking_report,
    verdict_of,
)

IN_THE_PIPELINE = {"traces": 3, "tasks": 2, "contracts": 1, "held": 3}


def verdict(*, in_the_pipeline=True, **alone):
    recorded = IN_THE_PIPELINE if in_the_pipeline else {}
    evidence = AgentEvidence(
        agent="memory", alone=AloneEvidence(**({"runs": 5} | alone)), **recorded
    )
    return verdict_of(evidence)


ALL_GREEN = Masked(passed=20)


def report(found, *, traces=ALL_GREEN, passed=20):
    return masking_report(
        verdicts={"memory": found},
        counts=[AgentCounts("memory", traces)],
        traces=OutcomeCounts(passed=passed),
        tasks=OutcomeCounts(),
    )


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"held": 2, "broken": 3}, ReasonCode.ALONE_BROKEN),
        ({"breaches": 1}, ReasonCode.ALONE_BREACH),
        ({"recalled": 4, "lost": 1}, ReasonCode.ALONE_LOST),
        ({"recalled": 4, "contradicted": 1}, ReasonCode.ALONE_CONTRADICTED),
    ],
)
def test_what_breaks_alone_is_red_though_everything_held_in_the_pipeline(counts, code):
    found = verdict(**counts)
    assert found.colour is Colour.RED
    assert found.reasons[0].code is code
    assert found.reasons[0].share.words in found.reasons[0].sentence


@pytest.mark.parametrize("word", ["non_deterministic", "drifting"])
def test_a_case_that_does_not_settle_alone_makes_an_agent_unstable(word):
    found = verdict(**{word: 1, "stable": 3})
    assert found.colour is Colour.UNSTABLE
    assert found.reasons[0].share.n == 4


def test_contracts_that_held_alone_make_no_agent_green():
    found = verdict(in_the_pipeline=False, held=50, stable=9)
    assert found.colour is Colour.UNKNOWN
    assert found.reasons[0].code is ReasonCode.NOT_EXERCISED
    assert ReasonCode.ALONE_HELD in [reason.code for reason in found.reasons]


def test_runs_that_did_not_finish_and_too_few_runs_are_said_and_decide_nothing():
    found = verdict(failed=5, insufficient=2)
    assert found.colour is Colour.GREEN
    [said] = [one for one in found.reasons if one.code is ReasonCode.ALONE_FAILED]
    assert (said.k, said.n) == (5, 5)


def test_an_agent_that_is_red_alone_is_masked_by_the_traces_that_passed():
    found = report(verdict(held=2, broken=3))
    assert [one.agent for one in found.maskings] == ["memory"]
    assert found.maskings[0].colour is Colour.RED
    assert found.headline == (
        "memory is red when it runs alone, and in none of the 20 traces that passed "
        "and exercise it."
    )


def test_replays_are_named_beside_the_traces_in_which_it_is_red():
    found = report(verdict(drifting=1), traces=Masked(red=2, passed=20))
    assert found.headline == (
        "memory is red in 2 of 20 traces that passed, and unstable when it runs alone."
    )


def test_replays_of_an_agent_that_no_passed_trace_exercises_mask_nothing():
    assert report(verdict(broken=3), traces=Masked(), passed=20).maskings == ()
    assert report(verdict(held=3, stable=2)).maskings == ()
