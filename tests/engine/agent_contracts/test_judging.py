"""All contracts of an agent count, over every invocation; nothing hidden is guessed."""

from __future__ import annotations

import pytest

from apps.engine.agent_contracts import ContractState, Counts, judge
from apps.engine.conduct import Conduct, conducts_of, whole_conduct
from apps.engine.trace import Body, StepStatus
from tests.engine.agent_contracts.agents import (
    BROKEN,
    DOES_NOT_APPLY,
    HELD,
    UNDECIDED,
    answer,
    conduct,
    contract,
    crashed,
    invocation,
    refund,
    state,
)
from tests.engine.traces import call, tool, trace_of

SECRET = "[redacted: e-mail address]"


def routes(expected, **spec):
    return contract(kind="equality", path="route", expected=expected, **spec)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_contracts_of_one_name_and_kind_both_count(order):
    both = [routes("billing", name="route"), routes("sales", name="route")]
    contracts = [both[place] for place in order]
    found = judge(conduct(invocation({"route": "billing"})), contracts)
    assert len(found.entries) == 2
    assert found.counts == Counts(held=1, broken=1)
    assert found.counts.state is BROKEN
    assert [one.state for one in found.by_contract] == [
        [HELD, BROKEN][place] for place in order
    ]


def test_every_invocation_is_judged_and_named():
    agent = conduct(
        invocation({"route": "billing"}),
        crashed(),
        invocation(None),
        invocation({"route": "sales"}),
    )
    found = judge(agent, [routes("billing"), routes("billing", tasks="b")], task="a")
    assert [one.invocation for one in found.entries] == [0, 1, 2, 3] * 2
    assert found.by_contract == (
        Counts(held=1, broken=2, undecided=1),
        Counts(does_not_apply=4),
    )
    assert found.counts_of(0).applied == 4
    assert found.counts_of(1).state is DOES_NOT_APPLY


def test_errors_stay_in_the_denominator():
    agent = conduct(invocation({"route": "billing"}), *[crashed()] * 4)
    counts = judge(agent, [routes("billing")]).counts
    assert (counts.held, counts.applied, counts.state) == (1, 5, BROKEN)


def test_one_undecided_leaves_the_agent_undecided_not_held():
    agent = conduct(invocation({"route": "billing"}), invocation(None))
    assert judge(agent, [routes("billing")]).counts.state is UNDECIDED


def test_without_contracts_nothing_is_held():
    found = judge(conduct(invocation({"route": "billing"})), [])
    assert found.entries == ()
    assert found.counts.state is DOES_NOT_APPLY


def test_after_the_budget_of_a_contract_is_spent_the_rest_is_undecided():
    text = "a" * 60_000
    pattern = contract(kind="regex", pattern="(?:a{1,30}b|c){20}x")
    found = judge(conduct(*[invocation(text)] * 40), [pattern])
    states = [one.answer.state for one in found.entries]
    assert states[-1] is UNDECIDED
    assert "more work" in found.entries[-1].answer.sentence
    assert HELD not in states


def test_the_conducts_of_a_trace_can_be_judged():
    steps = (
        call(0, step={"body": Body(input="where?", output="```json\n[1]\n```")}),
        tool(1, "refund", invocation=0, body=Body(input={"amount": 5})),
    )
    trace = trace_of(*steps)
    once = contract(
        kind="temporal",
        temporal={
            "operator": "at_most",
            "n": 1,
            "select": {"kind": "tool_call", "name": "refund"},
        },
    )
    listed = contract(kind="equality", path="[0]", expected=1)
    for agent in (*conducts_of(trace), whole_conduct(trace)):
        assert judge(agent, [once, listed]).counts == Counts(held=2)


# What was redacted


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "equality", "path": "to", "expected": "a@b.c"},
        {"kind": "one_of", "path": "to", "values": ["a@b.c"]},
        {"kind": "range", "path": "to", "minimum": 1},
        {"kind": "regex", "path": "to", "pattern": "redacted"},
        {"kind": "regex", "pattern": "a@b.c"},
        {"kind": "subset", "expected": {"to": "a@b.c"}},
        {
            "kind": "json_schema",
            "json_schema": {"properties": {"to": {"minLength": 9}}},
        },
        {"kind": "cel", "expression": "output.to != 'a@b.c'"},
        {"kind": "cel", "expression": "output['to'] != 'a@b.c'"},
        {"kind": "equality", "path": "list[?to=='a@b.c'] | [0]", "expected": None},
        {
            "kind": "when_then",
            "when": {"expression": "to != 'a@b.c'", "of": "output"},
            "then": {"kind": "equality", "path": "route", "expected": "billing"},
        },
    ],
)
def test_what_was_redacted_is_neither_held_nor_broken(spec):
    one = invocation({"route": "billing", "to": SECRET, "list": [{"to": SECRET}]})
    assert answer(one, **spec).state is UNDECIDED


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "equality", "path": "route", "expected": "billing"},
        {"kind": "subset", "expected": {"route": "billing"}},
        {"kind": "json_schema", "json_schema": {"required": ["route"]}},
        {"kind": "cel", "expression": "output.route == 'billing'"},
    ],
)
def test_a_redacted_field_beside_what_is_read_hides_nothing(spec):
    one = invocation({"route": "billing", "to": SECRET}, given=f"Write to {SECRET}!")
    assert state(one, **spec) is HELD


