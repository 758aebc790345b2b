"""Each kind of contract: held, broken, undecided, and not applying."""

from __future__ import annotations

import pytest

from apps.engine.extraction import decoded_decision
from apps.engine.trace import StepStatus
from tests.engine.agent_contracts.agents import (
    BROKEN,
    DOES_NOT_APPLY,
    HELD,
    UNDECIDED,
    answer,
    crashed,
    invocation,
    refund,
    state,
)

BILLING = {"route": "billing", "confidence": 0.9, "tags": ["a", {"k": 1}]}
IS_BILLING = {"kind": "equality", "path": "route", "expected": "billing"}
KINDS = {
    "equality": (IS_BILLING, IS_BILLING | {"expected": "sales"}),
    "one_of": (
        {"kind": "one_of", "path": "route", "values": ["sales", "billing"]},
        {"kind": "one_of", "path": "route", "values": ["sales", "support"]},
    ),
    "range": (
        {"kind": "range", "path": "confidence", "minimum": 0.5, "maximum": 1},
        {"kind": "range", "path": "confidence", "minimum": 0.95},
    ),
    "regex": (
        {"kind": "regex", "path": "route", "pattern": "^bil"},
        {"kind": "regex", "path": "route", "pattern": "bil", "full": True},
    ),
    "subset": (
        {"kind": "subset", "expected": {"route": "billing", "tags": [{"k": 1}]}},
        {"kind": "subset", "expected": {"tags": ["b"]}},
    ),
    "when_then": (
        {"kind": "when_then", "when": {"expression": "plan"}, "then": IS_BILLING},
        {
            "kind": "when_then",
            "when": {"expression": "plan"},
            "then": IS_BILLING | {"expected": "sales"},
        },
    ),
    "json_schema": (
        {"kind": "json_schema", "json_schema": {"required": ["route"]}},
        {"kind": "json_schema", "json_schema": {"required": ["reason"]}},
    ),
    "cel": (
        {"kind": "cel", "expression": "output.route == 'billing'"},
        {"kind": "cel", "expression": "output.route == 'sales'"},
    ),
    "temporal": (
        {"kind": "temporal", "temporal": {"operator": "at_most", "n": 1}},
        {
            "kind": "temporal",
            "temporal": {"operator": "never", "select": {"kind": "model_call"}},
        },
    ),
}
EVERY = pytest.mark.parametrize("kind", KINDS)
OVER_OUTPUT = pytest.mark.parametrize(
    "kind", [one for one in KINDS if one != "temporal"]
)


@EVERY
def test_a_contract_of_each_kind_is_held(kind):
    held, _ = KINDS[kind]
    assert state(invocation(BILLING, given={"plan": "gold"}), **held) is HELD


@EVERY
def test_a_contract_of_each_kind_is_broken_and_names_the_step(kind):
    _, broken = KINDS[kind]
    found = answer(invocation(BILLING, given={"plan": "gold"}), **broken)
    assert found.state is BROKEN
    assert found.step == 0


@EVERY
def test_it_does_not_apply_to_other_tasks_and_other_inputs(kind):
    _, broken = KINDS[kind]
    one = invocation(BILLING, given={"plan": "gold"})
    assert state(one, tasks="refund *|cancel", task="sales", **broken) is DOES_NOT_APPLY
    assert state(one, tasks="refund *", **broken) is DOES_NOT_APPLY
    assert state(one, tasks="refund *", task="refund 7", **broken) is BROKEN
    silver = {"expression": "plan == 'silver'"}
    assert state(one, applies_when=silver, **broken) is DOES_NOT_APPLY
    cel = {"language": "cel", "expression": "input.plan == 'gold'"}
    assert state(one, applies_when=cel, **broken) is BROKEN


@OVER_OUTPUT
def test_it_is_undecided_without_an_output_and_without_texts(kind):
    for spec in KINDS[kind]:
        given = {"plan": "gold"}
        assert state(invocation(None, given=given), **spec) is UNDECIDED
        for status in (StepStatus.OK, StepStatus.ERROR):
            bare = invocation(None, given=None, has_bodies=False, status=status)
            assert state(bare, **spec) is UNDECIDED


@OVER_OUTPUT
def test_an_invocation_that_ended_in_an_error_breaks_it_by_giving_nothing(kind):
    for spec in KINDS[kind]:
        found = answer(crashed(given={"plan": "gold"}), **spec)
        assert found.state is BROKEN
        assert found.sentence == "The invocation ended in an error and gave no output."


