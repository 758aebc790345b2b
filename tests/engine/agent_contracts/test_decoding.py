"""A contract that cannot be used is refused with the field and a sentence."""

from __future__ import annotations

import pytest

from apps.engine.agent_contracts import (
    BadDefinition,
    canonical,
    decoded_agent_contract,
    hash_of_spec,
    plain_sentence,
)

EQUAL = {"name": "x", "kind": "equality", "expected": 1}
RANGE = {"name": "x", "kind": "range"}
NEVER = {"operator": "never", "select": {"kind": "tool_call"}}
TEMPORAL = {"name": "x", "kind": "temporal", "temporal": NEVER}
WHEN = {
    "name": "x",
    "kind": "when_then",
    "when": {"expression": "plan"},
    "then": {"kind": "equality", "expected": 1},
}


def deep(levels):
    value = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], ""),
        ({"kind": "equality", "expected": 1}, ""),
        ({"name": "x", "kind": "equal", "expected": 1}, "kind"),
        ({"name": " ", "kind": "equality", "expected": 1}, "name"),
        ({"name": "x" * 81, "kind": "equality", "expected": 1}, "name"),
        ({"name": "x", "kind": "equality"}, "expected"),
        (EQUAL | {"unknown": 1}, ""),
        (EQUAL | {"minimum": 0}, "minimum"),
        (EQUAL | {"values": [1]}, "values"),
        (EQUAL | {"temporal": NEVER}, "temporal"),
        (EQUAL | {"json_schema": None}, "json_schema"),
        (EQUAL | {"tool": "a"}, "tool"),
        (EQUAL | {"subject": "calls"}, "tool"),
        (EQUAL | {"subject": "calls", "tool": "a" * 501}, "tool"),
        (EQUAL | {"subject": "thoughts"}, "subject"),
        (EQUAL | {"normalisers": ["upper"]}, "normalisers[0]"),
        (EQUAL | {"path": "a.["}, "path"),
        (EQUAL | {"path": "join(',', a)"}, "path"),
        (EQUAL | {"tasks": "a" * 501}, "tasks"),
        (EQUAL | {"sentence": "a" * 301}, "sentence"),
        (EQUAL | {"applies_when": {"expression": ""}}, "applies_when.expression"),
        (
            EQUAL | {"applies_when": {"expression": "a", "of": "output"}},
            "applies_when.of",
        ),
        (
            EQUAL | {"applies_when": {"language": "cel", "expression": "output == 1"}},
            "applies_when.expression",
        ),
        ({"name": "x", "kind": "one_of"}, "values"),
        ({"name": "x", "kind": "one_of", "values": []}, "values"),
        ({"name": "x", "kind": "one_of", "values": list(range(201))}, "values"),
        (RANGE, "minimum"),
        (RANGE | {"minimum": 2, "maximum": 1}, "maximum"),
        (RANGE | {"minimum": 1, "maximum": 1, "exclusive_maximum": True}, "maximum"),
        (RANGE | {"minimum": 1, "exclusive_maximum": True}, "exclusive_maximum"),
        (RANGE | {"minimum": "1"}, "minimum"),
        (RANGE | {"minimum": float("nan")}, "minimum"),
        (RANGE | {"minimum": float("inf")}, "minimum"),
        (RANGE | {"minimum": 10**18}, "minimum"),
        ({"name": "x", "kind": "regex"}, "pattern"),
        ({"name": "x", "kind": "regex", "pattern": "(a"}, "pattern"),
        ({"name": "x", "kind": "regex", "pattern": "(?=a)"}, "pattern"),
        ({"name": "x", "kind": "regex", "pattern": "(a{1,900}){900}"}, "pattern"),
        ({"name": "x", "kind": "json_schema", "json_schema": None}, "json_schema"),
        (
            {"name": "x", "kind": "json_schema", "json_schema": {"$ref": "http://a"}},
            "json_schema",
        ),
        ({"name": "x", "kind": "cel", "expression": " "}, "expression"),
        ({"name": "x", "kind": "cel", "expression": "outputs == 1"}, "expression"),
        ({"name": "x", "kind": "cel", "expression": "1 + 1"}, "expression"),
        ({"name": "x", "kind": "cel", "expression": "true", "path": "a"}, "path"),
        ({"name": "x", "kind": "when_then", "when": {"expression": "a"}}, "then"),
        (WHEN | {"then": {"kind": "temporal"}}, "then.kind"),
        (WHEN | {"then": {"kind": "when_then"}}, "then.kind"),
        (WHEN | {"then": {"kind": "equality"}}, "then.expected"),
        (WHEN | {"then": {"kind": "regex", "pattern": "(a"}}, "then.pattern"),
        (WHEN | {"then": {"kind": "equality", "name": "y"}}, "then"),
        (WHEN | {"when": {"expression": "a", "of": "calls"}}, "when.of"),
        (
            WHEN | {"when": {"language": "cel", "expression": "true", "of": "output"}},
            "when.of",
        ),
        (TEMPORAL | {"temporal": {"operator": "always"}}, "temporal.then"),
        (
            TEMPORAL | {"temporal": NEVER | {"select": {"kind": "cook"}}},
            "temporal.select.kind",
        ),
        (
            TEMPORAL | {"temporal": NEVER | {"select": {"agent": "a"}}},
            "temporal.select.agent",
        ),
        (EQUAL | {"expected": {1: 2}}, "expected"),
        (EQUAL | {"expected": "a\0b"}, "expected"),
        (EQUAL | {"expected": ["\ud800"]}, "expected[0]"),
        (EQUAL | {"expected": {"a": {1, 2}}}, "expected.a"),
        (EQUAL | {"expected": b"a"}, "expected"),
        (EQUAL | {"expected": "a" * 40_000}, "expected"),
    ],
)
def test_it_names_the_field_that_is_wrong(value, field):
    with pytest.raises(BadDefinition) as refused:
        decoded_agent_contract(value)
    assert refused.value.field == field
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("levels", [30, 5_000])
def test_a_contract_that_is_nested_too_deep_is_refused(levels):
    with pytest.raises(BadDefinition, match="levels deep"):
        decoded_agent_contract(EQUAL | {"expected": deep(levels)})


