"""Contracts: what breaks them, what keeps them, and what they do not apply to."""

from __future__ import annotations

import json
import random
import time

import msgspec
import pytest

from apps.engine.check import Answer, Basis, Level
from apps.engine.contracts import BadDefinition
from apps.engine.contracts.contract_check import ContractCheck
from apps.engine.contracts.spec import canonical, decoded_contract, hash_of_spec
from apps.engine.trace import Body, Step, StepKind, StepStatus
from tests.engine.contracts.stories import (
    answered,
    asked,
    cel,
    contract,
    only,
    said,
    schema,
    story,
    tools,
    used,
)

REFUND = {"kind": "tool_call", "name": "refund"}
LOOKUP = {"name": "look*"}


@pytest.mark.parametrize(
    ("names", "answer"),
    [
        (("lookup", "refund"), ("quiet", "kept")),
        (("refund", "lookup"), ("signal", "broken")),
        (("refund",), ("signal", "broken")),
        (("lookup",), ("not_applicable", "nothing_to_hold")),
        ((), ("not_applicable", "nothing_to_hold")),
        (("lookup", "refund", "refund"), ("quiet", "kept")),
    ],
)
def test_precedes_wants_an_earlier_step(names, answer):
    assert said(contract("precedes", REFUND, before=LOOKUP), tools(*names)) == answer


def test_a_step_does_not_come_before_itself():
    check = contract("precedes", REFUND, before=REFUND)
    found = only(check, tools("refund", "refund"))
    assert found.answer is Answer.SIGNAL
    assert found.evidence.steps == (0,)


@pytest.mark.parametrize(
    ("names", "answer"),
    [
        (("refund",), ("signal", "broken")),
        (("lookup",), ("quiet", "kept")),
        ((), ("not_applicable", "no_steps")),
    ],
)
def test_never_is_quiet_where_there_is_no_such_step(names, answer):
    assert said(contract("never", REFUND), tools(*names)) == answer


@pytest.mark.parametrize(
    ("names", "answer", "steps"),
    [
        (("refund", "x", "refund", "refund"), "signal", (2, 3)),
        (("refund",), "quiet", ()),
        ((), "not_applicable", ()),
    ],
)
def test_at_most_is_broken_by_those_after_the_first_n(names, answer, steps):
    found = only(contract("at_most", REFUND, n=1), tools(*names))
    assert (found.answer.value, found.evidence.steps) == (answer, steps)


def test_eventually_is_a_signal_where_the_run_ended_without_it():
    check = contract("eventually", REFUND)
    assert said(check, tools("refund")) == ("quiet", "kept")
    assert said(check, tools("lookup")) == ("signal", "never_came")
    assert said(check, tools()) == ("not_applicable", "no_steps")
    found = contract("eventually", REFUND, scope="invocation")
    assert said(found, story(agents=["A"])) == ("not_applicable", "no_steps")


@pytest.mark.parametrize(
    ("operator", "fields", "is_sure"),
    [
        ("never", {}, False),
        ("at_most", {"n": 1}, False),
        ("at_most", {"n": 2}, True),
        ("always", {"then": {"kind": "tool_call"}}, False),
    ],
)
def test_what_was_not_decided_is_not_called_so(operator, fields, is_sure):
    steps = [
        used(0, "pay", arguments={"sum": 5}),
        used(1, "pay", arguments={}),
        used(2, "pay", arguments={"sum": 500 if operator != "never" else 5}),
    ]
    chosen = {"name": "pay", "condition": cel("step.arguments.sum > 100")}
    found = only(contract(operator, chosen, **fields), story(*steps))
    assert found.answer is Answer.QUIET
    assert ("That is so." in found.reason) is is_sure
    assert ("the rest is not known" in found.reason) is not is_sure


@pytest.mark.parametrize("around", [False, True])
def test_eventually_says_nothing_of_a_run_that_had_not_ended(around):
    open_step = StepStatus.UNFINISHED
    steps = [
        Step(seq=0, kind=StepKind.AGENT, status=open_step if around else StepStatus.OK),
        used(1, "lookup", parent=0, status=StepStatus.OK if around else open_step),
    ]
    found = only(contract("eventually", REFUND), story(*steps))
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "unfinished")


def test_a_step_without_an_end_in_the_middle_does_not_silence_it():
    steps = [used(0, "lookup", status=StepStatus.UNFINISHED), used(1, "lookup")]
    assert said(contract("eventually", REFUND), story(*steps))[0] == "signal"


def test_always_asks_something_of_every_chosen_step():
    check = contract("always", REFUND, then={"status": "ok"})
    ok, failed = StepStatus.OK, StepStatus.ERROR
    assert said(check, story(used(0, "refund", status=ok)))[0] == "quiet"
    found = only(
        check, story(used(0, "refund", status=ok), used(1, "refund", status=failed))
    )
    assert (found.answer, found.evidence.steps) == (Answer.SIGNAL, (1,))
    assert said(check, tools("lookup")) == ("not_applicable", "nothing_to_hold")


