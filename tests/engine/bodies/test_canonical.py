"""Canonical texts: equal values are equal, and nothing makes it fail."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.bodies import canonical
from apps.engine.bodies.canonical import opened

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
