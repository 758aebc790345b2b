"""Tool calls in lanes and rounds, and how they failed."""

from __future__ import annotations

import pytest

from apps.engine.bodies import tool_lanes
from apps.engine.bodies.calls import says_it_failed
from tests.engine.told import told, turned_round, used, user
from tests.engine.traces import SECOND, trace_of


def sizes(trace):
    return [[len(one.calls) for one in lane.rounds] for lane in tool_lanes(trace)]


def test_calls_of_one_answer_are_one_round():
    steps = [used(n, "get", {"n": n}, "x", by=10 + n // 2) for n in range(4)]
    assert sizes(told(*steps)) == [[2, 2]]


def test_calls_that_overlap_in_time_are_one_round_and_touching_ones_are_two():
    def at(seq, start, end):
        return used(seq, "get", {}, "x", start_ns=start * SECOND, end_ns=end * SECOND)

    assert sizes(trace_of(at(0, 0, 2), at(1, 1, 3), at(2, 2, 4), at(3, 4, 5))) == [
        [3, 1]
    ]


def test_calls_without_a_request_are_rounds_of_their_own():
    assert sizes(told(*[used(n, "get", {}, "x") for n in range(3)])) == [[1, 1, 1]]


def test_a_span_inside_another_of_the_same_call_is_left_out():
    steps = [
        used(0, "get", {"id": 1}, "x"),
        used(1, "get", {"id": 1}, "x", parent=0),
        used(2, "get", {"id": 2}, "y", parent=0),
        used(3, "other", {"id": 1}, "y", parent=0),
    ]
    (lane,) = tool_lanes(told(*steps))
    assert [call.step for call in lane.calls] == [0, 2, 3]


def test_a_circle_of_parents_does_not_hang():
    steps = [used(0, "a", {}, "x", parent=1), used(1, "b", {}, "x", parent=0)]
    assert sizes(told(*steps)) == [[1, 1]]
    assert sizes(told(used(0, "a", {}, "x", parent=0))) == [[1]]


def test_rounds_know_how_many_user_messages_came_before():
    trace = told(used(0, "a", {}), user(1, "x"), used(2, "a", {}), used(3, "a", {}))
    (lane,) = tool_lanes(trace)
    assert [one.turn for one in lane.rounds] == [0, 1, 1]


def test_the_fingerprint_follows_what_can_be_compared():
    def of(*steps):
        return tool_lanes(told(*steps))[0].fingerprint

    one = of(used(0, "a", {"x": 1}, "r"), used(1, "b", {}, "s"))
    assert one == of(used(0, "a", {"x": 1.0}, "r"), used(1, "b", {}, "s"))
    assert (
        one
        == tool_lanes(
            turned_round(told(used(0, "a", {"x": 1}, "r"), used(1, "b", {}, "s")))
        )[0].fingerprint
    )
    assert one != of(used(0, "a", {"x": 2}, "r"), used(1, "b", {}, "s"))
    assert one != of(used(0, "a", {"x": 1}, "r"), used(1, "b", {}, "t"))
    assert one != of(used(0, "a", {"x": 1}, "r"), user(1, "?"), used(2, "b", {}, "s"))


@pytest.mark.parametrize(
    "output",
    ["Error: no", "  error", "Traceback (most recent call last)", "Failed to load",
     {"error": "x"}, {"isError": True}, {"success": False}, {"exit_code": 2},
     '{"error": {"code": 5}}', "<returncode>127</returncode>"],
)  # fmt: skip
def test_results_that_say_they_failed(output):
    assert says_it_failed(output)


@pytest.mark.parametrize(
    "output",
    ["", "ok", "No errors found", "0 failed", {"error": None}, {"errors": []}, [],
     {"success": True}, {"exit_code": 0}, "<returncode>0</returncode>", 7, None,
     '{"errors": 0}', "The error was fixed"],
)  # fmt: skip
def test_results_that_do_not(output):
    assert not says_it_failed(output)
