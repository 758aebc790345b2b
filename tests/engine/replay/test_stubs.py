"""Stubs: what answers a tool call, what is a miss, and what a session remembers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.replay.case import Case, RecordedCall
from apps.engine.replay.run import AnswerSource, ToolAnswer
from apps.engine.replay.stub_plan import (
    AS_RECORDED,
    BadPlan,
    StubPlan,
    decoded_plan,
    encoded_plan,
)
from apps.engine.replay.stubs import StubSession

CALLS = (
    RecordedCall(tool="get_order", arguments={"id": 7, "full": True}, result="paid"),
    RecordedCall(tool="get_order", arguments={"id": 8}, result={"status": "open"}),
    RecordedCall(tool="get_order", arguments={"id": 7, "full": True}, result="sent"),
    RecordedCall(tool="refund", arguments={"id": 7}, error="Card refused", writes=True),
    RecordedCall(tool="files.read", arguments=None, result="text"),
    RecordedCall(tool="ping", arguments={}),
)
CASE = Case(agent="billing", calls=CALLS)


def plan(**value):
    return decoded_plan(value)


def session(**value):
    return StubSession(CASE, plan(**value))


@pytest.mark.parametrize(
    "arguments",
    [
        {"id": 7, "full": True},
        {"full": True, "id": 7},
        {"id": 7.0, "full": True},
        '{"id": 7, "full": true}',
    ],
)
def test_arguments_match_however_they_are_written(arguments):
    answer = session().answer("get_order", arguments)
    assert answer == ToolAnswer(source=AnswerSource.RECORDED, result="paid", matched=0)


@pytest.mark.parametrize("arguments", [{}, None, "", "{}"])
def test_no_arguments_are_no_arguments(arguments):
    answer = session().answer("ping", arguments)
    assert (answer.source, answer.matched) == (AnswerSource.RECORDED, 5)
    assert answer.note == "What it answered is not recorded."


def test_each_recording_is_used_once_and_then_as_declared():
    again, miss = session(), session(default={"kind": "recorded", "again": "miss"})
    seven = {"id": 7, "full": True}
    for stubs in (again, miss):
        assert [stubs.answer("get_order", seven).result for _ in range(2)] == [
            "paid",
            "sent",
        ]
    third = again.answer("get_order", seven)
    assert (third.result, third.matched) == ("sent", 2)
    assert third.note == "The 2 recordings of this call came before: again."
    third = miss.answer("get_order", seven)
    assert third.source is AnswerSource.MISS
    assert third.note == "The 2 recordings of this call are used up."
    assert again.unconsumed == (1, 3, 4, 5)


def test_a_recorded_error_is_answered_as_an_error_and_a_write_is_only_intended():
    stubs = session()
    answer = stubs.answer("refund", {"id": 7})
    assert (answer.error, answer.result, answer.writes) == ("Card refused", None, True)
    assert stubs.answer("send_email", {"to": "x"}).writes
    assert not stubs.answer("get_order", {"id": 8}).writes
    assert [one.tool for one in stubs.intended_writes] == ["refund", "send_email"]


def test_a_miss_names_the_nearest_recording_and_what_differs():
    stubs = session()
    notes = [
        stubs.answer(tool, arguments).note
        for tool, arguments in (
            ("get_order", {"id": 9}),
            ("get_order", {"id": 7, "full": False, "x": 1}),
            ("get_ordr", {"id": 7}),
            ("unlike", {}),
            ("files.read", {"path": "a"}),
        )
    ]
    assert notes == [
        "The nearest recording is call 2, which differs in `id` (8 there, 9 here).",
        "The nearest recording is call 1, which differs in `full` (true there, false "
        "here); `x` (absent there, 1 here).",
        "No call of `get_ordr` is recorded. One of `get_order` is.",
        "No call of `unlike` is recorded.",
        "Its recordings have no arguments that can be compared.",
    ]
    assert len(stubs.misses) == 5


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("error", (None, "This call has no prepared answer.", False)),
        ("empty", ("", "", False)),
        ("stop", (None, "This call has no prepared answer.", True)),
    ],
)
def test_a_miss_is_answered_by_the_declared_policy(policy, expected):
    answer = session(misses=policy).answer("unlike", {})
    assert (answer.result, answer.error, answer.stops) == expected


def test_in_order_takes_the_recordings_one_after_another():
    stubs = session(tools={"get_order": {"kind": "in_order", "again": "miss"}})
    answers = [stubs.answer("get_order", {"id": 8}) for _ in range(4)]
    assert [one.result for one in answers[:3]] == ["paid", {"status": "open"}, "sent"]
    assert answers[0].note == (
        "Taken by its order. The nearest recording is call 1, which differs in `id` "
        "(7 there, 8 here); `full` (true there, absent here)."
    )
    assert answers[1].note == ""
    assert answers[3].note == "All 3 recordings of it are used up."
    reads = session(tools={"files_read": {"kind": "in_order"}})
    # A provider sends the name with other characters.
    assert [reads.answer(name, 1).result for name in ("files.read", "files_read")] == [
        "text",
        "text",
    ]


def test_static_values_and_expressions_answer_what_is_not_recorded():
    stubs = session(
        tools={
            "price": {"kind": "static", "value": {"eur": 3}},
            "broken": {"kind": "static", "error": "Down", "writes": True},
            "total": {
                "kind": "expression",
                "expression": '{"sum": arguments.a + 1.0, "call": call, "by": tool}',
            },
        }
    )
    first = stubs.answer("price", {"any": 1})
    first.result["eur"] = 99
    assert stubs.answer("price", {}).result == {"eur": 3}
    broken = stubs.answer("broken", {})
    assert (broken.error, broken.writes) == ("Down", True)
    assert stubs.answer("total", {"a": 2}).result == {
        "sum": 3,
        "call": 1,
        "by": "total",
    }
    assert stubs.answer("total", '{"a": 2.5}').result["call"] == 2
    failed = stubs.answer("total", {})
    assert failed.source is AnswerSource.MISS
    assert failed.note == "No answer, because the expression fails on these arguments."


def test_an_expression_that_costs_too_much_is_a_miss():
    dear = "arguments.l.map(x, arguments.l.map(y, x + y))"
    stubs = session(default={"kind": "expression", "expression": dear})
    note = stubs.answer("any", {"l": ["x" * 200] * 2_000}).note
    assert note == (
        "No answer, because the expression may need too much work on these arguments."
    )


def test_a_handler_on_the_list_answers_and_its_failure_is_a_miss():
    def fails(tool, arguments):
        raise KeyError(arguments["secret"])

    handlers = {
        "echo": lambda tool, arguments: {"tool": tool, "got": arguments.pop("id")},
        "fails": fails,
        "odd": lambda tool, arguments: {1, 2},
    }
    value = {name: {"kind": "handler", "handler": name} for name in handlers}
    stubs = StubSession(CASE, plan(tools=value), handlers=handlers)
    assert stubs.answer("echo", {"id": 1}).result == {"tool": "echo", "got": 1}
    assert stubs.answered[0].arguments == {"id": 1}
    assert stubs.answer("fails", {"secret": "s3"}).note == (
        "The handler “fails” failed (KeyError)."
    )
    assert stubs.answer("odd", {}).note == "The handler “odd” failed (TypeError)."
    with pytest.raises(BadPlan, match="“echo” is not on the list"):
        StubSession(CASE, plan(tools=value))


def test_what_an_agent_does_to_an_answer_changes_no_recording():
    stubs = session()
    stubs.answer("get_order", {"id": 8}).result["status"] = "changed"
    assert stubs.answer("get_order", {"id": 8}).result == {"status": "open"}
    assert CALLS[1].result == {"status": "open"}


names = st.sampled_from(["get_order", "refund", "files.read", "ping", "other"])
arguments = st.sampled_from(
    [None, {}, {"id": 7}, {"id": 8}, {"id": 7, "full": True}, '{"id": 8}', [1], "x"]
)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(names, arguments), max_size=12),
    st.integers(0, 12),
    st.sampled_from(["recorded", "in_order"]),
    st.sampled_from(["last", "miss"]),
)
def test_a_session_goes_on_from_its_log_as_if_it_had_not_stopped(
    calls, at, kind, again
):
    value = plan(default={"kind": kind, "again": again})
    whole = StubSession(CASE, value)
    expected = [whole.answer(*call) for call in calls]
    first = StubSession(CASE, value)
    answers = [first.answer(*call) for call in calls[:at]]
    second = StubSession(CASE, value, log=json.loads(json.dumps(first.log)))
    answers += [second.answer(*call) for call in calls[at:]]
    assert answers == expected
    assert second.log == whole.log
    assert second.unconsumed == whole.unconsumed
    used = {one.matched for one in expected} - {None}
    assert set(whole.unconsumed) == set(range(len(CALLS))) - used


def test_a_log_of_something_else_is_refused():
    for log in ([{"tool": "x"}], [{"tool": "x", "arguments": 1, "answer": {
            "source": "recorded", "matched": 99}}]):  # fmt: skip
        with pytest.raises(BadPlan):
            StubSession(CASE, AS_RECORDED, log=log)


@pytest.mark.parametrize(
    ("value", "field", "sentence"),
    [
        ({"tool": {}}, "", "unknown field `tool`"),
        ({"misses": "shrug"}, "misses", "Invalid enum value 'shrug'"),
        ({"default": {"kind": "live"}}, "default.kind", "Invalid enum value 'live'"),
        ({"tools": {"t": {"kind": "live"}}}, "tools.t.kind", "in “tools.t.kind”."),
        ({"tools": {"t": 7}}, "tools.t", "Expected `object`, got `int`"),
        (7, "", "Expected `object`, got `int`."),
        ({"default": {"kind": "static", "handler": "x"}}, "default.handler",
         "“static” takes no “handler”."),
        ({"default": {"kind": "static", "value": 1, "error": "x"}}, "default.error",
         "a value or an error, not both"),
        ({"tools": {"t": {"kind": "handler"}}}, "tools.t.handler", "Name the handler."),
        ({"tools": {"t": {"kind": "expression", "expression": "1 +"}}},
         "tools.t.expression", "it ends too early"),
        ({"tools": {"t": {"kind": "expression"}}}, "tools.t.expression",
         "Write an expression"),
        ({"tools": {" ": {}}}, "tools", "The name of a tool has 1 to 200"),
        ({"tools": {"a.b": {}, "a_b": {}}}, "tools.a_b", "are one tool"),
        ({"tools": []}, "tools", "Expected `object`"),
    ],
)  # fmt: skip
def test_a_bad_plan_is_refused_with_its_field(value, field, sentence):
    with pytest.raises(BadPlan) as refusal:
        decoded_plan(value)
    assert refusal.value.field == field
    assert sentence in str(refusal.value)


def test_a_plan_comes_back_as_it_was_written():
    value = plan(
        tools={"a": {"kind": "static", "value": [1]}, "b": {"kind": "in_order"}},
        misses="stop",
    )
    assert decoded_plan(json.loads(json.dumps(encoded_plan(value)))) == value
    assert StubPlan() == AS_RECORDED == decoded_plan({})
