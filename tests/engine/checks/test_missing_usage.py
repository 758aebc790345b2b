"""Missing usage: k of n by reason, always telemetry."""

from __future__ import annotations

from apps.engine.check import Answer, Level
from apps.engine.checks.missing_usage import MissingUsage
from apps.engine.trace import ZERO_SUSPECT, StepStatus, Usage, UsageState
from tests.engine.traces import call, outputs_trace, tool, trace_of


def answer(trace):
    (screening,) = MissingUsage().run(trace)
    return screening


def test_missing_usage_is_told_as_k_of_n_by_reason_and_never_queued():
    estimate = Usage(state=UsageState.VENDOR_ESTIMATE, output_total=4)
    found = answer(
        trace_of(
            call(0, 9),
            call(1, None),
            call(2, None),
            call(3, usage=ZERO_SUSPECT),
            call(4, usage=estimate),
        )
    )
    assert found.answer is Answer.SIGNAL
    assert found.level is Level.TELEMETRY
    assert found.headline == "Output length missing on 4 of 5 model calls"
    assert (found.evidence.usage_known, found.evidence.usage_missing) == (1, 4)
    assert found.evidence.facts["reasons"] == {
        "nothing recorded": 2,
        "zeros that mean missing": 1,
        "estimated by the vendor, not reported by the model": 1,
    }
    assert found.evidence.series.values == (9, None, None, None, None)
    assert found.evidence.steps == (1, 2, 3, 4)


def test_complete_usage_is_quiet():
    found = answer(outputs_trace(3, 2, 1))
    assert (found.answer, found.evidence.usage_missing) == (Answer.QUIET, 0)


def test_a_trace_without_model_calls_has_nothing_to_miss():
    found = answer(trace_of(tool(0, "look")))
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "no_model_calls",
    )


def test_placeholders_repeats_and_failed_attempts_are_not_calls():
    found = answer(
        trace_of(
            call(0, 9, response_id="r"),
            call(1, None, response_id="r"),
            call(2, None, is_placeholder=True),
            call(3, None, step={"status": StepStatus.ERROR}),
            call(4, 8),
        )
    )
    assert (found.answer, found.evidence.length) == (Answer.QUIET, 2)
    assert found.headline == "Output length reported on 2 of 2 completed model calls"
    assert found.reason == (
        "Every completed model call reports how many tokens it wrote. 3 further records "
        "are not counted here (1 duplicate, 1 placeholder, 1 retried)."
    )
    assert found.evidence.facts["removed"] == {
        "duplicate": 1,
        "placeholder": 1,
        "retried": 1,
    }


def test_calls_that_all_failed_are_not_told_as_no_calls():
    found = answer(trace_of(call(0, None, step={"status": StepStatus.ERROR})))
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "no_completed_calls",
    )
    assert found.headline == "No completed model calls recorded"
    assert "1 further record is not counted here (1 failed)." in found.reason


def test_one_call_is_spoken_of_as_one():
    [found] = MissingUsage().run(trace_of(call(0, 7)))
    assert found.headline == "Output length reported on 1 of 1 model call"
    [found] = MissingUsage().run(trace_of(call(0, None)))
    assert found.headline == "Output length missing on 1 of 1 model call"
    assert "1 of 1 model call (100 %) has no usable output count" in found.reason


def test_a_negative_count_is_missing_usage():
    [found] = MissingUsage().run(trace_of(call(0, 7), call(1, -7)))
    assert (found.evidence.usage_missing, found.evidence.usage_known) == (1, 1)