@pytest.mark.parametrize(
    "value",
    [
        EQUAL | {"expected": None},
        EQUAL | {"expected": {"a": [1, "b"]}, "subject": "input", "tasks": "a|b"},
        RANGE | {"minimum": -1, "maximum": 1.5, "exclusive_maximum": True},
        WHEN,
        TEMPORAL,
        {"name": "x", "kind": "one_of", "values": [None, 1, {"a": 1}]},
    ],
)
def test_its_encoding_decodes_to_the_same_contract_and_hash(value):
    spec = decoded_agent_contract(value)
    again = decoded_agent_contract(canonical(spec))
    assert canonical(spec) == value
    assert again == spec
    assert hash_of_spec(again) == hash_of_spec(spec)
    assert hash_of_spec(spec) != hash_of_spec(decoded_agent_contract(EQUAL))


def test_normalisers_stand_in_the_order_in_which_they_are_applied():
    value = EQUAL | {"normalisers": ["case", "white_space", "case"]}
    spec = decoded_agent_contract(value)
    assert canonical(spec)["normalisers"] == ["white_space", "case"]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (EQUAL | {"path": "a"}, "“a” of the output must be 1."),
        (
            EQUAL | {"tasks": "a*|b", "subject": "decision", "expected": "y"},
            "In tasks named “a*” or “b”, the decision must be “y”.",
        ),
        (
            RANGE | {"minimum": 0, "maximum": 1000, "exclusive_minimum": True,
                     "subject": "calls", "tool": "refund", "path": "amount"},
            "“amount” of the arguments of each call of “refund” must be a number above "
            "0 and of at most 1,000.",
        ),
        (
            WHEN | {"applies_when": {"expression": "a == 'b'"}},
            "For inputs of which “a == 'b'” is true, where “plan” is true of the "
            "input, the output must be 1.",
        ),
        (TEMPORAL, "In each agent invocation, there must be no tool call."),
        (
            {"name": "x", "kind": "one_of", "values": list("abcdefgh")},
            "The output must be one of “a”, “b”, “c”, “d”, “e”, “f” or 2 more.",
        ),
        (
            {"name": "x", "kind": "regex", "pattern": "a+", "full": True},
            "The output must be all of the pattern “a+”.",
        ),
        ({"name": "x", "kind": "cel", "expression": "true"}, "“true” must be true."),
    ],
)  # fmt: skip
def test_a_contract_is_told_in_plain_english(value, sentence):
    assert plain_sentence(decoded_agent_contract(value)) == sentence
