"""Duplicate calls: counted anywhere in one owner, never queued."""

from __future__ import annotations

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.duplicate_calls import DuplicateCalls
from tests.engine.told import told, turned_round, used, user, without_bodies


def one(*ids, **parameters):
    steps = [used(n, "get", {"id": own}, "x") for n, own in enumerate(ids)]
    (found,) = DuplicateCalls(**parameters).run(told(*steps))
    return found


def test_equal_calls_anywhere_are_counted_and_never_queued():
    found = one(1, 2, 1, 3, 1, 2)
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.TELEMETRY)
    assert found.headline.startswith("3 of 6 tool calls repeat an earlier one")
    assert found.evidence.effect == 0.5
    assert found.evidence.steps == (0, 1, 2, 4, 5)
    first = found.evidence.facts["duplicates"][0]
    assert (first["times"], first["steps"]) == (3, [0, 2, 4])


def test_different_calls_are_quiet():
    assert one(1, 2, 3).reason_code == "all_different"


def test_a_user_between_two_equal_calls_changes_nothing_here():
    trace = told(
        used(0, "get", {"id": 1}, "x"), user(1, "again"), used(2, "get", {"id": 1}, "y")
    )
    (found,) = DuplicateCalls().run(trace)
    assert found.answer is Answer.SIGNAL


def test_two_agents_are_counted_apart():
    steps = [used(n, "get", {"id": 1}, "x", invocation=n) for n in range(2)]
    found = list(DuplicateCalls().run(told(*steps, agents=("one", "two"))))
    assert [f.answer for f in found] == [Answer.QUIET] * 2


def test_calls_without_comparable_arguments_are_left_out_and_said():
    steps = [used(0, "get", {"id": 1}, "x"), used(1, "get", None, "x")]
    (found,) = DuplicateCalls().run(told(*steps))
    assert found.answer is Answer.QUIET
    assert "1 of 2 calls" in found.reason
    hidden = [used(n, "get", {"to": "[redacted: name]"}, "x") for n in range(2)]
    (found,) = DuplicateCalls().run(told(*hidden))
    assert found.reason_code == "no_arguments"


def test_an_agent_without_arguments_is_not_applicable_beside_one_with_them():
    steps = [
        used(0, "get", {"id": 1}, "x"),
        used(1, "get", None, "x", invocation=1),
    ]
    found = list(DuplicateCalls().run(told(*steps, agents=("one", "two"))))
    assert [f.reason_code for f in found] == ["all_different", "no_arguments"]


def test_structure_only_is_not_applicable():
    trace = told(*[used(n, "get", {"id": 1}, "x") for n in range(2)])
    (found,) = DuplicateCalls().run(without_bodies(trace))
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_bodies")


def test_steps_in_any_order_give_the_same_answer():
    trace = told(*[used(n, "get", {"id": n % 3}, "x") for n in range(7)])
    assert list(DuplicateCalls().run(turned_round(trace))) == list(
        DuplicateCalls().run(trace)
    )


def test_how_many_make_a_group_is_a_parameter_with_limits():
    assert one(1, 1, times=3).answer is Answer.QUIET
    assert one(1, 1, 1, times=3).answer is Answer.SIGNAL
    assert "at least 3 times" in DuplicateCalls(times=3).material_when
    for wrong in (1, 101):
        with pytest.raises(ValueError, match="must be"):
            DuplicateCalls(times=wrong)


def test_smaller_groups_are_not_denied_where_more_calls_make_a_group():
    quiet = one(1, 1, 2, times=3)
    assert quiet.headline == "No call made 3 times in 3 tool calls"
    assert "duplicates" not in quiet.headline
    found = one(1, 1, 1, 2, 2, times=3)
    assert found.headline == (
        "2 of 5 tool calls repeat an earlier one that was made 3 times or more often"
    )


def test_it_speaks_of_one_call_in_good_english():
    assert one(1).headline == "No call made twice in 1 tool call"
    assert one(1, 1).headline == "1 of 2 tool calls repeats an earlier one"
