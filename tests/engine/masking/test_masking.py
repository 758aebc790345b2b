"""Masking, its mirror and the gaps, over every colour and outcome."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.masking import (
    MASKABLE,
    AgentCounts,
    AgentEvidence,
    Colour,
    GapKind,
    Judged,
    Masked,
    OutcomeColour,
    OutcomeCounts,
    agent_counts,
    is_unseen_failure,
    masked,
    masking_report,
    outcome_counts,
    outcome_of,
    outcome_of_trials,
    verdict_of,
)
from apps.engine.trace import Outcome, OutcomeKind

GREEN, RED = Colour.GREEN, Colour.RED
UNSTABLE, UNKNOWN = Colour.UNSTABLE, Colour.UNKNOWN
PASSED, FAILED = OutcomeColour.GREEN, OutcomeColour.RED


def verdict(agent, colour):
    """A verdict of that colour, made of evidence."""
    counts = {
        GREEN: {"contracts": 1, "held": 3},
        RED: {"contracts": 1, "held": 2, "broken": 1},
        UNSTABLE: {"drifting": 1},
        UNKNOWN: {},
    }[colour]
    found = verdict_of(AgentEvidence(agent=agent, traces=3, **counts))
    assert found.colour is colour
    return found


def report_of(traces, verdicts, tasks=()):
    return masking_report(
        verdicts=verdicts,
        counts=agent_counts(traces, tasks),
        traces=outcome_counts(traces),
        tasks=outcome_counts(tasks),
    )


@pytest.mark.parametrize(("colour", "outcome"), list(product(Colour, OutcomeColour)))
def test_an_agent_is_masked_only_if_it_is_red_or_unstable_and_the_outcome_green(
    colour, outcome
):
    expected = {(RED, PASSED), (UNSTABLE, PASSED)}
    assert bool(masked({"a": colour}, outcome)) is ((colour, outcome) in expected)


@pytest.mark.parametrize(("colour", "outcome"), list(product(Colour, OutcomeColour)))
def test_a_failure_is_unseen_only_if_every_agent_is_green(colour, outcome):
    alone = is_unseen_failure({"a": colour}, outcome)
    beside = is_unseen_failure({"a": colour, "b": GREEN}, outcome)
    assert alone is beside is ((colour, outcome) == (GREEN, FAILED))


def test_a_failure_without_any_agent_is_no_gap_in_contracts():
    assert not is_unseen_failure({}, FAILED)


def test_masked_agents_come_red_first_then_by_name():
    agents = {"b": UNSTABLE, "d": RED, "c": RED, "a": GREEN, "e": UNKNOWN}
    assert masked(agents, PASSED) == (("c", RED), ("d", RED), ("b", UNSTABLE))


@pytest.mark.parametrize(
    ("outcome", "colour"),
    [
        (Outcome(kind=OutcomeKind.PASS), PASSED),
        (Outcome(kind=OutcomeKind.FAIL), FAILED),
        (Outcome(), OutcomeColour.UNKNOWN),
        (
            Outcome(kind=OutcomeKind.SCORE, score=95, out_of=100),
            OutcomeColour.UNKNOWN,
        ),
        (
            Outcome(kind=OutcomeKind.SCORE, score=0.01, out_of=1),
            OutcomeColour.UNKNOWN,
        ),
        (Outcome(label="did not pass"), OutcomeColour.UNKNOWN),
        (
            Outcome(kind=OutcomeKind.FAIL, label="FAIL (0 passes)"),
            OutcomeColour.RED,
        ),
    ],
)
def test_an_outcome_is_typed_and_its_wording_is_never_read(outcome, colour):
    assert outcome_of(outcome) is colour


@pytest.mark.parametrize(
    ("passed", "colour"),
    [
        ([], OutcomeColour.UNKNOWN),
        ([None, None], OutcomeColour.UNKNOWN),
        ([True, True], PASSED),
        ([True, None], PASSED),
        ([False, None], FAILED),
        ([True, False, True], OutcomeColour.MIXED),
    ],
)
def test_a_task_passed_only_if_every_known_trial_did(passed, colour):
    assert outcome_of_trials(passed) is colour


def test_the_headline_names_the_agent_and_how_many_passed_traces_it_was_red_in():
    traces = [
        Judged(str(n), PASSED, {"memory": RED if n < 3 else GREEN}) for n in range(12)
    ]
    found = report_of(traces, {"memory": verdict("memory", RED)})
    assert found.headline == "memory is red in 3 of 12 traces that passed."
    (masking,) = found.maskings
    assert (masking.traces.k, masking.traces.n) == (3, 12)
    assert masking.traces.interval.low == pytest.approx(0.089, abs=0.001)
    assert masking.reasons == verdict("memory", RED).reasons


def test_the_headline_says_where_an_agent_did_not_act_and_was_not_judged():
    traces = [
        Judged("1", PASSED, {"memory": RED, "router": GREEN}),
        Judged("2", PASSED, {"memory": UNKNOWN, "router": GREEN}),
        Judged("3", PASSED, {"router": GREEN}),
        Judged("4", FAILED, {"memory": RED, "router": GREEN}),
    ]
    verdicts = {"memory": verdict("memory", RED), "router": verdict("router", GREEN)}
    assert report_of(traces, verdicts).headline == (
        "memory is red in 1 of 2 traces that passed and exercise it (3 passed in all), "
        "unknown in 1."
    )


def test_the_worst_masking_leads_and_the_others_are_counted():
    traces = [
        Judged("1", PASSED, {"a": UNSTABLE, "b": UNSTABLE, "c": RED}),
        Judged("2", PASSED, {"a": UNSTABLE, "b": RED, "c": RED}),
    ]
    found = report_of(traces, {n: verdict(n, RED) for n in "abc"})
    assert [each.agent for each in found.maskings] == ["b", "c", "a"]
    assert found.headline == (
        "b is red or unstable in 2 of 2 traces that passed; 2 more agents masked."
    )


def test_a_task_masks_where_no_trace_does():
    tasks = [
        Judged("t1", PASSED, {"a": UNSTABLE}),
        Judged("t2", OutcomeColour.MIXED, {"a": UNSTABLE}),
    ]
    traces = [Judged("1", PASSED, {"a": GREEN})]
    found = report_of(traces, {"a": verdict("a", UNSTABLE)}, tasks)
    assert found.headline == "a is unstable in 1 of 1 task that passed."
    assert (found.maskings[0].tasks.k, found.maskings[0].tasks.n) == (1, 1)


def test_an_unknown_outcome_never_masks():
    traces = [Judged("1", OutcomeColour.UNKNOWN, {"a": RED})]
    found = report_of(traces, {"a": verdict("a", RED)})
    assert found.maskings == ()
    assert found.headline == (
        "No trace is known to have passed, so nothing can be masked."
    )


def test_unknown_agents_are_the_first_gaps_those_that_nothing_exercised_before_all():
    verdicts = {
        "a": verdict("a", UNSTABLE),
        "m": verdict("m", UNKNOWN),
        "z": verdict_of(AgentEvidence(agent="z", contracts=1)),
    }
    traces = [Judged("1", FAILED, {"g": GREEN})]
    found = report_of(traces, verdicts)
    assert [(gap.kind, gap.agent) for gap in found.gaps] == [
        (GapKind.AGENT_UNKNOWN, "z"),
        (GapKind.AGENT_UNKNOWN, "m"),
        (GapKind.AGENT_UNKNOWN, "g"),
        (GapKind.FAILURE_UNSEEN, ""),
        (GapKind.VERDICT_OPEN, "a"),
    ]
    assert found.gaps[0].sentence == "z is unknown: no task exercises it."
    assert found.gaps[2].sentence == "g is unknown: it was never judged."


def test_a_failed_outcome_with_every_agent_green_is_a_gap_in_the_contracts():
    traces = [
        Judged("1", FAILED, {"a": GREEN, "b": GREEN}),
        Judged("2", FAILED, {"a": GREEN, "b": UNKNOWN}),
        Judged("3", PASSED, {"a": GREEN, "b": GREEN}),
    ]
    found = report_of(traces, {n: verdict(n, GREEN) for n in "ab"})
    (gap,) = found.gaps
    assert gap.kind is GapKind.FAILURE_UNSEEN
    assert "1 of 2 (50 %" in gap.sentence
    assert gap.sentence.endswith("of the traces that failed: a gap in the contracts.")


def test_nothing_masked_still_says_who_could_not_be_judged():
    traces = [Judged("1", PASSED, {"a": GREEN, "b": UNKNOWN})]
    verdicts = {"a": verdict("a", GREEN), "b": verdict("b", UNKNOWN)}
    assert report_of(traces, verdicts).headline == (
        "No agent is red or unstable in the 1 trace that passed; 1 of 2 agents unknown."
    )
    assert report_of(traces, {"b": verdict("b", UNKNOWN)}).headline == (
        "No agent could be judged, so masking would not be seen."
    )


def test_an_agent_that_nothing_judged_in_the_passes_is_unknown_there():
    """Unstable over its tasks, and yet nobody would have seen it red behind a pass."""
    traces = [
        Judged("1", PASSED, {"a": UNKNOWN, "b": GREEN}),
        Judged("2", FAILED, {"a": RED, "b": GREEN}),
    ]
    verdicts = {"a": verdict("a", UNSTABLE), "b": verdict("b", GREEN)}
    assert report_of(traces, verdicts).headline == (
        "No agent is red or unstable in the 1 trace that passed; 1 of 2 agents unknown "
        "there."
    )
    assert report_of(traces[:1], {"a": verdicts["a"]}).headline == (
        "No agent could be judged in the 1 trace that passed, so masking would not be "
        "seen."
    )


def test_removing_the_contract_of_the_masked_agent_makes_it_unknown_and_unmasked():
    with_contract = AgentEvidence(
        agent="memory", traces=12, contracts=1, held=9, broken=3, stable=4
    )
    without = AgentEvidence(agent="memory", traces=12, stable=4)
    before, after = verdict_of(with_contract), verdict_of(without)
    assert (before.colour, after.colour) == (RED, UNKNOWN)
    traces = [Judged("1", PASSED, {"memory": after.colour})]
    found = report_of(traces, {"memory": after})
    assert found.maskings == ()
    assert found.gaps[0].agent == "memory"


def test_counts_from_a_database_give_the_same_report():
    traces = [
        Judged("1", PASSED, {"a": RED, "b": GREEN}),
        Judged("2", PASSED, {"a": UNSTABLE}),
        Judged("3", FAILED, {"b": GREEN}),
    ]
    verdicts = {"a": verdict("a", RED), "b": verdict("b", GREEN)}
    counts = [
        AgentCounts("b", Masked(passed=1)),
        AgentCounts("a", Masked(red=1, unstable=1, passed=2)),
    ]
    given_counts = masking_report(
        verdicts=verdicts,
        counts=counts,
        traces=OutcomeCounts(passed=2, failed=1, all_green=1),
        tasks=OutcomeCounts(),
    )
    assert given_counts == report_of(traces, verdicts)


judged = st.lists(
    st.tuples(
        st.sampled_from(list(OutcomeColour)),
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from(list(Colour))),
    ),
    max_size=12,
).map(
    lambda rows: [Judged(str(n), outcome, of) for n, (outcome, of) in enumerate(rows)]
)


@given(judged, st.randoms(use_true_random=False))
def test_masking_is_only_where_the_outcome_is_green_and_the_agent_red_or_unstable(
    traces, order: random.Random
):
    verdicts = {name: verdict(name, UNKNOWN) for name in "abcd"}
    found = report_of(traces, verdicts)
    for masking in found.maskings:
        where = [
            each
            for each in traces
            if each.outcome is PASSED and each.agents.get(masking.agent) in MASKABLE
        ]
        assert masking.traces.k == len(where) > 0
        assert masking.traces.k <= masking.traces.n
        assert masking.colour in {each.agents[masking.agent] for each in where}
    hidden = {name for each in traces for name, _ in masked(each.agents, each.outcome)}
    assert {masking.agent for masking in found.maskings} == hidden
    shuffled = list(traces)
    order.shuffle(shuffled)
    assert report_of(shuffled, verdicts) == found
