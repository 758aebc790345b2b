"""Error streak: failures in a row, what ends a row, and what a silence is not."""

from __future__ import annotations

import random

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.error_streak import ErrorStreak
from apps.engine.trace import StepStatus
from tests.engine.random_traces import shuffled
from tests.engine.traces import call, tool, trace_of
from tests.formats.reading import traces_of

STATUSES = {
    "x": StepStatus.ERROR,
    "o": StepStatus.OK,
    "?": StepStatus.UNSET,
    "u": StepStatus.UNFINISHED,
}


def ended(pattern, names=None, **fields):
    """A trace of tool calls that ended as written: x failed, o worked, ? unknown."""
    steps = [
        tool(
            seq,
            names[seq] if names else f"t{seq % 2}",
            status=STATUSES[letter],
            error_type="timeout" if letter == "x" else None,
            invocation=0,
        )
        for seq, letter in enumerate(pattern)
    ]
    return trace_of(*steps, **fields)


def answer(pattern, **parameters):
    (found,) = ErrorStreak(**parameters).run(ended(pattern))
    return found


def test_three_failures_in_a_row_are_a_signal_that_names_its_steps():
    found = answer("ooxxxoo")
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.headline == "3 of 7 tool calls failed in a row"
    assert found.reason == (
        "3 tool calls failed one after another (t0: 2, t1: 1). 2 calls came after them. "
        "7 of 7 calls record how they ended; 3 failed. A prompt to look closer, "
        "not by itself a finding."
    )
    evidence = found.evidence
    assert evidence.steps == (2, 3, 4)
    assert (evidence.scope, evidence.agent, evidence.length) == (
        "invocation 1",
        "billing",
        7,
    )
    assert (evidence.effect, evidence.effect_bound) == (3, 3)
    assert evidence.facts["error_types"] == {"timeout": 3}
    assert (evidence.facts["calls_after"], evidence.facts["streaks"]) == (2, 1)
    assert len(evidence.not_modelled) == 3


def test_a_row_at_the_end_says_that_nothing_came_after_it():
    found = answer("oxxxx")
    assert "No tool was called after them." in found.reason
    assert "1 call came after them." in answer("xxxo").reason


def test_the_longest_row_is_shown_and_the_others_are_counted():
    found = answer("xxxoxxxxoxxx")
    assert found.evidence.steps == (4, 5, 6, 7)
    assert found.evidence.facts["streaks"] == 3
    assert answer("xxxoxxx").evidence.steps == (0, 1, 2)


def test_clustering_is_the_share_of_orders_with_as_long_a_row_and_no_gate():
    # 3 failures among 7 calls stand together in 5 of 35 ways.
    assert answer("ooxxxoo").evidence.facts["clustering"]["p"] == pytest.approx(1 / 7)
    assert answer("ooxxxoo").evidence.facts["clustering"]["share"] == "14.3 %"
    assert answer("ooxxxoo").evidence.chance is None


def test_an_agent_whose_every_call_fails_has_clustering_1_and_is_still_a_signal():
    found = answer("xxxxx")
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.evidence.facts["clustering"]["p"] == 1


def test_two_failures_in_a_row_are_quiet():
    found = answer("xxoxxo")
    assert (found.answer, found.reason_code) == (Answer.QUIET, "short_streaks")
    assert found.headline == "4 of 6 tool calls failed, never 3 in a row"
    assert "longest row of failures is 2" in found.reason


def test_no_failure_is_quiet():
    found = answer("oooo")
    assert (found.answer, found.reason_code) == (Answer.QUIET, "no_failures")


def test_false_alarm_of_a_call_without_a_status_between_failures_ends_the_row():
    found = answer("xx?xx")
    assert found.answer is Answer.QUIET
    assert found.evidence.facts == {"failed": 4, "statuses_known": 4}
    assert "4 of 5 tool calls record how they ended." in found.reason


def test_a_call_that_never_ended_is_no_failure():
    assert answer("xxux").answer is Answer.QUIET


def test_no_status_at_all_is_not_success_and_says_so():
    found = answer("????")
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_status")
    assert found.headline == "No status on 4 tool calls"
    assert "not the same as success" in found.reason


def test_fewer_calls_than_the_row_asks_for_are_not_applicable():
    found = answer("xx")
    assert found.reason_code == "too_few_tool_calls"
    assert found.headline == "2 tool calls, needs 3"
    assert answer("x").headline == "1 tool call, needs 3"


