"""No progress: equal results of different calls, and results that say nothing."""

from __future__ import annotations

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.no_progress import NoProgress
from tests.engine.told import (
    answer,
    failed,
    told,
    turned_round,
    used,
    user,
    without_bodies,
)


def one(trace, **parameters):
    (found,) = NoProgress(**parameters).run(trace)
    return found


def results(*values, name="search", **fields):
    """Calls with different arguments and these results."""
    steps = [used(n, name, {"q": n}, value) for n, value in enumerate(values)]
    return told(*steps, **fields)


def test_four_different_calls_with_one_result_are_a_signal():
    found = one(results(*["Error: user not found"] * 4))
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.reason_code == "same_failure"
    assert found.evidence.steps == (0, 1, 2, 3)
    assert found.evidence.facts["different_calls"] == 4
    assert "user not found" in found.reason


def test_a_page_that_does_not_change_is_a_signal():
    page = {"url": "https://example.org/", "tree": ["Sign in", "Password"]}
    steps = [used(n, f"tool {n}", {"x": n}, page) for n in range(4)]
    found = one(told(*steps))
    assert found.reason_code == "same_result"
    assert "4 tools" in found.headline


def test_three_equal_results_are_quiet_and_three_calls_too_few():
    assert one(results(*["no such user"] * 3)).reason_code == "too_few_calls"
    found = one(results(*["no such user"] * 3, "Anna"))
    assert (found.answer, found.reason_code) == (Answer.QUIET, "results_change")


@pytest.mark.parametrize(
    "result",
    [
        "",
        "ok",
        "Done.",
        "Success!",
        {"success": True},
        {"status": "ok"},
        [],
        {},
        True,
        "None",
        "(Bash completed with no output)",
        "Tool ran without output",
        "File created successfully",
        '{"status": "completed"}',
        "Command executed successfully, exit code 0",
    ],
)
def test_confirmations_and_empty_results_are_no_lack_of_progress(result):
    found = one(results("hello", *[result] * 5))
    assert found.answer is Answer.QUIET


def test_calls_that_write_and_succeed_are_progress():
    steps = [
        used(n, "create_ticket", {"n": n}, "The ticket waits for its approval")
        for n in range(5)
    ]
    assert one(told(*steps)).answer is Answer.QUIET
    assert one(told(*map(failed, steps))).reason_code == "same_failure"


def test_the_same_call_again_is_left_to_the_check_for_that():
    steps = [used(n, "search", {"q": 1}, "no such user") for n in range(5)]
    assert one(told(*steps)).answer is Answer.QUIET


def test_one_round_of_parallel_searches_is_one_attempt():
    steps = [used(n, "search", {"q": n}, "no such user", by=9) for n in range(6)]
    assert one(told(*steps)).headline == "1 round of tool calls, needs 4"


def test_a_user_who_says_something_else_ends_the_run():
    steps = []
    for turn in range(5):
        steps.append(user(2 * turn, f"Try {turn}"))
        steps.append(used(2 * turn + 1, "find", {"q": turn}, "Error: not found"))
    assert one(told(*steps)).answer is Answer.QUIET


def test_results_that_are_not_recorded_are_never_equal():
    found = one(results(None, None, None, None))
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_results")
    found = one(results(*"abcd", None, None))
    assert found.answer is Answer.QUIET
    assert found.headline.endswith("in 4 results")
    assert "2 results are not recorded" in found.reason
    assert "1 result is not recorded" in one(results(*"abcd", None)).reason


def test_it_does_not_say_that_results_change_where_most_are_not_recorded():
    found = one(results("Anna", None, "Bob", "Eve", None, None))
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "results_missing",
    )
    assert found.headline == "3 of 6 results recorded, too few in a row"


def test_it_says_how_many_of_the_calls_differ():
    result = "Error: not found"
    calls = [used(n, "find", {"q": max(n, 2)}, result) for n in range(4)]
    found = one(told(*calls))
    assert found.headline == (
        "4 calls in a row, 2 of them different, gave the same failure (find)"
    )
    assert "not all" not in found.reason
    all_differ = one(results(*[result] * 4))
    assert all_differ.headline.startswith("4 different calls in a row gave")


def test_arguments_that_are_not_known_are_not_taken_for_other_ones():
    result = "Error: not found"
    known = [used(n, "find", {"q": 1}, result) for n in range(3)]
    assert one(told(*known, used(3, "find", None, result))).answer is Answer.QUIET
    bare = [used(n, "find", None, result) for n in range(1, 4)]
    assert one(told(known[0], *bare)).answer is Answer.QUIET
    found = one(told(*known, used(3, "look", None, result)))
    assert found.evidence.facts["different_calls"] == 2
    assert "The arguments of 1 are not known" in found.reason


def test_parallel_calls_are_counted_as_rounds():
    steps = [answer(0)]
    for n in range(1, 9):
        by = (n - 1) // 2
        steps.append(used(n, "find", {"q": n}, "Error: not found", by=100 + by))
    assert one(told(*steps)).headline.startswith("4 different rounds of calls in a row")


def test_structure_only_is_not_applicable():
    found = one(without_bodies(results(*["no such user"] * 4)))
    assert found.reason_code == "no_bodies"
    assert one(told()).reason_code == "no_tool_calls"


def test_steps_in_any_order_give_the_same_answer():
    trace = results("a b c", *["no such user"] * 5, "d e f")
    assert one(turned_round(trace)) == one(trace)
    assert one(trace).evidence.steps == (1, 2, 3, 4, 5)


def test_the_length_of_the_run_is_a_parameter_with_limits():
    trace = results(*["no such user"] * 5)
    assert one(trace, in_a_row=5).answer is Answer.SIGNAL
    assert "At least 5 rounds" in NoProgress(in_a_row=5).material_when
    for wrong in (1, 101, "four"):
        with pytest.raises(ValueError, match="must be"):
            NoProgress(in_a_row=wrong)