@pytest.mark.parametrize(
    "condition",
    [
        schema({"properties": {"amount": {"maximum": 100}}, "required": ["amount"]}),
        cel("step.arguments.amount <= 100"),
        cel("step.arguments.amount * 2.0 <= 200.0"),
    ],
)
def test_a_condition_reads_the_arguments(condition):
    check = contract("always", REFUND, then={"condition": condition})
    assert check.needs_bodies
    trace = story(
        used(0, "refund", arguments={"amount": 100}),
        used(1, "refund", arguments='{"amount": 101}'),
        used(2, "lookup", arguments={"amount": 900}),
    )
    found = only(check, trace)
    assert (found.answer, found.evidence.steps) == (Answer.SIGNAL, (1,))


def test_a_condition_that_fails_on_a_step_is_said_and_counted():
    check = contract(
        "always", REFUND, then={"condition": cel("step.arguments.amount < 9")}
    )
    trace = story(
        used(0, "refund", arguments={"amount": 1}),
        used(1, "refund", arguments={"sum": 1}),
        used(2, "refund", arguments={"amount": "1"}),
    )
    found = only(check, trace)
    assert found.answer is Answer.QUIET
    assert found.evidence.facts["undecided"] == 2
    assert found.evidence.steps == (1, 2)
    assert "the step has no “amount”" in found.reason
    assert "another type" in found.reason


def test_nothing_decided_is_not_applicable_and_never_quiet():
    trace = story(used(0, "refund", arguments={}))
    for operator in ("never", "at_most", "eventually"):
        select = REFUND | {"condition": cel("step.arguments.amount < 9")}
        fields = {"n": 1} if operator == "at_most" else {}
        assert said(contract(operator, select, **fields), trace) == (
            "not_applicable",
            "undecided",
        )


def test_what_must_come_is_not_said_to_be_missing_while_a_step_is_undecided():
    select = REFUND | {"condition": cel("step.arguments.amount < 9")}
    trace = story(
        used(0, "refund", arguments={"amount": 10}), used(1, "refund", arguments={})
    )
    assert said(contract("eventually", select), trace)[0] == "not_applicable"


@pytest.mark.parametrize("subject", ["arguments", "result", "output"])
def test_a_text_that_was_not_recorded_makes_it_not_applicable(subject):
    select = REFUND | {"condition": schema({"type": "object"}, subject)}
    for step in (used(0, "refund", body=False), used(0, "refund")):
        found = only(contract("never", select), story(step))
        assert (found.answer, found.reason_code) == (
            Answer.NOT_APPLICABLE,
            "bodies_missing",
        )


def test_a_condition_on_structure_needs_no_bodies():
    select = {"condition": cel('step.kind == "tool_call" && step.seq > 0')}
    check = contract("never", select)
    assert not check.needs_bodies
    found = only(check, story(used(0, "a", body=False), used(1, "b", body=False)))
    assert found.evidence.steps == (1,)
    step = contract("never", {"condition": schema({"required": ["model"]}, "step")})
    assert not step.needs_bodies
    assert only(step, story(answered(0, "x"))).answer is Answer.SIGNAL


def test_it_is_asked_of_each_invocation_of_the_agent_it_names():
    trace = story(
        used(0, "lookup", invocation=0),
        used(1, "refund", invocation=0),
        used(2, "refund", invocation=1),
        used(3, "refund", invocation=2),
        agents=("billing", "billing", "search"),
    )
    select = REFUND | {"agent": "bill*"}
    check = contract("precedes", select, before=LOOKUP, scope="invocation")
    one, other = check.run(trace)
    assert (one.answer, other.answer) == (Answer.QUIET, Answer.SIGNAL)
    assert (other.evidence.scope, other.evidence.agent) == ("invocation 2", "billing")
    whole = contract("precedes", select, before=LOOKUP)
    assert said(whole, trace)[0] == "quiet"
    assert said(check, tools("refund")) == ("not_applicable", "no_agents")
    assert said(check, story(agents=("x",))) == ("not_applicable", "no_such_agent")


def test_names_take_wildcards_and_alternatives():
    for pattern in ("ref*", "re?und", "pay | refund", "*"):
        assert (
            said(contract("never", {"name": pattern}), tools("refund"))[0] == "signal"
        )
    for pattern in ("Refund", "ref", "refun?d?x", "r.*"):
        assert said(contract("never", {"name": pattern}), tools("refund"))[0] == "quiet"


def test_telemetry_stays_telemetry_and_a_signal_carries_the_level_of_the_contract():
    assert only(
        contract("never", REFUND, level="telemetry"), tools("refund")
    ).level is (Level.TELEMETRY)
    signal = only(contract("never", REFUND), tools("refund"))
    assert signal.level is Level.REVIEW_SIGNAL
    assert signal.evidence.chance is None
    quiet = only(contract("never", REFUND), tools())
    assert quiet.level is Level.TELEMETRY


