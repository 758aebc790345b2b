"""What of a trial is compared, and what is not."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.branching import (
    Point,
    PointKind,
    has_uncertain_order,
    packed,
    points_of,
    unpacked,
)
from apps.engine.branching.points import LONGEST_LABEL
from apps.engine.branching.prose import is_prose, without_prose
from apps.engine.trace import AgentInvocation, Body, Step, StepKind, Trace, Via
from tests.engine.random_traces import traces
from tests.engine.told import answer, told, used, user
from tests.engine.traces import SECOND

WORDS = "I need to look at the booking before I cancel anything for him"


def keys(*steps, **options):
    return [point.key for point in points_of(told(*steps), **options)]


def labels(*steps, **options):
    return [point.label for point in points_of(told(*steps), **options)]


def test_a_call_is_its_tool_with_its_arguments_in_any_order():
    one = keys(used(0, "pay", {"to": "a", "sum": 1}))
    assert one == keys(used(0, "pay", '{"sum": 1.0, "to": "a"}'))
    assert one != keys(used(0, "pay", {"to": "a", "sum": 2}))
    assert one != keys(used(0, "refund", {"to": "a", "sum": 1}))
    assert labels(used(0, "pay", {"to": "a", "sum": 1})) == ["pay(sum=1, to=a)"]


def test_calls_of_one_round_are_one_point_in_no_order():
    first = [used(1, "look", {"id": 1}, by=0), used(2, "search", {"q": "x"}, by=0)]
    second = [used(1, "search", {"q": "x"}, by=0), used(2, "look", {"id": 1}, by=0)]
    assert keys(*first) == keys(*second)
    (point,) = points_of(told(*first))
    assert (point.tool, point.tools) == ("look, search", ("look", "search"))
    assert point.label == "look(id=1) + search(q=x)"
    apart = [used(1, "look", {"id": 1}, by=0), used(2, "search", {"q": "x"}, by=9)]
    assert len(keys(*apart)) == 2


def test_prose_among_the_arguments_is_compared_only_where_text_is():
    one = used(0, "hand_over", {"id": 7, "summary": WORDS})
    other = used(0, "hand_over", {"id": 7, "summary": f"{WORDS}, said the clerk to me"})
    assert keys(one) == keys(other)
    assert labels(one) == ["hand_over(id=7, summary=…)"]
    assert keys(one, compare="text") != keys(other, compare="text")


def test_a_call_that_only_holds_a_thought_is_no_decision():
    thought = used(0, "think", {"thought": "First X9"})
    assert keys(thought) == []
    assert len(keys(thought, compare="text")) == 1
    assert len(keys(used(0, "note", {"thought": "x", "id": 1}))) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WORDS, True),
        ("cancel order", False),
        ("cd /srv/app && python -m pytest tests/a_test.py -q -x --maxfail 3", False),
        ("SELECT name FROM users WHERE city = 'Rome' AND age > 40 LIMIT 5", False),
        ("404 + 202 - 148 + 16 + 3 + 9 + 11 + 4", False),
        (7, False),
    ],
)
def test_prose_is_told_from_commands_queries_and_sums(text, expected):
    assert is_prose(text) is expected


def test_prose_in_lists_and_objects_is_left_out_too():
    value = {"notes": [WORDS, "x"], "a": {"thinking": "yes", "b": 1}}
    assert without_prose(value) == {"notes": [None, "x"], "a": {"b": 1}}


def test_calls_without_recorded_arguments_compare_by_name_and_say_so():
    (point,) = points_of(told(used(0, "pay")))
    assert (point.label, point.is_uncertain) == ("pay(?)", True)
    redacted = used(0, "pay", {"card": "[redacted: card number]"})
    assert keys(used(0, "pay")) == keys(redacted)
    assert keys(used(0, "pay")) != keys(used(0, "pay", {}))


def test_a_handoff_is_the_agent_it_goes_to():
    def handed(name):
        return Step(seq=0, kind=StepKind.HANDOFF, invocation=0, name=name)

    assert labels(handed("handoff to Billing")) == ["handoff to Billing"]
    assert keys(handed("handoff to Billing")) == keys(handed("transfer_to_billing"))
    assert keys(handed("Sales")) != keys(handed("Billing"))


def test_a_handoff_without_a_step_is_known_by_the_invocation_it_began():
    trace = Trace(
        name="t",
        steps=(answer(0), answer(1, invocation=1)),
        invocations=(
            AgentInvocation(0, "triage"),
            AgentInvocation(1, "billing", via=Via.HANDOFF),
        ),
    )
    assert [(p.label, p.step) for p in points_of(trace)] == [("handoff to billing", 1)]


def test_answers_that_were_extracted_stand_at_their_steps():
    steps = [used(0, "look", {"id": 1}), answer(1), used(2, "pay", {"id": 1})]
    points = points_of(told(*steps), extra={1: ("approve", "decision: approve")})
    assert [point.kind for point in points] == ["calls", "answer", "calls"]
    assert (points[1].label, points[1].agent) == ("decision: approve", "billing")
    other = points_of(told(*steps), extra={1: ("deny", "decision: deny")})
    assert points[1].key != other[1].key
    assert len(points_of(told(*steps), extra={99: ("x", "x")})) == 3


def test_text_makes_every_answer_and_every_message_of_the_user_a_point():
    steps = [
        user(0, "Hello"),
        answer(1, "Hi, how are you?"),
        used(2, "look", {"id": 1}),
    ]
    assert labels(*steps) == ["look(id=1)"]
    assert labels(*steps, compare="text") == ["Hello", "Hi, how are you?", "look(id=1)"]


def test_calls_of_all_agents_stand_in_the_order_of_the_trace():
    steps = [used(n, f"tool_{n}", {"n": n}, invocation=n % 2) for n in range(6)]
    points = points_of(told(*steps, agents=("a", "b")))
    assert [point.step for point in points] == list(range(6))
    assert [point.agent for point in points] == ["a", "b"] * 3


def test_a_label_shows_as_much_as_there_is_room_for():
    given = {"flights": [{"date": "05-24", "number": f"HAT{n}"} for n in range(40)]}
    (label,) = labels(used(0, "book", given | {"cabin": "economy"}))
    assert label.startswith("book(cabin=economy, flights=[05-24 HAT0, 05-24 HAT1, ")
    assert label.endswith("…)")
    assert len(label) <= LONGEST_LABEL


def overlapping(start):
    steps = [
        used(0, "a", {}, invocation=0, start_ns=0, end_ns=10 * SECOND),
        used(1, "b", {}, invocation=1, start_ns=start * SECOND, end_ns=20 * SECOND),
    ]
    return Trace(
        name="t",
        steps=tuple(steps),
        invocations=(AgentInvocation(0, "a"), AgentInvocation(1, "b")),
    )


def test_agents_that_work_at_the_same_time_make_the_order_uncertain():
    assert has_uncertain_order(overlapping(5))
    assert not has_uncertain_order(overlapping(10))
    assert not has_uncertain_order(told(used(0, "a", {}), used(1, "b", {})))


@given(traces(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_trace_has_points_whatever_the_order_of_its_steps(trace, source):
    steps = list(trace.steps)
    source.shuffle(steps)
    turned = msgspec.structs.replace(trace, steps=tuple(steps))
    for compare in ("decisions", "text"):
        points = points_of(trace, compare=compare)
        assert points == points_of(turned, compare=compare)
        assert all(len(p.label) <= LONGEST_LABEL and len(p.key) == 12 for p in points)
        assert unpacked(packed(points)) == points


def test_packed_points_are_small_and_come_back_as_they_were():
    source = random.Random(4)
    steps = [
        used(n, f"get_{source.randrange(9)}", {"id": source.randrange(10**6)})
        for n in range(200)
    ]
    points = points_of(told(*steps))
    data = packed(points)
    assert unpacked(data) == points
    assert packed(points) == data
    assert len(data) < 40 * len(points)


@pytest.mark.parametrize("data", [b"", b"\x02abc", b"\x01", b"\x01abc"])
def test_bytes_that_hold_no_points_are_refused_with_a_sentence(data):
    with pytest.raises(ValueError, match=r"decision points"):
        unpacked(data)


def test_a_body_that_is_only_a_result_leaves_the_arguments_unknown():
    step = msgspec.structs.replace(used(0, "pay"), body=Body(output="paid"))
    (point,) = points_of(told(step))
    assert point == Point(
        key=point.key,
        label="pay(?)",
        kind=PointKind.CALLS,
        step=0,
        agent="billing",
        tool="pay",
        is_uncertain=True,
    )