@OVER_OUTPUT
def test_one_whose_end_was_not_recorded_is_undecided(kind):
    one = invocation(None, given={"plan": "gold"}, status=StepStatus.UNFINISHED)
    for spec in KINDS[kind]:
        found = answer(one, **spec)
        assert found.state is UNDECIDED
        assert "the recording ends before" in found.sentence or kind == "cel"


def test_a_crashed_invocation_is_not_asked_where_the_contract_does_not_apply():
    silver = {"expression": "plan == 'silver'"}
    one = crashed(given={"plan": "gold"})
    assert state(one, applies_when=silver, **IS_BILLING) is DOES_NOT_APPLY
    when = {"expression": "route == 'billing'", "of": "output"}
    assert state(one, kind="when_then", when=when, then=IS_BILLING) is UNDECIDED


def test_an_expression_that_names_the_status_judges_failures_itself():
    one = crashed()
    allowed = "status == 'error' || output.route == 'billing'"
    assert state(one, kind="cel", expression=allowed) is HELD
    assert state(one, kind="cel", expression="status == 'ok'") is BROKEN
    assert state(one, kind="cel", expression="output != 'sales'") is BROKEN


def test_an_output_after_an_error_is_judged_as_it_stands():
    one = invocation(BILLING, status=StepStatus.ERROR)
    assert state(one, **IS_BILLING) is HELD


@pytest.mark.parametrize(
    "output",
    [
        '{"route": "billing"}',
        '```json\n{"route": "billing"}\n```',
        'Here it is:\n```\n{"route": "billing"}\n```\nThank you.',
        [{"role": "assistant", "content": '{"route": "billing"}'}],
        {
            "choices": [
                {"message": {"role": "assistant", "content": '{"route":"billing"}'}}
            ]
        },
    ],
)
def test_json_in_texts_fences_and_messages_is_opened(output):
    assert state(invocation(output), **IS_BILLING) is HELD
    sales = IS_BILLING | {"expected": "sales"}
    assert state(invocation(output), **sales) is BROKEN


def test_a_path_may_be_written_for_the_recorded_message():
    message = [{"role": "assistant", "content": "billing"}]
    found = answer(
        invocation(message), kind="equality", path="[0].content", expected="billing"
    )
    assert found.state is HELD


def test_a_missing_field_breaks_equality_and_its_answer_says_so():
    found = answer(invocation({"other": 1}), **IS_BILLING)
    assert found.state is BROKEN
    assert "not there" in found.sentence
    assert found.found == ""
    assert state(invocation("I cannot say."), **IS_BILLING) is BROKEN
    assert state(invocation({}), kind="equality", path="route", expected=None) is HELD


@pytest.mark.parametrize(
    ("expected", "recorded", "is_same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        ("Billing", "billing ", False),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, True),
        ([1, 2], [2, 1], False),
        (None, "null", False),
    ],
)
def test_values_are_equal_as_json_and_no_further(expected, recorded, is_same):
    wanted = HELD if is_same else BROKEN
    spec = {"kind": "equality", "path": "v"}
    assert state(invocation({"v": recorded}), expected=expected, **spec) is wanted


@pytest.mark.parametrize(
    ("normalisers", "expected", "recorded"),
    [
        (["case", "white_space"], "Billing", " billing "),
        (["number"], 1, "1.0"),
        (["number"], 1200, "1,200"),
        (["id"], "X9-4417", "x9 4417"),
        (["date"], "2026-01-31", "31 January 2026"),
    ],
)
def test_declared_normalisers_make_writings_equal(normalisers, expected, recorded):
    one = invocation({"v": recorded})
    spec = {"kind": "equality", "path": "v", "expected": expected}
    assert state(one, **spec) is BROKEN
    assert state(one, normalisers=normalisers, **spec) is HELD


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(0, BROKEN), (0.001, HELD), (10, HELD), (10.01, BROKEN), (True, BROKEN),
     ("5", BROKEN), (None, BROKEN), ([5], BROKEN), (10**300, BROKEN)],
)  # fmt: skip
def test_a_range_counts_its_bounds_as_told_and_numbers_only(value, wanted):
    spec = {"minimum": 0, "exclusive_minimum": True, "maximum": 10}
    assert state(invocation({"v": value}), kind="range", path="v", **spec) is wanted


def test_a_text_is_a_number_under_the_normaliser_only():
    one = invocation({"v": "$ 5", "w": "5"})
    spec = {"kind": "range", "minimum": 0, "normalisers": ["number"]}
    assert state(one, path="w", **spec) is HELD
    assert state(one, path="v", **spec) is BROKEN


