"""Retry storm: attempts of one call, and what only looks like one."""

from __future__ import annotations

import random

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.retry_storm import RetryStorm
from apps.engine.trace import (
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
)
from tests.engine.random_traces import shuffled
from tests.engine.traces import SECOND, call, trace_of

FAILED = {"status": StepStatus.ERROR, "error_type": "overloaded"}
DONE = {"status": StepStatus.OK}


def attempt(seq, **facts):
    """A model call that failed."""
    return call(seq, None, step=FAILED, **facts)


def answered(seq, **facts):
    return call(seq, 90, step=DONE, **facts)


def tried(seq, name="search", *, status="error", call_id=None, **step):
    """A tool call, by default a failed one."""
    return Step(
        seq=seq,
        kind=StepKind.TOOL_CALL,
        call=ToolCall(name=name, call_id=call_id),
        status=StepStatus(status),
        **{
            "invocation": 0,
            "start_ns": seq * SECOND,
            "end_ns": seq * SECOND + SECOND // 2,
        }
        | step,
    )


def answer(*steps, order=OrderSource.TIME, **parameters):
    (found,) = RetryStorm(**parameters).run(trace_of(*steps, order=order))
    return found


def test_a_model_call_that_is_tried_until_it_succeeds_is_a_signal():
    found = answer(answered(0), attempt(1), attempt(2), attempt(3), answered(4))
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.reason_code == "storm"
    assert found.headline == "One model call attempted 4 times"
    assert found.reason == (
        "One call of m was attempted 4 times. The last attempt is not recorded as "
        "failed. A prompt to look closer, not by itself a finding."
    )
    evidence = found.evidence
    assert (evidence.scope, evidence.agent) == ("invocation 1", "billing")
    assert evidence.steps == (1, 2, 3, 4)
    assert (evidence.effect, evidence.effect_bound, evidence.length) == (4, 3, 5)
    (storm,) = evidence.facts["attempts"]
    assert storm == {
        "called": "m",
        "kind": "model",
        "attempts": 4,
        "failed": 3,
        "succeeded": True,
        "error_types": {"overloaded": 3},
        "seconds": 3.0,
        "first_step": 1,
    }


def test_attempts_that_all_failed_are_a_storm_in_vain():
    found = answer(attempt(0), attempt(1), attempt(2))
    assert found.reason_code == "storm_in_vain"
    assert "The last attempt failed too." in found.reason


def test_two_attempts_are_quiet():
    found = answer(answered(0), attempt(1), answered(2))
    assert (found.answer, found.reason_code) == (Answer.QUIET, "few_attempts")
    assert "1 of 3 calls of models and tools was attempted again" in found.reason


def test_attempts_that_name_what_they_retry_count_without_a_recorded_failure():
    found = answer(
        call(0), call(1, retry_of=0), call(2, model="other", retry_of=1), call(3)
    )
    assert found.answer is Answer.SIGNAL
    assert found.evidence.steps == (0, 1, 2)


def test_attempts_that_all_name_the_first_one_are_one_call():
    found = answer(call(0), call(1, retry_of=0), call(2, retry_of=0))
    assert found.evidence.steps == (0, 1, 2)


def test_a_call_between_a_failure_and_the_attempt_that_names_it_is_another_call():
    found = answer(attempt(0), answered(1), answered(2, retry_of=0), answered(3))
    assert found.answer is Answer.QUIET
    assert found.evidence.facts["retried_calls"] == 1


def test_the_longest_storm_is_shown_and_the_others_are_counted():
    steps = [attempt(n) for n in range(3)] + [answered(3)]
    steps += [attempt(n) for n in range(4, 9)] + [answered(9)]
    found = answer(*steps)
    assert found.evidence.steps == (4, 5, 6, 7, 8, 9)
    assert found.evidence.facts["storms"] == 2
    assert "2 calls were attempted as often or more." in found.reason


def test_false_alarm_of_failures_of_different_models_is_a_fallback():
    found = answer(*[attempt(n, model=f"m{n}") for n in range(4)])
    assert found.answer is Answer.QUIET


def test_false_alarm_of_calls_that_failed_at_the_same_time():
    found = answer(*[call(n, None, start=0, end=9, step=FAILED) for n in range(4)])
    assert found.answer is Answer.QUIET


def test_false_alarm_of_lines_that_repeat_one_response():
    found = answer(*[answered(n, response_id="r") for n in range(5)])
    assert (found.answer, found.reason_code) == (Answer.QUIET, "no_retries")


def test_a_tool_that_fails_and_is_called_again_at_once_is_a_signal():
    found = answer(answered(0), tried(1), tried(2), tried(3, status="ok"))
    assert found.headline == "One tool call attempted 3 times"
    assert found.evidence.steps == (1, 2, 3)
    assert found.evidence.facts["attempts"][0]["called"] == "search"


