"""Input growth: nearly structural, telemetry, and its resets counted."""

from __future__ import annotations

import random

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.input_growth import InputGrowth
from apps.engine.trace import StepStatus, Usage, UsageState
from tests.engine.random_traces import shuffled
from tests.engine.traces import call, tool, trace_of, used


def inputs_trace(*inputs, **facts):
    return trace_of(
        *[call(n, usage=used(50, count), **facts) for n, count in enumerate(inputs)]
    )


def answer(*inputs, **parameters):
    (found,) = InputGrowth(**parameters).run(inputs_trace(*inputs))
    return found


def test_inputs_that_only_grow_to_three_times_the_first_are_telemetry():
    found = answer(100, 150, 150, 220, 300)
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.TELEMETRY)
    assert found.headline == "Input grew from 100 to 300 tokens over 5 serial calls"
    assert "nearly structural" in found.reason
    assert "never second evidence" in found.reason
    evidence = found.evidence
    assert (evidence.first, evidence.last, evidence.ratio) == (100, 300, 3)
    assert evidence.series.values == (100, 150, 150, 220, 300)
    assert evidence.series.threshold == 300
    assert evidence.facts == {"context_resets": 0}


def test_less_growth_is_quiet():
    found = answer(100, 150, 160, 220, 299)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "little_growth")
    assert found.evidence.series.unit == "input tokens"


def test_one_fall_is_quiet():
    found = answer(100, 200, 190, 400, 800)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "input_falls")


def test_four_calls_are_too_few():
    found = answer(1, 10, 100, 1_000)
    assert found.headline == "4 serial calls, needs 5"
    assert found.answer is Answer.NOT_APPLICABLE


def test_a_hole_is_never_guessed_over():
    found = answer(100, 200, None, 400, 800)
    assert found.reason_code == "usage_missing"
    assert found.headline == "Input length missing on 1 of 5 calls"
    assert (found.evidence.usage_known, found.evidence.usage_missing) == (4, 1)


def test_false_alarm_of_a_zero_is_a_suspect_for_missing_usage():
    assert answer(0, 100, 200, 300, 400).reason_code == "zero_inputs"


def test_false_alarm_of_an_estimate_is_no_reported_input():
    estimate = Usage(state=UsageState.VENDOR_ESTIMATE, input_total=500)
    steps = [call(n, usage=used(50, 100 + n)) for n in range(4)]
    (found,) = InputGrowth().run(trace_of(*steps, call(4, usage=estimate)))
    assert found.reason_code == "usage_missing"


def test_a_reset_cuts_the_sequence_and_is_counted_in_both_parts():
    grows = [100, 200, 300, 400, 500]
    steps = [
        call(n, usage=used(50, count), resets_context=n == 5)
        for n, count in enumerate(grows * 2)
    ]
    found = list(InputGrowth().run(trace_of(*steps)))
    assert [one.answer for one in found] == [Answer.SIGNAL] * 2
    assert [one.evidence.facts["context_resets"] for one in found] == [1, 1]
    assert found[1].evidence.began == "the context was reset"


def test_calls_that_overlapped_share_one_answer():
    steps = [call(n, usage=used(9, n + 1), start=0, end=9) for n in range(6)]
    (found,) = InputGrowth().run(trace_of(*steps))
    assert (found.reason_code, found.evidence.usage_known) == ("parallel", 6)


def test_a_trace_without_completed_model_calls_says_so():
    (found,) = InputGrowth().run(trace_of(tool(0, "look")))
    assert found.reason_code == "no_model_calls"
    (found,) = InputGrowth().run(trace_of(call(0, step={"status": StepStatus.ERROR})))
    assert found.reason_code == "no_completed_calls"


def test_parameters_can_be_set_and_are_told():
    assert answer(100, 150, min_calls=2, growth=1.5).answer is Answer.SIGNAL
    text = InputGrowth(min_calls=7, growth=2.5).material_when
    assert "At least 7 serial calls" in text
    assert "2.5 times" in text
    for wrong in ({"min_calls": 1}, {"growth": 1}, {"growth": 1_001}):
        with pytest.raises(ValueError, match="must be"):
            InputGrowth(**wrong)


def test_shuffled_steps_give_the_same_answer():
    trace = inputs_trace(100, 200, 300, 400, 900)
    other = shuffled(trace, random.Random(1))
    assert list(InputGrowth().run(other)) == list(InputGrowth().run(trace))
