"""Schemas, expressions and values that were written to run away, and do not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.check import Answer
from apps.engine.contracts import BadDefinition
from apps.engine.contracts.budget import Budget, BudgetSpent, Undecided, Value
from apps.engine.contracts.expressions import BadExpression, Expression
from apps.engine.contracts.patterns import BadPattern, regular_expression, wildcards
from apps.engine.contracts.schemas import BadSchema, SchemaCondition
from tests.engine.contracts.stories import cel, contract, only, schema, story, used

GENEROUS = 10
"""Seconds, on a machine that does other things too."""


@pytest.fixture(autouse=True)
def _in_time():
    started = time.process_time()
    yield
    assert time.process_time() - started < GENEROUS


def holds(condition, value):
    """True, False, or the sentence why neither."""
    is_cel = isinstance(condition, Expression)
    try:
        return condition.holds(Value(value, decimals=is_cel), Budget())
    except Undecided as error:
        return str(error)


def refusal_or_answer(source, step):
    """What `holds` gives, or the sentence with which the expression is refused."""
    try:
        return holds(Expression(source), step)
    except BadExpression as refused:
        return str(refused)


def laughs(levels):
    """A schema that doubles its work on every level."""
    defs = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": defs | {f"d{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("json_schema", "value"),
    [
        ({"pattern": "(a+)+$"}, "a" * 200_000 + "b"),
        ({"pattern": "^(a|a)*$"}, "a" * 200_000 + "b"),
        ({"patternProperties": {"(x+x+)+y": {}}}, {"x" * 50_000: 1}),
        (
            {"additionalProperties": False, "patternProperties": {"(x+)+y": {}}},
            {"x" * 50_000: 1},
        ),
    ],
)
def test_a_pattern_that_goes_back_for_ever_elsewhere_is_answered(json_schema, value):
    assert holds(SchemaCondition(json_schema), value) in {True, False}


@pytest.mark.parametrize(
    ("json_schema", "value", "words"),
    [
        (laughs(40), "x", "too much work"),
        ({"$ref": "#"}, {}, "without an end"),
        ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, {}, "without an end"),
        ({"items": {"type": "integer"}}, list(range(300_000)), "too much work"),
        ({"enum": ["x" * 10] * 900}, "y", False),
        ({"uniqueItems": True}, [[n] for n in range(100_000)], True),
        ({"uniqueItems": True}, [1, 1.0], False),
        ({"uniqueItems": True}, [1, True], True),
        ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], False),
        ({"uniqueItems": True}, [2**70, 2**70 + 1], True),
        ({"multipleOf": 1e-300}, 1e300, None),
        ({"multipleOf": 0.1}, 10**290, None),
        ({"maximum": 1}, 10**400, "300 digits"),
        ({"contains": {"const": 1}}, [0] * 50_000, None),
    ],
)
def test_a_schema_that_grows_without_bounds_is_answered_or_given_up(
    json_schema, value, words
):
    found = holds(SchemaCondition(json_schema), value)
    if isinstance(words, str):
        assert words in found
    elif words is not None:
        assert found is words


@pytest.mark.parametrize(
    ("json_schema", "words"),
    [
        ({"$ref": "https://example.org/schema"}, "is not followed"),
        ({"$ref": "file:///etc/passwd"}, "is not followed"),
        ({"$ref": "#/enum/0", "enum": [{"pattern": "("}]}, "is not followed"),
        ({"$id": "https://example.org/"}, "not supported"),
        ({"$dynamicRef": "#x"}, "not supported"),
        ({"unevaluatedProperties": False}, "not supported"),
        ({"format": "regex"}, "not supported"),
        ({"properties": {"a": {"pattern": "(?<=a)b"}}}, "no pattern of RE2"),
        ({"patternProperties": {"(": {}}}, "no pattern of RE2"),
        ({"pattern": "(a{1,999}){1,999}"}, "RE2"),
        ({"pattern": "(.{1,30}){1,30}z"}, "repeats too much"),
        ({"pattern": "a" * 501}, "at most 500"),
        ({"enum": ["x" * 20_000]}, "at most 16,384"),
        ({"maximum": "x"}, "is not of type 'number'"),
        ({"properties": []}, "is not of type 'object'"),
        ({"const": "a\x00"}, "character NUL"),
        ([], "JSON object"),
        ("x", "JSON object"),
        ({"$schema": "http://json-schema.org/draft-03/schema"}, "2020-12"),
    ],
)
def test_a_schema_that_reaches_out_or_is_none_is_refused(json_schema, words):
    with pytest.raises(BadSchema, match=r"[.”]$") as refused:
        SchemaCondition(json_schema)
    assert words in str(refused.value)


@pytest.mark.parametrize("depth", [30, 3_000, 200_000])
def test_a_schema_nested_too_deep_is_refused(depth):
    nested = {}
    for _ in range(depth):
        nested = {"not": nested}
    with pytest.raises(BadSchema):
        SchemaCondition(nested)


def test_keywords_that_are_names_of_properties_are_no_keywords():
    found = SchemaCondition(
        {"properties": {"pattern": {"type": "string"}, "$id": {"type": "integer"}}}
    )
    assert holds(found, {"pattern": "(", "$id": 3}) is True
    assert holds(found, {"pattern": 1}) is False


ONES = "[" + ",".join("1" * 10) + "]"


@pytest.mark.parametrize(
    ("source", "step", "words"),
    [
        ("step.l.all(a, step.l.all(b, step.l.all(c, true)))", "list", "10,000 turns"),
        (f"{ONES}.all(a, {ONES}.all(b, step.l.all(c, true)))", "list", "10,000 turns"),
        ('step.l.map(a, step.s + "x").size() > 0', "both", "too much work"),
        ("step.l.all(a, step.s == step.s)", "both", "too much work"),
        ('step.l.all(a, !step.s.matches("(x+x+)+y"))', "both", "too much work"),
        ('step.s.matches("(.{1,30}){1,12}z")', "text", None),
        ("step.l == step.l", "list", True),
        ('step.s.matches("(x+)+y")', "text", False),
        ("1 / (size(step.s) - size(step.s)) == 1", "text", "divides by zero"),
        ("9223372036854775807 + size(step.s) > 0", "text", "fails"),
        ("step.s", "text", "neither true nor false"),
        ("step.l", "list", "neither true nor false"),
        ("step.s.a.b.c == 1", "text", "no fields"),
    ],
)
def test_an_expression_comes_back_with_an_answer_or_a_reason(source, step, words):
    steps = {
        "list": {"l": list(range(2_000))},
        "text": {"s": "x" * 100_000},
        "both": {"l": list(range(9_000)), "s": "x" * 200_000},
    }
    found = holds(Expression(source), steps[step])
    if isinstance(words, str):
        assert words in found
    elif words is not None:
        assert found is words


def doubled(levels):
    body = f"size(v{levels}) > 0"
    for n in range(levels, 0, -1):
        body = f"[v{n - 1} + v{n - 1}].all(v{n}, {body})"
    return f"[step.s].all(v0, {body})"


@pytest.mark.parametrize(
    "source",
    [
        doubled(4),
        doubled(20),
        "(" * 400 + "true" + ")" * 400,
        "[" * 400 + "]" * 400,
        "-" * 990 + "1 == 1",
        "+".join(["step.s"] * 100) + ' == ""',
        "true ? " * 120 + "true" + " : false" * 120,
        "true" * 10_000,
        "step." * 190 + "a == 1",
        "step" + "[0]" * 300,
        "nope == 1",
        "1 + 1",
        '"open',
        "true // and more",
        '"""a""" == step.name',
        "",
        "   ",
        "step.name.matches(step.name)",
        "matches(step.name, step.name)",
        'step.name.matches("(")',
        'step.name.matches("(.{1,30}){1,30}z")',
        "google.protobuf.Struct{} == step",
        "__import__('os').system('true')",
        "step.__class__.__mro__ == 1",
        "\x00",
        "\ud800 == 1",
        "10000000000000000000000000 == 1",
    ],
)
def test_a_hostile_expression_is_refused_or_answered(source):
    found = refusal_or_answer(source, {"s": "x" * 1_000})
    assert isinstance(found, bool | str)
    assert len(str(found)) < 700


@given(st.text(alphabet="step.namelx(),+[]{}\"'\\!&|?:=<> 019r/`\n", max_size=60))
@settings(max_examples=300, deadline=None)
def test_no_text_makes_the_compiler_do_anything_but_refuse(source):
    found = refusal_or_answer(source, {"name": "x"})
    assert found in {True, False} or found[-1] in ".”" or found[0].islower()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(json_values)
@settings(max_examples=150, deadline=None)
def test_any_recorded_value_is_answered(value):
    conditions = [
        Expression('step.a.b == 1 || step.c.exists(x, x == "y")'),
        SchemaCondition({"properties": {"a": {"uniqueItems": True, "minimum": 2}}}),
    ]
    for condition in conditions:
        assert isinstance(holds(condition, value), bool | str)


@pytest.mark.parametrize("depth", [65, 5_000, 100_000])
def test_a_value_nested_too_deep_is_given_up(depth):
    value = []
    for _ in range(depth):
        value = [value]
    with pytest.raises(Undecided, match="deeper than 64"):
        Value(value, decimals=True)
    check = contract("never", {"condition": schema({"type": "array"})})
    found = only(check, story(used(0, "a", arguments=value)))
    assert found.answer is Answer.NOT_APPLICABLE


def test_half_of_a_surrogate_pair_is_no_reason_to_stop():
    trace = story(used(0, "a\ud800", arguments={"\udc00": "x\ud800"}))
    conditions = [schema({"type": "object"}), cel('step.name.contains("a")')]
    for condition in conditions:
        check = contract("never", {"name": "a*", "condition": condition})
        assert only(check, trace).answer is Answer.SIGNAL


def test_a_trace_that_costs_too_much_is_not_applicable_and_never_quiet():
    steps = [used(n, "a", arguments=list(range(30_000))) for n in range(9)]
    check = contract(
        "never", {"condition": schema({"items": {"type": "string"}, "minItems": 1})}
    )
    check_all = contract(
        "never", {"condition": schema({"not": {"items": {"type": "integer"}}})}
    )
    assert only(check, story(*steps[:2])).answer is Answer.QUIET
    found = only(check_all, story(*steps))
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "budget_spent")
    assert only(check_all, story(*steps)) == found


def test_a_budget_is_spent_once():
    budget = Budget(10)
    budget.charge(10)
    with pytest.raises(BudgetSpent):
        budget.charge(1)


def test_patterns_are_of_re2_and_wildcards_are_no_patterns():
    with pytest.raises(BadPattern):
        regular_expression(r"(a)\1")
    stars = wildcards("*a" * 200)
    assert stars.fullmatch("a" * 5_000 + "b") is None
    assert wildcards("a.c(").fullmatch("abc(") is None


def test_definitions_out_of_bounds_are_refused():
    for fields in ({"name": "x" * 501}, {"condition": cel("x" * 1_001)}):
        with pytest.raises(BadDefinition):
            contract("never", fields)
