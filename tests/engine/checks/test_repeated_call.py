"""Repeated calls: in a row, in turns, and everything that only looks like it."""

from __future__ import annotations

import json

import pytest

from apps.engine.check import Answer, Level, configured
from apps.engine.checks.repeated_call import RepeatedCall
from apps.engine.trace import StepStatus
from tests.engine.told import told, turned_round, used, user, without_bodies
from tests.engine.traces import SECOND, trace_of


def one(trace, **parameters):
    (found,) = RepeatedCall(**parameters).run(trace)
    return found


def row(*calls, **fields):
    """One trace of calls `(name, arguments, result)`, one after another."""
    return told(*[used(seq, *call) for seq, call in enumerate(calls)], **fields)


def test_three_equal_calls_in_a_row_are_a_signal():
    found = one(row(*[("get_order", {"id": 7}, "paid")] * 3))
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.reason_code == "in_a_row"
    assert found.evidence.steps == (0, 1, 2)
    assert found.evidence.effect == 3
    assert found.evidence.chance is None
    assert found.evidence.chance_of_signal is None
    assert found.evidence.facts["results"] == "equal"


def test_two_equal_calls_are_too_few_and_say_so():
    found = one(row(*[("get_order", {"id": 7}, "paid")] * 2))
    assert found.answer is Answer.NOT_APPLICABLE
    assert found.headline == "2 rounds of tool calls, needs 3"


def test_arguments_are_equal_whatever_their_keys_look_like():
    found = one(
        row(
            ("get", {"a": 1, "b": {"c": 2, "d": 3}}, "x"),
            ("get", {"b": {"d": 3.0, "c": 2}, "a": 1.0}, "x"),
            ("get", '{"b": "{\\"c\\": 2, \\"d\\": 3}", "a": 1}', "x"),
        )
    )
    assert found.answer is Answer.SIGNAL


def test_what_takes_turns_is_said_with_how_many_calls():
    found = one(row(*[("look", {}, "x"), ("turn", {}, "y")] * 2))
    assert found.headline == (
        "look and turn called in turns with the same arguments, 4 calls in a row"
    )


def test_a_retry_after_an_error_is_said_and_not_called_polling():
    found = one(row(*[("get", {}, "Error: 503")] * 2, ("get", {}, "rows")))
    assert (found.answer, found.reason_code) == (Answer.QUIET, "retried")
    assert "tried again after an error" in found.reason
    stuck = one(row(*[("get", {}, "Error: 503")] * 3))
    assert stuck.answer is Answer.SIGNAL


def test_other_arguments_or_another_tool_end_the_row():
    found = one(
        row(("get", {"id": 1}, "x"), ("get", {"id": 2}, "x"), ("got", {"id": 1}, "x"))
    )
    assert (found.answer, found.reason_code) == (Answer.QUIET, "no_repetition")


def test_text_and_number_are_different_arguments():
    found = one(row(*[("get", {"id": value}, "x") for value in (1, "1", 1)]))
    assert found.answer is Answer.QUIET


def test_two_calls_in_turns_are_a_signal_from_two_full_repeats():
    a, b = ("read", {"f": "a"}, "1"), ("read", {"f": "b"}, "2")
    found = one(row(a, b, a, b))
    assert (found.answer, found.reason_code) == (Answer.SIGNAL, "in_turns")
    assert one(row(a, b, a)).answer is Answer.QUIET
    assert one(row(a, b, a, b), cycles=3).answer is Answer.QUIET


def test_turns_are_found_after_a_beginning_that_does_not_belong_to_them():
    a, b, c = [("read", {"f": name}, name) for name in "abc"]
    found = one(row(c, a, b, a, b, c))
    assert found.answer is Answer.SIGNAL
    assert found.evidence.steps == (1, 2, 3, 4)


def test_a_status_that_is_polled_until_it_changes_is_quiet():
    calls = [("get_job", {"id": 1}, s) for s in ("running", "running", "done")]
    found = one(row(*calls))
    assert (found.answer, found.reason_code) == (Answer.QUIET, "polling")
    assert found.evidence.facts["runs"][0]["results_differ"] is True


def test_editing_and_testing_in_turns_with_other_results_is_quiet():
    edit, runs = ("edit", {"f": "a"}, "ok"), ("test", {}, "2 failed")
    found = one(row(edit, runs, edit, ("test", {}, "1 failed")))
    assert found.reason_code == "polling"


def test_waiting_and_scrolling_without_results_is_quiet():
    found = one(row(*[("scroll_down", {"by": 1}, None)] * 4))
    assert (found.answer, found.reason_code) == (Answer.QUIET, "results_unknown")
    assert one(row(*[("scroll_down", {"by": 1}, "end")] * 4)).answer is Answer.SIGNAL


def test_results_that_are_not_recorded_are_said():
    found = one(row(*[("get_order", {"id": 7}, None)] * 3))
    assert found.answer is Answer.SIGNAL
    assert found.evidence.facts["results"] == "not all recorded"
    assert "cannot be ruled out" in found.reason


def test_equal_calls_that_were_asked_for_at_once_are_no_row():
    found = one(told(*[used(seq, "get", {"id": 7}, "x", by=9) for seq in range(4)]))
    assert found.headline == "1 round of tool calls, needs 3"