def test_redacted_arguments_are_undecided_by_the_field():
    one = invocation("done", tools=(refund(0, {"to": SECRET, "amount": 5}),))
    spec = {"kind": "equality", "subject": "calls", "tool": "refund"}
    assert state(one, path="amount", expected=5, **spec) is HELD
    assert state(one, path="to", expected="a@b.c", **spec) is UNDECIDED


# Expressions and conditions


def test_expressions_see_tools_calls_agent_and_status():
    calls = (refund(0, {"amount": 5}), refund(1, {"amount": 7}, "log"))
    one = invocation("done", tools=calls)
    for expression in (
        "tools == ['refund', 'log']",
        "calls[0].arguments.amount < 6.0 && !calls[0].failed",
        "calls.all(c, c.arguments.amount > 1.0)",
        "agent == 'router' && status == 'ok'",
    ):
        assert state(one, kind="cel", expression=expression) is HELD
    assert state(one, kind="cel", expression="tools.size() > 2") is BROKEN
    assert state(one, kind="cel", expression="calls[5].failed") is UNDECIDED
    assert state(one, kind="cel", expression="input == 'a'") is UNDECIDED
    assert state(one, kind="cel", expression="input == 'a' || true") is HELD


def test_a_condition_over_an_input_that_is_not_recorded_is_undecided():
    one = invocation({"route": "billing"})
    spec = {"kind": "equality", "path": "route", "expected": "billing"}
    found = answer(one, applies_when={"expression": "plan"}, **spec)
    assert found.state is UNDECIDED
    assert "whether the contract applies is not known" in found.sentence
    cel = {"language": "cel", "expression": "input.plan == 'gold'"}
    assert state(one, applies_when=cel, **spec) is UNDECIDED


def test_a_path_that_does_not_fit_the_value_is_undecided_without_telling_it():
    one = invocation({"n": 12345})
    found = answer(one, kind="equality", path="length(n)", expected=1)
    assert found.state is UNDECIDED
    assert "12345" not in found.sentence


@pytest.mark.parametrize(
    ("temporal", "wanted"),
    [
        ({"operator": "eventually", "select": {"name": "refund"}}, HELD),
        ({"operator": "eventually", "select": {"name": "cancel"}}, BROKEN),
        ({"operator": "never", "select": {"name": "refund"}}, BROKEN),
        (
            {
                "operator": "precedes",
                "select": {"name": "refund"},
                "before": {"name": "lookup"},
            },
            BROKEN,
        ),
        (
            {
                "operator": "always",
                "select": {"name": "cancel"},
                "then": {"status": "ok"},
            },
            DOES_NOT_APPLY,
        ),
    ],
)
def test_temporal_contracts_are_over_the_own_steps(temporal, wanted):
    one = invocation("done", tools=(refund(0, {"amount": 5}),))
    assert state(one, kind="temporal", temporal=temporal) is wanted


def test_a_temporal_contract_with_an_undecided_step_is_not_held():
    large = {"language": "cel", "expression": "step.arguments.amount > 10.0"}
    select = {"kind": "tool_call", "condition": large}
    known, unknown = refund(0, {"amount": 5}), refund(1, None)
    one = invocation("done", tools=(known, unknown))
    spec = {"kind": "temporal"}
    assert (
        state(one, temporal={"operator": "never", "select": select}, **spec)
        is UNDECIDED
    )
    once = {"operator": "at_most", "n": 1, "select": select}
    assert state(one, temporal=once, **spec) is HELD


def test_an_unfinished_recording_leaves_what_must_come_undecided():
    one = invocation("x", status=StepStatus.UNFINISHED)
    wanted = {"operator": "eventually", "select": {"name": "refund"}}
    assert state(one, kind="temporal", temporal=wanted) is UNDECIDED
    bare = invocation(None, steps=(), status=StepStatus.OK)
    assert state(bare, kind="temporal", temporal=wanted) is UNDECIDED


def test_the_same_contracts_say_the_same_of_the_same_conduct():
    agent = Conduct("router", (invocation({"route": "billing"}), crashed()))
    contracts = [routes("billing"), routes("sales")]
    assert judge(agent, contracts) == judge(agent, contracts)
    assert {one.answer.state for one in judge(agent, contracts).entries} <= set(
        ContractState
    )