def test_a_trace_without_tools_says_so():
    (found,) = ErrorStreak().run(trace_of(call(0)))
    assert (found.reason_code, found.evidence.scope) == ("no_tool_calls", "trace")


def test_the_row_that_is_asked_for_can_be_set():
    assert answer("xxo", min_failures=2).answer is Answer.SIGNAL
    assert answer("xxxo", min_failures=4).answer is Answer.QUIET
    assert "At least 4 tool calls" in ErrorStreak(min_failures=4).material_when
    for wrong in (1, 101):
        with pytest.raises(ValueError, match="Failures in a row"):
            ErrorStreak(min_failures=wrong)


def test_false_alarm_of_failures_of_two_agents_that_take_turns():
    steps = [
        tool(n, "t", status=StepStatus.ERROR, invocation=n % 2) for n in range(4)
    ] + [tool(n, "t", status=StepStatus.OK, invocation=n % 2) for n in range(4, 6)]
    found = list(ErrorStreak().run(trace_of(*steps, agents=("a", "b"))))
    assert [one.answer for one in found] == [Answer.QUIET, Answer.QUIET]


def test_false_alarm_of_one_failed_call_that_two_instruments_recorded():
    steps = [
        tool(0, "t", status=StepStatus.ERROR),
        tool(1, "t", status=StepStatus.ERROR, parent=0),
        tool(2, "t", status=StepStatus.ERROR),
        tool(3, "t", status=StepStatus.ERROR, parent=2),
        tool(4, "t", status=StepStatus.OK),
    ]
    (found,) = ErrorStreak().run(trace_of(*steps, agents=()))
    assert (found.answer, found.evidence.length) == (Answer.QUIET, 3)


def test_a_failed_model_call_is_no_failed_tool_call():
    steps = [call(n, None, step={"status": StepStatus.ERROR}) for n in range(4)]
    (found,) = ErrorStreak().run(trace_of(*steps))
    assert found.reason_code == "no_tool_calls"


def test_time_and_not_the_place_in_the_file_says_what_is_in_a_row():
    # By place the failures stand apart; by start they come one after another.
    starts = (0, 3, 1, 4, 2)
    steps = [
        tool(n, "t", status=STATUSES[letter], start_ns=start, end_ns=start + 1)
        for n, (letter, start) in enumerate(zip("xoxox", starts, strict=True))
    ]
    (found,) = ErrorStreak().run(trace_of(*steps, agents=()))
    assert found.answer is Answer.SIGNAL
    assert found.evidence.steps == (0, 2, 4)


def test_shuffled_steps_give_the_same_answer():
    trace = ended("ooxxxoxx?x")
    other = shuffled(trace, random.Random(3))
    assert list(ErrorStreak().run(other)) == list(ErrorStreak().run(trace))


def test_the_hash_depends_on_what_was_read_and_not_on_the_parameter():
    assert answer("oxxxo").input_hash == answer("oxxxo", min_failures=2).input_hash
    assert answer("oxxxo").input_hash != answer("oxxxx").input_hash


def test_real_runs_of_a_tool_that_always_fails_are_signals_to_the_last_one(shared_data):
    path = shared_data / "autogen" / "tool_error.event_log.jsonl"
    if not path.exists():
        pytest.skip("The run of the SDK lies outside of the repository and is absent.")
    found = [s for t in traces_of(path.read_bytes()) for s in ErrorStreak().run(t)]
    signals = [one for one in found if one.answer is Answer.SIGNAL]
    assert signals
    assert all(one.evidence.facts["clustering"]["p"] == 1 for one in signals)


def test_one_call_that_records_how_it_ended_is_spoken_of_as_one():
    ended = tool(0, "x", status=StepStatus.OK, invocation=0)
    others = [tool(n, "x", invocation=0) for n in (1, 2)]
    [found] = ErrorStreak().run(trace_of(ended, *others))
    assert found.reason.endswith("1 of 3 tool calls records how it ended.")


def test_clustering_too_rare_for_a_float_is_never_said_to_be_impossible():
    failed = {"status": StepStatus.ERROR, "invocation": 0}
    fine = {"status": StepStatus.OK, "invocation": 0}
    steps = [tool(n, "x", **(failed if n < 2_000 else fine)) for n in range(6_000)]
    [found] = ErrorStreak().run(trace_of(*steps))
    clustering = found.evidence.facts["clustering"]
    assert 0 < clustering["p"] < 1e-300
    assert clustering["share"] == "less than 0.0001 %"