def test_equal_calls_that_overlap_in_time_are_no_row():
    times = {"start_ns": 0, "end_ns": 9 * SECOND}
    steps = [used(seq, "get", {"id": 7}, "x", **times) for seq in range(4)]
    assert one(trace_of(*steps)).answer is Answer.NOT_APPLICABLE


def test_equal_rounds_of_several_calls_are_a_row():
    steps = []
    for turn in range(3):
        pair = [("a", {"x": 1}, "r"), ("b", {"x": 2}, "s")]
        for name, given, result in pair if turn % 2 else reversed(pair):
            steps.append(used(len(steps), name, given, result, by=100 + turn))
    found = one(told(*steps))
    assert found.answer is Answer.SIGNAL
    assert found.evidence.steps == (0, 1, 2, 3, 4, 5)


def test_a_user_who_asks_again_ends_the_row():
    steps = []
    for turn in range(4):
        steps.append(user(2 * turn, "And now?"))
        steps.append(used(2 * turn + 1, "get", {"id": 7}, "x"))
    assert one(told(*steps)).answer is Answer.QUIET


def test_two_agents_do_not_make_one_row():
    steps = [used(n, "get", {"id": 7}, "x", invocation=n % 2) for n in range(4)]
    found = list(RepeatedCall().run(told(*steps, agents=("one", "two"))))
    assert [f.answer for f in found] == [Answer.NOT_APPLICABLE] * 2
    assert [f.evidence.agent for f in found] == ["one", "two"]


def test_one_call_recorded_as_two_nested_spans_counts_once():
    steps = []
    for n in range(2):
        steps.append(used(2 * n, "get", {"id": 7}, "x"))
        steps.append(used(2 * n + 1, "get", {"id": 7}, "x", parent=2 * n))
    assert one(told(*steps)).headline == "2 rounds of tool calls, needs 3"


def test_redacted_arguments_are_not_taken_for_equal():
    found = one(row(*[("mail", {"to": "[redacted: e-mail address]"}, "x")] * 3))
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_arguments")


def test_a_call_without_arguments_is_compared_with_nothing():
    calls = [("get", {"id": 1}, "x"), ("get", None, "x"), ("get", {"id": 1}, "x")]
    found = one(row(*calls))
    assert found.answer is Answer.QUIET
    assert "1 of 3 calls has no arguments" in found.reason


def test_structure_only_is_not_applicable_and_never_quiet():
    found = one(without_bodies(row(*[("get", {"id": 7}, "x")] * 3)))
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_bodies")
    assert one(told()).reason_code == "no_tool_calls"


def test_failures_that_repeat_are_a_row_too():
    steps = [
        used(
            n,
            "get",
            {"id": 7},
            "",
            status=StepStatus.ERROR,
            error_message="timeout",
        )
        for n in range(3)
    ]
    assert one(told(*steps)).answer is Answer.SIGNAL


def test_steps_in_any_order_give_the_same_answer():
    trace = row(*[("get", {"id": n // 3}, "x") for n in range(9)])
    assert one(turned_round(trace)) == one(trace)


def test_the_longest_run_is_named_and_all_are_listed():
    calls = [("a", {"n": 1}, "x")] * 3 + [("b", {"n": 1}, "x")] * 5
    found = one(row(*calls))
    assert found.headline.startswith("b called 5 times")
    assert len(found.evidence.facts["runs"]) == 2


def test_its_texts_follow_its_parameters_and_these_have_limits():
    other = configured(RepeatedCall(), {"in_a_row": 5})
    assert "At least 5 equal calls" in other.material_when
    trace = row(*[("get", {"id": 7}, "x")] * 4)
    assert one(trace, in_a_row=5).answer is Answer.QUIET
    for wrong in ({"in_a_row": 1}, {"in_a_row": 101}, {"cycles": 1}, {"cycles": 2.5}):
        with pytest.raises(ValueError, match="must be"):
            RepeatedCall(**wrong)


def test_parameters_do_not_change_the_input_hash_and_results_do():
    calls = [("get", {"id": 7}, "x")] * 3
    assert one(row(*calls)).input_hash == one(row(*calls), in_a_row=2).input_hash
    assert (
        one(row(*calls)).input_hash
        != one(row(*calls[:2], ("get", {"id": 7}, "y"))).input_hash
    )


def test_long_arguments_are_shown_by_their_beginning():
    found = one(row(*[("write", {"text": "x" * 5_000}, "x")] * 3))
    assert len(json.dumps(found.evidence.facts)) < 1_000


def test_it_speaks_of_one_call_in_good_english():
    bare = used(0, "get", None, "x", invocation=1)
    kept = used(1, "get", {"id": 1}, "x")
    found = list(RepeatedCall().run(told(bare, kept, agents=("one", "two"))))
    reasons = [f.reason for f in found]
    assert any(
        reason.startswith("The only tool call has no arguments") for reason in reasons
    )
    calls = [("get", {"id": n}, "x") for n in range(4)]
    assert one(row(*calls)).headline == (
        "No call repeated 3 times in a row in 4 tool calls"
    )
