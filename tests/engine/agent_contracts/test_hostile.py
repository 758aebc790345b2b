"""Contracts and recorded values that were made to run away, or to raise, do neither."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.agent_contracts import (
    BadDefinition,
    Seen,
    compiled,
    decoded_agent_contract,
    judge,
)
from apps.engine.trace import StepStatus
from tests.engine.agent_contracts.agents import (
    BROKEN,
    UNDECIDED,
    answer,
    assert_told,
    conduct,
    contract,
    invocation,
    refund,
    state,
)

GENEROUS = 10
"""Seconds, on a machine that does other things too."""


@pytest.fixture(autouse=True)
def _in_time():
    started = time.process_time()
    yield
    assert time.process_time() - started < GENEROUS


def deep(levels):
    value = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


CONTRACTS = [
    contract(**spec)
    for spec in (
        {"kind": "equality", "expected": {"a": 1}},
        {
            "kind": "equality",
            "path": "a",
            "expected": "b",
            "normalisers": ["case", "id"],
        },
        {"kind": "equality", "path": "a[?b > `1`].c | [0]", "expected": None},
        {"kind": "one_of", "subject": "decision", "values": ["a", 1, None]},
        {"kind": "range", "path": "a", "minimum": 0, "normalisers": ["number", "date"]},
        {"kind": "regex", "pattern": "^a", "full": True},
        {"kind": "regex", "subject": "input", "path": "a", "pattern": "a+b"},
        {"kind": "subset", "expected": {"a": [1, {"b": None}]}},
        {"kind": "subset", "subject": "calls", "tool": "*", "expected": {"a": 1}},
        {
            "kind": "when_then",
            "when": {"expression": "a", "of": "output"},
            "then": {"kind": "range", "path": "a", "maximum": 3},
        },
        {"kind": "json_schema", "json_schema": {"type": "object", "required": ["a"]}},
        {"kind": "cel", "expression": "output.a == 1.0 || calls.exists(c, c.failed)"},
        {
            "kind": "cel",
            "expression": "output == input",
            "applies_when": {"language": "cel", "expression": "input.a == 1.0"},
        },
        {
            "kind": "temporal",
            "temporal": {"operator": "never", "select": {"name": "a"}},
        },
    )
]

recorded = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["[redacted: key]", '{"a": 1}', "```json\n[1]\n```", "\ud800", "a\0b", 2**70, "",
         '{"a": "[redacted: x]"}', "<think>a</think>b"]
    ),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["a", "b", "c", "role", "content", "text", "messages", "type"])
        | st.text(max_size=4),
        inner,
        max_size=3,
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    output=recorded,
    given_=recorded,
    arguments=recorded,
    status=st.sampled_from(StepStatus),
    has_bodies=st.booleans(),
)
def test_no_recorded_value_raises(output, given_, arguments, status, has_bodies):
    one = invocation(
        output,
        given=given_,
        tools=(refund(0, arguments),),
        status=status,
        has_bodies=has_bodies,
    )
    found = judge(conduct(one), CONTRACTS, task="a")
    assert len(found.entries) == len(CONTRACTS)
    for entry in found.entries:
        assert entry.answer.sentence.encode("utf-8", "replace")
        assert entry.answer.expected


@settings(max_examples=400, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["name", "kind", "subject", "tool", "path", "expected", "values", "minimum",
             "maximum", "pattern", "full", "json_schema", "expression", "tasks", "when",
             "then", "temporal", "applies_when", "normalisers", "sentence"]
        ),
        recorded
        | st.sampled_from(["equality", "regex", "cel", "range", "one_of", "output", "x"]),
        max_size=6,
    )
    | recorded
)  # fmt: skip
def test_no_json_value_raises_anything_but_a_refusal(value):
    with suppress(BadDefinition):
        spec = decoded_agent_contract(value)
        seen = Seen(invocation({"a": 1}, given={"b": 2}))
        assert_told(compiled(spec).answer(seen))


@pytest.mark.parametrize("levels", [70, 3_000])
def test_a_recorded_value_that_is_too_deep_is_undecided(levels):
    one = invocation(deep(levels), given=deep(levels), tools=(refund(0, deep(levels)),))
    for asked in (
        {"kind": "equality", "expected": 1},
        {"kind": "regex", "subject": "input", "pattern": "a"},
        {"kind": "subset", "subject": "calls", "tool": "*", "expected": {"a": 1}},
        {"kind": "cel", "expression": "output.a == 1.0"},
        {"kind": "cel", "expression": "calls.size() == 1"},
    ):
        assert state(one, **asked) is UNDECIDED


def test_large_values_cost_bounded_time():
    rows = [{"id": n, "text": "x" * 50} for n in range(20_000)]
    one = invocation({"rows": rows}, given={"rows": rows})
    slow = (
        {"kind": "subset", "expected": {"rows": [{"id": 19_999 - n} for n in range(900)]}},
        {"kind": "equality", "path": "rows[?id == `5`].text | sort(@)", "expected": 1},
        {"kind": "cel", "expression": "output.rows.all(r, output.rows.exists(s, s == r))"},
        {"kind": "json_schema", "json_schema": {"properties": {"rows": {
            "uniqueItems": True, "items": {"properties": {"text": {"pattern": "(x+)+y"}}}}}}},
    )  # fmt: skip
    states = []
    for asked in slow:
        started = time.process_time()
        states.append(state(one, **asked))
        assert time.process_time() - started < 5
    # The path is undecided as it cannot sort a text, the schema is cheap enough.
    assert states == [UNDECIDED, UNDECIDED, UNDECIDED, BROKEN]


def test_patterns_do_not_backtrack_and_large_programs_are_undecided():
    one = invocation("a" * 60_000 + "!")
    assert answer(one, kind="regex", pattern="(a|aa)+$", full=True).state is not None
    large = answer(invocation({"v": "a" * 2_000_000}), kind="regex", path="v",
                   pattern="(?:a{1,50}b){10}")  # fmt: skip
    assert large.state is UNDECIDED


def test_only_the_end_of_a_long_text_is_read_and_that_is_not_called_a_break():
    one = invocation("needle " + "x" * 70_000)
    found = answer(one, kind="regex", pattern="needle")
    assert found.state is UNDECIDED
    assert "only the end" in found.sentence
