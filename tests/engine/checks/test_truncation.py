"""Truncation: k of n with a known reason, the last call first, one is not many."""

from __future__ import annotations

import random

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.truncation import Truncation
from apps.engine.trace import FinishReason, StepStatus
from tests.engine.random_traces import shuffled
from tests.engine.traces import call, tool, trace_of
from tests.formats.reading import traces_of

FINISHES = {
    "L": FinishReason.LENGTH,
    "s": FinishReason.STOP,
    "t": FinishReason.TOOL_CALLS,
    "?": FinishReason.UNKNOWN,
    "f": FinishReason.CONTENT_FILTER,
}


def finished(pattern):
    calls = [
        call(n, 256 if letter == "L" else 90, finish=FINISHES[letter])
        for n, letter in enumerate(pattern)
    ]
    return trace_of(*calls)


def answer(pattern, **parameters):
    (found,) = Truncation(**parameters).run(finished(pattern))
    return found


def test_a_last_call_that_was_cut_says_so_first_and_is_queued_alone():
    found = answer("ttL")
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.reason_code == "last_call_cut"
    assert found.headline == "The last model call was cut (1 of 3 cut)"
    assert found.reason.startswith("The last model call stopped at a length limit")
    assert "1 of 3 model calls with a known finish reason (33.3 %)" in found.reason
    evidence = found.evidence
    assert (evidence.steps, evidence.length, evidence.model) == ((2,), 3, "m")
    assert evidence.effect == pytest.approx(1 / 3)
    assert evidence.facts["last_call_cut"] is True
    assert evidence.facts["cut_at_output_tokens"] == {"256": 1}
    assert evidence.facts["finish_reasons"] == {"tool_calls": 2, "length": 1}


def test_two_cut_calls_in_the_middle_are_queued():
    found = answer("tLtLs")
    assert (found.reason_code, found.level) == ("calls_cut", Level.REVIEW_SIGNAL)
    assert found.headline == "2 of 5 model calls cut at a length limit"
    assert found.evidence.steps == (1, 3)


def test_one_cut_call_that_the_agent_went_on_from_is_telemetry():
    found = answer("tLts")
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.TELEMETRY)
    assert found.reason_code == "few_calls_cut"
    assert "not queued" in found.reason


def test_how_many_are_worth_a_queue_entry_can_be_set():
    assert answer("tLts", min_cut=1).level is Level.REVIEW_SIGNAL
    assert answer("LLLs", min_cut=4).level is Level.TELEMETRY
    assert answer("LLLL", min_cut=9).level is Level.REVIEW_SIGNAL
    assert "at least 1 call was" in Truncation(min_cut=1).material_when
    assert "at least 4 calls were" in Truncation(min_cut=4).material_when
    for wrong in (0, 1_001):
        with pytest.raises(ValueError, match="Cut calls"):
            Truncation(min_cut=wrong)


def test_calls_without_a_finish_reason_are_counted_and_never_guessed():
    found = answer("?L?s")
    assert found.headline == "1 of 2 model calls cut at a length limit"
    assert "2 further calls record none." in found.reason
    assert found.evidence.facts["finish_known"] == 2


def test_no_cut_call_is_quiet_and_says_how_many_have_a_reason():
    found = answer("ts?")
    assert (found.answer, found.reason_code) == (Answer.QUIET, "none_cut")
    assert found.reason.startswith("2 of 3 model calls record why they stopped")


def test_a_trace_without_any_finish_reason_is_not_applicable():
    found = answer("??")
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "no_finish_reasons",
    )
    assert found.headline == "No finish reason on 2 model calls"


def test_a_trace_without_model_calls_says_so():
    (found,) = Truncation().run(trace_of(tool(0, "look")))
    assert found.reason_code == "no_model_calls"
    failed = call(0, finish=FinishReason.LENGTH, step={"status": StepStatus.ERROR})
    (found,) = Truncation().run(trace_of(failed))
    assert found.reason_code == "no_completed_calls"


def test_false_alarm_of_a_content_filter_is_no_length_limit():
    assert answer("tf").answer is Answer.QUIET


def test_false_alarm_of_a_cut_attempt_that_was_retried_is_left_out():
    steps = [
        call(0, finish=FinishReason.STOP),
        call(1, finish=FinishReason.LENGTH),
        call(2, finish=FinishReason.STOP, retry_of=1),
    ]
    (found,) = Truncation().run(trace_of(*steps))
    assert (found.answer, found.evidence.length) == (Answer.QUIET, 2)


def test_false_alarm_of_one_cut_response_on_several_lines_counts_once():
    steps = [call(n, finish=FinishReason.LENGTH, response_id="r") for n in range(3)] + [
        call(3, finish=FinishReason.STOP)
    ]
    (found,) = Truncation().run(trace_of(*steps))
    assert found.headline == "1 of 2 model calls cut at a length limit"
    assert found.level is Level.TELEMETRY


def test_each_agent_invocation_has_an_answer_and_a_last_call_of_its_own():
    steps = [
        call(0, finish=FinishReason.LENGTH, step={"invocation": 0}),
        call(1, finish=FinishReason.STOP, step={"invocation": 1}),
    ]
    found = list(Truncation().run(trace_of(*steps, agents=("a", "b"))))
    assert [(one.evidence.agent, one.reason_code) for one in found] == [
        ("a", "last_call_cut"),
        ("b", "none_cut"),
    ]


def test_calls_that_no_invocation_owns_share_one_answer_whatever_their_parents():
    steps = [
        call(
            n,
            finish=FinishReason.LENGTH if n == 1 else FinishReason.STOP,
            step={"invocation": None, "parent": 100 + n},
        )
        for n in range(3)
    ]
    (found,) = Truncation().run(trace_of(*steps, agents=()))
    assert (found.evidence.scope, found.evidence.length) == ("trace", 3)
    assert found.reason_code == "few_calls_cut"


def test_shuffled_steps_give_the_same_answer():
    trace = finished("tLtL?sL")
    other = shuffled(trace, random.Random(5))
    assert list(Truncation().run(other)) == list(Truncation().run(trace))


def test_the_hash_depends_on_what_was_read_and_not_on_the_parameter():
    assert answer("tLs").input_hash == answer("tLs", min_cut=1).input_hash
    assert answer("tLs").input_hash != answer("tsL").input_hash


def test_a_real_run_into_a_limit_of_tokens_ends_with_a_cut_call(shared_data):
    path = shared_data / "anthropic_messages" / "max_tokens.responses.jsonl"
    if not path.exists():
        pytest.skip("The run of the SDK lies outside of the repository and is absent.")
    (trace,) = traces_of(path.read_bytes())
    (found,) = Truncation().run(trace)
    assert found.headline == "The last model call was cut (1 of 6 cut)"


def test_one_call_is_spoken_of_as_one():
    stopped = call(0, finish=FinishReason.STOP)
    [found] = Truncation().run(trace_of(stopped))
    assert found.headline == "None of 1 model call cut at a length limit"
    assert found.reason == (
        "1 of 1 model call records why it stopped, and that is no length limit."
    )
    cut = call(0, finish=FinishReason.LENGTH)
    [found] = Truncation().run(trace_of(cut, call(1)))
    assert found.headline == "1 of 1 model call cut at a length limit"
    assert "1 of 1 model call with a known finish reason" in found.reason
    assert "1 further call records none." in found.reason