def test_steps_in_any_order_give_the_same_answers():
    steps = [
        used(n, name) for n, name in enumerate(["refund", "lookup", "x", "refund"])
    ]
    checks = [
        contract("precedes", REFUND, before=LOOKUP),
        contract("at_most", REFUND, n=1),
        contract("never", REFUND | {"condition": cel("step.seq > 1")}),
    ]
    shuffled = steps[:]
    random.Random(4).shuffle(shuffled)
    for check in checks:
        assert list(check.run(story(*steps))) == list(check.run(story(*shuffled)))


def test_the_input_hash_is_of_what_was_read_and_not_of_the_contract():
    trace = tools("refund", "lookup")
    one = only(contract("never", REFUND), trace)
    other = only(contract("at_most", {"name": "*"}, n=1), trace)
    assert one.input_hash == other.input_hash
    assert only(contract("never", REFUND), tools("refund")).input_hash != one.input_hash
    select = REFUND | {"condition": schema({"type": "object"})}
    hashes = {
        only(
            contract("never", select), story(used(0, "refund", arguments=a))
        ).input_hash
        for a in ({"a": 1}, {"a": 2})
    }
    assert len(hashes) == 2


def test_it_has_four_texts_and_can_be_stored():
    checks = [
        contract("never", REFUND),
        contract("at_most", REFUND, n=3, scope="invocation"),
        contract("eventually", {"kind": "model_call", "model": "gpt*"}),
        contract("precedes", REFUND, before=LOOKUP),
        contract("always", REFUND, then={"condition": cel("step.seq > 1")}),
    ]
    for check in checks:
        texts = [check.observes, check.null_model, check.material_when, check.next_step]
        assert all(len(text.split()) >= 8 and text.endswith(".") for text in texts)
        assert check.basis is Basis.FACT
        assert check.null_model.startswith("None: ")
        assert check.limits == ()
        json.dumps(check.parameters)
        again = decoded_contract(check.parameters["contract"])
        assert again == check.spec
        assert hash_of_spec(again) == hash_of_spec(check.spec)
        for found in check.run(tools("refund", "lookup")):
            json.dumps(msgspec.to_builtins(found))


def test_it_says_itself_in_plain_english():
    check = contract(
        "precedes", REFUND | {"agent": "billing"}, before={"name": "lookup|search"}
    )
    assert check.observes == (
        "Whether this holds. In each trace, before every tool call named “refund” of "
        "agent “billing”, there must be an earlier step named “lookup” or “search”."
    )


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"operator": "sometimes"}, "operator", "“sometimes” is none of the words"),
        ({}, "", "The field “operator” is missing."),
        ({"operator": "never", "x": 1}, "", "A field “x” is not known."),
        ({"operator": "always"}, "then", "what must hold"),
        ({"operator": "never", "then": {"name": "a"}}, "then", "Only “always”"),
        ({"operator": "precedes"}, "before", "come before"),
        ({"operator": "precedes", "before": {}}, "before", "at least one thing"),
        ({"operator": "at_most"}, "n", "from 1 to"),
        ({"operator": "never", "n": 2}, "n", "Only “at most”"),
        ({"operator": "never", "select": {"kind": "x"}}, "select.kind", "no kind"),
        (
            {"operator": "never", "select": {"status": "x"}},
            "select.status",
            "no status",
        ),
        ({"operator": "never", "select": {"name": 1}}, "select.name", "Expected `str`"),
        ({"operator": "never", "sentence": "x" * 301}, "sentence", "at most 300"),
        (
            {"operator": "never", "select": {"condition": cel("step.")}},
            "select.condition.expression",
            "does not understand",
        ),
        (
            {"operator": "never", "select": {"condition": schema({"tipe": 1})}},
            "select.condition.json_schema",
            "“tipe” is not supported",
        ),
    ],
)
def test_a_wrong_definition_is_refused_with_a_sentence_that_names_the_field(
    spec, field, words
):
    with pytest.raises(BadDefinition) as refused:
        ContractCheck("contract-x", "X", 1, decoded_contract(spec))
    assert words in str(refused.value)
    assert refused.value.field == field
    assert str(refused.value).endswith((".", "”"))


def test_a_spec_is_encoded_in_one_way():
    spec = {"operator": "never", "select": {"name": "a", "kind": ""}, "n": 0}
    assert canonical(decoded_contract(spec)) == {
        "operator": "never",
        "select": {"name": "a"},
    }


def test_25_000_steps_take_seconds_not_minutes():
    steps = [used(n, f"tool {n % 7}", arguments={"n": n}) for n in range(25_000)]
    trace = story(*steps)
    check = contract(
        "precedes",
        {"name": "tool 3", "condition": cel("step.arguments.n > 3")},
        before={"name": "tool 2"},
    )
    started = time.process_time()
    assert only(check, trace).answer is Answer.QUIET
    assert time.process_time() - started < 5


def test_messages_have_an_output_too():
    select = {"kind": "user_message", "condition": cel('step.output.contains("help")')}
    assert said(contract("never", select), story(asked(0, "help me")))[0] == "signal"
    held = Step(seq=0, kind=StepKind.USER_MESSAGE, body=Body(input="help me"))
    assert said(contract("never", select), story(held))[0] == "signal"