def test_a_subset_leaves_more_alone_and_knows_true_from_one():
    one = invocation(
        {"a": [{"x": 1, "y": 2}, 3], "b": {"c": "d", "e": None}, "t": True}
    )
    spec = {"kind": "subset"}
    assert state(one, expected={"a": [3, {"y": 2}], "b": {"e": None}}, **spec) is HELD
    assert state(one, expected={"t": 1}, **spec) is BROKEN
    assert state(one, expected={"b": {"f": None}}, **spec) is BROKEN
    assert state(one, expected=[], **spec) is BROKEN
    assert state(one, path="a", expected=[3], **spec) is HELD


def test_a_pattern_reads_the_words_of_a_text_output():
    one = invocation([{"role": "assistant", "content": "Your ticket is T-12."}])
    assert state(one, kind="regex", pattern=r"T-\d+") is HELD
    assert state(one, kind="regex", pattern=r"T-\d+", full=True) is BROKEN
    assert state(invocation({"n": 42}), kind="regex", path="n", pattern="^42$") is HELD


def test_the_input_can_be_the_subject():
    one = invocation(BILLING, given='{"plan": "gold"}')
    spec = {"kind": "equality", "subject": "input", "path": "plan"}
    assert state(one, expected="gold", **spec) is HELD
    assert state(one, expected="silver", **spec) is BROKEN
    assert state(invocation(BILLING), expected="gold", **spec) is UNDECIDED


def test_every_call_of_the_named_tool_is_read():
    calls = (
        refund(0, {"amount": 5}),
        refund(1, '{"amount": 50}'),
        refund(2, {}, "log"),
    )
    spec = {"kind": "range", "subject": "calls", "path": "amount", "minimum": 0}
    one = invocation("done", tools=calls)
    found = answer(one, tool="ref*", maximum=50, **spec)
    assert found.state is HELD
    assert "each of 2 calls" in found.sentence
    broken = answer(one, tool="refund", maximum=49, **spec)
    assert (broken.state, broken.step) == (BROKEN, 1)
    assert "step 2" in broken.sentence
    assert state(one, tool="cancel", maximum=1, **spec) is DOES_NOT_APPLY


def test_a_call_without_arguments_leaves_the_rest_undecided_but_never_unbroken():
    spec = {"kind": "range", "subject": "calls", "tool": "refund", "path": "amount"}
    unknown, large = refund(0, None), refund(1, {"amount": 50})
    one = invocation("done", tools=(unknown, large))
    assert state(one, maximum=50, **spec) is UNDECIDED
    assert state(one, maximum=49, **spec) is BROKEN


def test_the_decision_is_read_as_the_agent_defines_it():
    one = invocation({"route": "Billing", "why": "a"})
    path = decoded_decision({"kind": "jmespath", "expression": "why"})
    spec = {"kind": "equality", "subject": "decision"}
    assert state(one, expected="billing", **spec) is HELD
    assert state(one, expected="a", decision=path, **spec) is HELD
    assert state(one, expected="billing", decision=path, **spec) is BROKEN


def test_a_missing_decision_breaks_and_an_unknown_one_is_undecided():
    path = decoded_decision({"kind": "jmespath", "expression": "route"})
    spec = {"kind": "one_of", "subject": "decision", "values": ["a"], "decision": path}
    assert state(invocation({"other": 1}), **spec) is BROKEN
    assert state(invocation(None), **spec) is UNDECIDED
    assert state(invocation(None, has_bodies=False), **spec) is UNDECIDED
    hidden = invocation({"route": "[redacted: key]"})
    assert state(hidden, **spec) is UNDECIDED
    found = answer(crashed(), **spec)
    assert found.state is BROKEN
    assert "had not decided" in found.sentence
    unfinished = invocation(None, status=StepStatus.UNFINISHED)
    assert state(unfinished, **spec) is UNDECIDED


def test_prose_is_no_decision_unasked():
    one = invocation("Thank you for your patience, your refund has been made today.")
    spec = {"kind": "equality", "subject": "decision", "expected": "refund"}
    assert state(one, **spec) is UNDECIDED


def test_a_decision_by_calls_is_missing_where_the_tool_was_never_called():
    last = decoded_decision({"kind": "last_tool_call", "tool": "route"})
    spec = {"kind": "subset", "subject": "decision", "decision": last}
    expected = {"arguments": {"to": "billing"}}
    called = invocation("x", tools=(refund(0, {"to": "billing"}, "route"),))
    assert state(called, expected=expected, **spec) is HELD
    assert state(invocation("x"), expected=expected, **spec) is BROKEN
    unknown = invocation("x", tools=(refund(0, None, "route"),))
    assert state(unknown, expected=expected, **spec) is UNDECIDED
