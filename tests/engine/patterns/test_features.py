"""Features are what is recorded of a conduct, small, and never a guess."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.conduct import conducts_of, whole_conduct
from apps.engine.patterns import Unit, features_of, find_patterns, stored_value
from apps.engine.patterns.features import MOST_BYTES, MOST_FIELDS, script_of
from apps.engine.trace import Body, Step, StepKind, StepStatus
from tests.engine.random_traces import shuffled, traces
from tests.engine.told import answer, told, used, user
from tests.engine.traces import call, tools_trace, trace_of


def asked(given, *steps):
    """The features of an agent that was given this."""
    first = Step(
        seq=0, kind=StepKind.USER_MESSAGE, invocation=0, body=Body(output=given)
    )
    trace = told(first, *(steps or (answer(1),)))
    [conduct] = conducts_of(trace)
    return features_of(conduct, trace)


def test_the_fields_of_a_json_input_are_features_of_their_kind():
    found = asked(
        {
            "confidence": 0.43,
            "urgent": True,
            "channel": "mail",
            "tags": ["b", "a", "b"],
            "customer": {"tier": 2, "deeper": {"more": 1}},
            "letter": "x" * 500,
            "lines": "a\nb",
            "items": [{"a": 1}],
            "nothing": None,
        }
    )
    fields = {name: value for name, value in found.items() if "input." in name}
    assert fields == {
        "input.confidence": 0.43,
        "input.urgent": True,
        "input.channel": "mail",
        "input.tags": ("a", "b"),
        "input.customer.tier": 2,
    }


def test_json_in_a_text_is_opened():
    assert asked('{"confidence": 0.5}')["input.confidence"] == 0.5


def test_prose_has_a_length_and_a_script_and_no_fields():
    found = asked("Please refund me")
    assert (found["input_length"], found["script"]) == (16, "Latin")
    assert not [name for name in found if name.startswith("input.")]


def test_what_is_not_recorded_is_left_out():
    trace = tools_trace("search")
    found = features_of(whole_conduct(trace), trace)
    assert found == {"calls": 1, "errors": 0, "invocations": 1, "tools": ("search",)}


def test_calls_tools_models_errors_and_turns_are_counted():
    trace = told(
        user(0, "One"),
        answer(1),
        used(2, "send", {"to": 1}, "ok"),
        used(3, "look", {"at": 2}, "Error: none", status=StepStatus.ERROR),
        user(4, "Two"),
        answer(5),
    )
    [conduct] = conducts_of(trace)
    found = features_of(conduct, trace)
    assert found["agent"] == "billing"
    assert (found["calls"], found["errors"], found["model_calls"]) == (2, 1, 2)
    assert found["tools"] == ("look", "send")
    assert (found["turn"], found["user_messages"]) == (1, 2)


def test_retries_are_no_further_model_calls():
    failed = {"status": StepStatus.ERROR}
    trace = trace_of(call(0, None, step=failed), call(1, 10, retry_of=0))
    [conduct] = conducts_of(trace)
    found = features_of(conduct, trace)
    assert (found["model_calls"], found["retries"], found["errors"]) == (1, 1, 0)
    assert found["models"] == ("m",)


def test_an_agent_that_comes_later_knows_how_many_messages_came_before():
    trace = trace_of(
        Step(seq=0, kind=StepKind.USER_MESSAGE, invocation=0, body=Body(output="a")),
        call(1),
        Step(seq=2, kind=StepKind.USER_MESSAGE, invocation=0, body=Body(output="b")),
        call(3, step={"invocation": 1}),
        agents=("first", "second"),
    )
    turns = {
        conduct.agent: features_of(conduct, trace)["turn"]
        for conduct in conducts_of(trace)
    }
    assert turns == {"first": 1, "second": 2}


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Good day", "Latin"),
        ("Добрый день", "Cyrillic"),
        ("退款", "Han"),
        ("これはペンです漢字", "Japanese script"),
        ("안녕하세요", "Hangul"),
        ("مرحبا", "Arabic"),
        ("abcd Добр", "mixed"),
        ("1234 !?", None),
        ("", None),
    ],
)
def test_the_script_is_that_of_the_letters(text, script):
    assert script_of(text) == script


def test_no_language_is_concluded_from_latin_letters():
    assert script_of("Wo ist mein Paket") == script_of("Where is my parcel")


def test_many_fields_are_bounded_and_the_same_ones_stay():
    many = {f"field{n:03}": n / 7 for n in range(500)}
    found = asked(many)
    fields = [name for name in found if name.startswith("input.")]
    assert 20 < len(fields) <= MOST_FIELDS
    assert fields == sorted(fields)
    assert asked(dict(reversed(many.items()))) == found


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=80)
    | st.sampled_from([10**30, "\x00", "\ud800", "x" * 5_000]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=90), inner, max_size=30)
    ),
    max_leaves=60,
)


@given(json_values)
@settings(max_examples=150, deadline=None)
def test_any_input_gives_few_bytes_of_plain_json(given):
    found = asked(given)
    text = json.dumps(found, ensure_ascii=False, allow_nan=False)
    assert len(text.encode()) <= MOST_BYTES * 1.2
    back = {name: stored_value(value) for name, value in json.loads(text).items()}
    assert back == found
    unit = Unit(id="a", task="t", features=back, target=True)
    assert find_patterns([unit], target="failing").findings == ()


@given(traces(), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_any_trace_has_features_in_any_order_of_its_steps(trace, seed):
    other = shuffled(trace, random.Random(seed))
    found = [features_of(conduct, trace) for conduct in conducts_of(trace)]
    assert found == [features_of(conduct, other) for conduct in conducts_of(other)]
    whole = features_of(whole_conduct(trace), trace)
    assert len(json.dumps(whole)) <= MOST_BYTES * 1.2
