"""Canonical texts: equal values are equal, and nothing makes it fail."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.bodies import canonical
from apps.engine.bodies.canonical import opened
from apps.engine.check import Answer
from apps.engine.checks import by_slug
from tests.engine.told import answer, told, used

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": [1, 2]}, '{"a": [1, 2.0]}'),
        ({"a": {"b": 1}}, {"a": '{"b":1}'}),
        ({"a": {"b": 1}}, json.dumps({"a": json.dumps({"b": 1})})),
        (float("nan"), float("nan")),
        ({"a": -0.0}, {"a": 0}),
        (["x"], ("x",)),
    ],
)
def test_equal_values_have_one_text(one, other):
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        (True, 1),
        (None, "null"),
        ([1, 2], [2, 1]),
        ("a", "a "),
        ({"a": None}, {}),
        (float("inf"), float("-inf")),
        (0.1, 0.2),
        ("{broken", "{broken "),
        ("A", "a"),
    ],
)
def test_different_values_have_different_texts(one, other):
    assert canonical(one) != canonical(other)


def test_odd_values_do_not_make_it_fail():
    deep: list = []
    for _ in range(500):
        deep = [deep]
    for value in (
        deep,
        "[" * 5_000,
        {1: 2, "a": object},
        "\ud800",
        {"x": b"\xff"},
        10**400,
    ):
        assert isinstance(canonical(value), str)
    assert opened("[" * 5_000) == "[" * 5_000


@given(values)
def test_what_went_through_json_has_the_same_text(value):
    assert canonical(json.loads(json.dumps(value))) == canonical(value)


@given(st.dictionaries(st.text(), values))
def test_the_order_of_keys_does_not_matter(value):
    assert canonical(dict(reversed(value.items()))) == canonical(value)


def nested(kind, depth, inside):
    value = inside
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


@pytest.mark.parametrize("kind", [list, dict])
@pytest.mark.parametrize("depth", [65, 900, 10_000])
def test_a_value_of_any_depth_has_one_text_and_tells_another_apart(kind, depth):
    text = canonical(nested(kind, depth, {"x": 1, "y": 2}))
    assert text == canonical(nested(kind, depth, {"y": 2, "x": 1}))
    assert text != canonical(nested(kind, depth, {"x": 1, "y": 3}))
    assert text != canonical(nested(kind, depth + 1, {"x": 1, "y": 2}))


@pytest.mark.parametrize("depth", [65, 10_000])
def test_checks_of_calls_read_arguments_and_results_of_any_depth(depth):
    deep = nested(list, depth, "x")
    steps = [used(seq, "create_order", deep, deep) for seq in range(4)]
    trace = told(*steps, answer(4, deep))
    for slug in ("repeated-call", "repeated-side-effect", "duplicate-calls"):
        (found,) = by_slug(slug).run(trace)
        assert found.answer is Answer.SIGNAL
    for slug in ("no-progress", "unused-result", "final-answer", "unsupported-claim"):
        (found,) = by_slug(slug).run(trace)
        assert found.headline


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.none() | st.integers() | st.text(max_size=2), inner)
        ),
    )
)
def test_a_value_written_out_is_a_text_whatever_its_keys_are(value):
    assert canonical(nested(list, 2_000, value))
    assert canonical(value)
