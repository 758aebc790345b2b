"""The score of one trace: who decided what, what contracts say, what is masked."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.agent_contracts import (
    compiled,
    decoded_agent_contract,
    decoded_expectation,
)
from apps.engine.branching import unpacked
from apps.engine.extraction import decoded_decision
from apps.engine.trace import AgentInvocation, Body, Outcome, OutcomeKind
from apps.engine.trials import AgentAsked, Asked, score_trace
from tests.desks import FAIL, PASS, UNKNOWN, desk_trace
from tests.engine.memory.conversations import Talk, fact
from tests.engine.random_traces import shuffled, traces


def contract(**spec):
    return compiled(decoded_agent_contract(spec))


def says(pattern: str, name: str = "says it"):
    return contract(name=name, kind="regex", pattern=pattern, subject="output")


def asked(*contracts, agent: str = "router", **fields) -> Asked:
    return Asked(agents={agent: AgentAsked(contracts=contracts)}, **fields)


def routed(route: str = "a", **fields):
    return desk_trace(("router", [("says", {"route": route})]), **fields)


def only(trace, wanted: Asked | None = None, findings=()):
    (conduct,) = score_trace(trace, wanted, findings).conducts
    return conduct


def test_an_agent_without_contracts_is_unknown_however_well_it_ended():
    conduct = only(routed())
    assert conduct.colour == "unknown"
    assert (conduct.held, conduct.broken) == (0, 0)
    assert conduct.decided.state == "decided"


def test_all_contracts_count_and_a_holding_one_hides_no_broken_one():
    for contracts in ((says("a"), says("z")), (says("z"), says("a"))):
        conduct = only(routed(), asked(*contracts))
        assert conduct.colour == "red"
        assert (conduct.held, conduct.broken) == (1, 1)
        assert len(conduct.judged) == 2
        broken = next(one for one in conduct.judged if one["broken"])
        assert broken["sentence"].endswith(".")


def test_two_contracts_of_one_name_are_two():
    conduct = only(routed(), asked(says("a", "same"), says("z", "same")))
    assert [one["name"] for one in conduct.judged] == ["same", "same"]
    assert conduct.colour == "red"


def test_a_contract_that_held_makes_green_and_taken_away_leaves_unknown():
    assert only(routed(), asked(says("a"))).colour == "green"
    assert only(routed(), asked()).colour == "unknown"


def test_a_contract_that_applies_to_nothing_leaves_unknown():
    elsewhere = contract(name="n", kind="regex", pattern="a", tasks="other *")
    conduct = only(routed(), asked(elsewhere))
    assert (conduct.colour, conduct.not_applying) == ("unknown", 1)


def test_every_invocation_of_an_agent_is_asked():
    trace = desk_trace(
        ("router", [("says", {"route": "a"})]), ("router", [("says", {"route": "z"})])
    )
    conduct = only(trace, asked(says("a")))
    assert conduct.invocations == 2
    assert (conduct.held, conduct.broken) == (1, 1)
    assert conduct.judged[0]["invocation"] == 1


def test_a_finding_makes_its_agent_red_and_no_other():
    trace = desk_trace(("router", [("says", "a")]), ("billing", [("says", "b")]))
    wanted = Asked(
        agents={
            "router": AgentAsked(contracts=(says("a"),)),
            "billing": AgentAsked(contracts=(says("b"),)),
        }
    )
    score = score_trace(trace, wanted, ["Router", "router"])
    router, billing = score.conducts
    assert (router.colour, router.findings) == ("red", 2)
    assert (billing.colour, billing.findings) == ("green", 0)
    assert score.masked == ("router",)


def test_a_finding_about_the_whole_trace_is_about_its_only_agent():
    nameless = msgspec.structs.replace(
        routed(), invocations=(AgentInvocation(number=0, agent=None),)
    )
    assert only(nameless, None, [""]).findings == 1
    assert only(routed(), None, [""]).colour == "red"


def test_a_finding_about_the_whole_trace_is_about_none_of_several_agents():
    trace = desk_trace(("router", [("says", "a")]), ("billing", [("says", "b")]))
    score = score_trace(trace, None, [""])
    assert [one.findings for one in score.conducts] == [0, 0]


def test_a_finding_at_an_agent_that_did_not_act_here_changes_nothing():
    assert only(routed(), None, ["somebody else"]).findings == 0


def test_names_that_stand_for_one_agent_are_one_conduct():
    trace = desk_trace(
        ("RouterAgent", [("says", "a")]), ("dispatcher", [("says", "z")])
    )
    wanted = Asked(
        names={"dispatcher": "router agent"},
        agents={"router agent": AgentAsked(contracts=(says("^a$"),))},
    )
    conduct = only(trace, wanted, ["Dispatcher"])
    assert (conduct.agent, conduct.name) == ("router agent", "RouterAgent")
    assert conduct.invocations == 2
    assert (conduct.held, conduct.broken, conduct.findings) == (1, 1, 1)
    assert conduct.decided.shown == "z"


@pytest.mark.parametrize(
    ("outcome", "masked", "gap"),
    [(PASS, ("router",), False), (FAIL, (), False), (UNKNOWN, (), False)],
)
def test_a_red_agent_is_masked_by_a_green_outcome_only(outcome, masked, gap):
    score = score_trace(routed(outcome=outcome), asked(says("z")))
    assert (score.masked, score.is_gap) == (masked, gap)


def test_a_failed_trace_of_green_agents_is_a_gap_and_one_of_unknown_ones_is_none():
    assert score_trace(routed(outcome=FAIL), asked(says("a"))).is_gap
    assert not score_trace(routed(outcome=FAIL), asked()).is_gap


def test_an_unknown_agent_behind_a_green_outcome_is_not_masked():
    assert score_trace(routed()).masked == ()


def test_an_outcome_is_typed_and_its_prose_is_never_read():
    for label in ("did not pass", "FAIL (0 passes)", "1%", "95/100"):
        outcome = Outcome(kind=OutcomeKind.UNKNOWN, label=label)
        assert score_trace(routed(outcome=outcome)).outcome == "unknown"
    score = Outcome(kind=OutcomeKind.SCORE, score=95, out_of=100)
    assert score_trace(routed(outcome=score)).outcome == "unknown"


def test_what_is_expected_of_the_outcome_of_a_task_counts_for_it():
    score = Outcome(kind=OutcomeKind.SCORE, score=95, out_of=100)
    half = decoded_expectation({"expect": "share", "at_least": 0.5})
    wanted = Asked(expectations={"ticket 1": half})
    assert score_trace(routed(outcome=score), wanted).outcome == "green"
    other = score_trace(routed(outcome=score, task="ticket 2"), wanted)
    assert other.outcome == "unknown"


def test_the_decision_that_is_defined_is_that_of_the_agent_and_of_its_contracts():
    trace = desk_trace(("router", [("says", {"route": "a", "why": "b"})]))
    why = decoded_decision({"kind": "jmespath", "expression": "why"})
    over = contract(name="n", kind="equality", expected="b", subject="decision")
    wanted = Asked(agents={"router": AgentAsked(decision=why, contracts=(over,))})
    conduct = only(trace, wanted)
    assert (conduct.decided.shown, conduct.colour) == ("b", "green")
    assert only(trace, asked(over)).colour == "red"


def test_a_crash_is_a_decision_of_no_kind_and_breaks_what_was_asked_of_the_output():
    trace = desk_trace(("router", [("breaks", "timeout")]))
    conduct = only(trace, asked(says("a")))
    assert conduct.decided.state == "failed"
    assert (conduct.failures, conduct.colour) == (1, "red")


def test_prose_is_not_compared_unless_asked():
    trace = desk_trace(("router", [("says", "I think that we should refund it.")]))
    assert only(trace).decided.state == "not_compared"
    prose = decoded_decision({"kind": "whole_output", "prose": True})
    wanted = Asked(agents={"router": AgentAsked(decision=prose)})
    assert only(trace, wanted).decided.state == "decided"


def test_long_decisions_differ_by_a_hash_where_they_are_cut():
    prose = decoded_decision({"kind": "whole_output", "prose": True})
    wanted = Asked(agents={"router": AgentAsked(decision=prose)})
    found = [
        only(desk_trace(("router", [("says", "word " * 700 + end)])), wanted).decided
        for end in ("one", "two", "one")
    ]
    assert found[0].decision != found[1].decision
    assert found[0].decision == found[2].decision
    assert all(len(one.decision) <= 2_100 for one in found)


def test_an_extracted_answer_is_a_decision_point_and_a_tool_call_is_not_two():
    trace = desk_trace(
        (
            "router",
            [("calls", ("get_order", {"id": 7}, "ok")), ("says", {"route": "a"})],
        )
    )
    points = unpacked(score_trace(trace).points)
    assert [point.label for point in points][-1] == "router: a"
    refund = desk_trace(("router", [("calls", ("refund_order", {"id": 7}, "ok"))]))
    assert len(unpacked(score_trace(refund).points)) == 1


def test_only_declared_facts_count_against_an_agent():
    talk = Talk("desk").user("My number is 84920.", 0).says("Noted.", by=0)
    trace = talk.user("What was my number?", 0).says("I do not know.", by=0).trace()
    lost = only(trace, Asked(facts=[("number", fact())]))
    assert (lost.lost, lost.colour) == (1, "red")
    assert only(trace).lost == 0


def test_a_contradiction_that_nobody_declared_is_told_and_counts_against_nobody():
    talk = Talk("desk").user("My order number is 849203.", 0)
    talk.uses("get_order", "found", by=0, order_id="849203").user("Now cancel it.", 0)
    talk.uses("cancel_order", "Error: ?", failed=True, by=0, order_id="842903")
    score = score_trace(talk.trace())
    assert [one["state"] for one in score.recalls if one["state"] != "recalled"] == [
        "contradicted"
    ]
    (conduct,) = score.conducts
    assert (conduct.contradicted, conduct.recalled) == (0, 0)
    assert conduct.colour == "unknown"


def test_what_was_given_and_given_back_is_known_by_hashes_and_absence_by_nothing():
    one, same, other = (
        score_trace(routed(asked=text)).decided
        for text in ("Refund it please", "Refund it please", "Cancel it please")
    )
    assert one.input == same.input != other.input
    assert len(one.exact) == len(one.structure) == 16
    nothing = score_trace(msgspec.structs.replace(routed(), steps=())).decided
    assert (nothing.exact, nothing.input, nothing.structure) == ("", "", "")


def test_a_shape_is_the_fields_and_the_tools_and_not_the_values():
    def shape(route, *done):
        return only(
            desk_trace(("router", [*done, ("says", {"route": route})]))
        ).decided.structure

    assert shape("a") == shape("b") != shape(["a"])
    assert shape("a") != shape("a", ("calls", ("get_order", {"id": 7}, "ok")))


@pytest.mark.parametrize(
    "held",
    [
        {"role": {}, "content": "x"},
        {"role": [], "type": {}},
        [{"type": ["text"], "text": "x"}],
        {"temperature": 10**400, "decision": 10**400},
        {"decision": math.inf},
        {"decision": "\ud800"},
        "\x00",
        {"id": [{}]},
    ],
)
def test_no_value_that_a_body_can_hold_makes_it_raise(held):
    trace = routed()
    body = Body(input=held, output=held, reasoning=held, attributes={"a": held})
    steps = [msgspec.structs.replace(step, body=body) for step in trace.steps]
    held_all = msgspec.structs.replace(trace, steps=tuple(steps))
    msgspec.json.encode(score_trace(held_all, asked(says("a"))))


CONTRACTS = (
    says("7"),
    contract(name="n", kind="equality", expected="ok", subject="decision"),
    contract(name="n", kind="range", minimum=0, maximum=9, subject="decision"),
)


@given(trace=traces(16), source=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_trace_has_one_score_in_any_order_of_its_steps(trace, source):
    wanted = Asked(
        names={"b": "a"},
        agents={"a": AgentAsked(contracts=CONTRACTS)},
        facts=[("number", fact())],
    )
    score = score_trace(trace, wanted, ["a", ""])
    again = shuffled(trace, source)
    assert score_trace(again, wanted, ["a", ""]) == score
    msgspec.json.encode(score)
    for conduct in score.conducts:
        answers = (
            conduct.held + conduct.broken + conduct.undecided + conduct.not_applying
        )
        asked_of = len(wanted.of(conduct.agent).contracts) * conduct.invocations
        assert answers == asked_of
        assert conduct.failures <= conduct.invocations
        assert (conduct.colour == "green") <= bool(conduct.held)