def test_false_alarm_of_a_model_that_asks_again_is_another_call():
    steps = []
    for n in range(4):
        steps += [answered(2 * n), tried(2 * n + 1)]
    assert answer(*steps).answer is Answer.QUIET


def test_false_alarm_of_several_calls_that_one_answer_asked_for():
    steps = [tried(n, call_id=f"c{n}") for n in range(1, 5)]
    assert answer(answered(0), *steps).answer is Answer.QUIET
    same = [tried(n, call_id="c") for n in range(1, 5)]
    assert answer(answered(0), *same).answer is Answer.SIGNAL


def test_false_alarm_of_tools_that_ran_side_by_side():
    steps = [tried(n, start_ns=n, end_ns=9 * SECOND) for n in range(1, 5)]
    assert answer(*steps).answer is Answer.QUIET


def test_a_failed_tool_without_an_end_proves_no_order():
    steps = [tried(n, end_ns=None) for n in range(4)]
    assert answer(*steps).answer is Answer.QUIET


def test_false_alarm_of_another_tool_or_a_success_in_between():
    assert answer(tried(0), tried(1, "open"), tried(2), tried(3, "open")).answer is (
        Answer.QUIET
    )
    assert answer(*[tried(n, status="ok") for n in range(5)]).answer is Answer.QUIET


def test_false_alarm_of_one_failed_tool_that_three_instruments_recorded():
    steps = [tried(0), tried(1, parent=0), tried(2, parent=1)]
    assert answer(*steps).answer is Answer.QUIET


def test_the_order_of_the_file_is_named_as_weaker():
    found = answer(*[tried(n) for n in range(3)], order=OrderSource.FILE)
    assert "weaker" in found.evidence.order
    assert any("order is that of the file" in t for t in found.evidence.not_modelled)


def test_a_trace_that_records_no_status_cannot_show_attempts():
    found = answer(call(0), call(1), call(2))
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_status")


def test_fewer_calls_than_attempts_are_not_applicable():
    assert answer(attempt(0), attempt(1)).reason_code == "too_few_calls"
    assert answer(attempt(0)).headline == "1 call of models and tools, needs 3"


def test_a_trace_without_calls_says_so():
    assert answer().reason_code == "no_calls"


def test_each_agent_invocation_and_what_none_owns_has_an_answer_of_its_own():
    steps = [attempt(n) for n in range(3)]
    steps += [tried(n, invocation=1, status="ok") for n in range(3, 6)]
    steps += [tried(n, invocation=None) for n in range(6, 9)]
    found = list(RetryStorm().run(trace_of(*steps, agents=("a", "b"))))
    assert [(one.evidence.scope, one.answer) for one in found] == [
        ("invocation 1", Answer.SIGNAL),
        ("invocation 2", Answer.QUIET),
        ("trace", Answer.SIGNAL),
    ]


def test_parameters_can_be_set_and_are_told():
    assert answer(attempt(0), attempt(1), min_attempts=2).answer is Answer.SIGNAL
    assert "at least 7 times" in RetryStorm(min_attempts=7).material_when
    for wrong in (1, 101):
        with pytest.raises(ValueError, match="Attempts of one call"):
            RetryStorm(min_attempts=wrong)


def test_shuffled_steps_give_the_same_answer():
    trace = trace_of(
        *[attempt(n) for n in range(3)], answered(3), *[tried(n) for n in range(4, 8)]
    )
    other = shuffled(trace, random.Random(7))
    assert list(RetryStorm().run(other)) == list(RetryStorm().run(trace))


def test_the_hash_depends_on_what_was_read_and_not_on_the_parameter():
    steps = [attempt(n) for n in range(4)]
    one = answer(*steps)
    assert one.input_hash == answer(*steps, min_attempts=2).input_hash
    assert one.input_hash != answer(*steps, answered(4)).input_hash


def test_attempts_that_start_at_time_zero_have_a_duration_all_the_same():
    at_zero = {"start_ns": 0, "end_ns": 1}
    first = call(0, None, step=at_zero | {"status": StepStatus.ERROR})
    found = answer(first, attempt(1), attempt(2))
    (storm,) = found.evidence.facts["attempts"]
    assert storm["seconds"] == 2.0


@pytest.mark.parametrize(
    ("status", "succeeded"),
    [
        (StepStatus.OK, True),
        (StepStatus.ERROR, False),
        (StepStatus.UNSET, None),
        (StepStatus.UNFINISHED, None),
    ],
)
def test_a_last_attempt_that_does_not_say_how_it_ended_has_not_succeeded(
    status, succeeded
):
    last = call(2, step={"status": status})
    found = answer(attempt(0), attempt(1), last)
    (storm,) = found.evidence.facts["attempts"]
    assert storm["succeeded"] is succeeded
