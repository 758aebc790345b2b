"""Output decay: every row of its table, its three false alarms, its honesty."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.check import Answer, Level
from apps.engine.checks.output_decay import OutputDecay
from apps.engine.trace import FinishReason, OrderSource, StepStatus
from tests.engine.traces import call, outputs_trace, tool, trace_of, used


def answers(trace, **parameters):
    return list(OutputDecay(**parameters).run(trace))


def answer(*outputs, **parameters):
    (screening,) = answers(outputs_trace(*outputs), **parameters)
    return screening


def exact(screening):
    chance = screening.evidence.chance
    return chance.numerator, chance.denominator


def test_false_alarm_784_700_646_is_not_applicable_and_says_how_common_it_is():
    found = answer(784, 700, 646)
    assert found.answer is Answer.NOT_APPLICABLE
    assert found.reason_code == "too_short"
    assert found.headline == "3 serial calls, needs 5"
    assert found.reason == (
        "3 serial calls, needs 5. Of 3 different lengths 1 of 6 orders falls; the rule "
        "asks for 5 calls."
    )


def test_four_calls_are_not_called_too_common_below_the_bound_of_the_rule():
    found = answer(100, 90, 80, 40)
    assert "1 of 24 orders falls" in found.reason
    assert "common" not in found.reason


def test_one_call_has_no_order_to_speak_of():
    assert answer(100).reason == "1 serial call, needs 5."


def test_false_alarm_100_to_80_is_quiet_because_80_percent_is_kept():
    found = answer(100, 95, 90, 85, 80)
    assert found.answer is Answer.QUIET
    assert found.reason_code == "not_material"
    assert "80 %" in found.headline
    assert exact(found) == (1, 120)


def test_false_alarm_of_zeros_is_a_suspect_for_missing_usage_and_never_a_signal():
    found = answer(0, 0, 0, 0, 0)
    assert found.answer is Answer.NOT_APPLICABLE
    assert found.reason_code == "zero_outputs"
    assert (found.evidence.usage_known, found.evidence.usage_missing) == (5, 0)
    assert found.evidence.series.values == (0, 0, 0, 0, 0)


def test_a_recorded_zero_is_drawn_as_zero_and_a_hole_as_a_hole():
    found = answer(100, 0, None, 70, 60, 50)
    assert found.reason_code == "usage_missing"
    assert "1 of 6 calls" in found.headline
    assert (found.evidence.usage_known, found.evidence.usage_missing) == (5, 1)
    assert found.evidence.series.values == (100, 0, None, 70, 60, 50)


def test_overlapping_calls_count_a_recorded_zero_as_recorded():
    calls = [call(0, 0, start=0, end=9), call(1, None, start=1, end=8)]
    (found,) = answers(trace_of(*calls))
    assert found.reason_code == "parallel"
    assert (found.evidence.usage_known, found.evidence.usage_missing) == (1, 1)


def test_exactly_60_percent_is_a_signal_at_1_of_120():
    found = answer(100, 90, 80, 70, 60)
    assert found.answer is Answer.SIGNAL
    assert found.level is Level.REVIEW_SIGNAL
    assert exact(found) == (1, 120)
    assert found.evidence.chance.value == pytest.approx(0.0083, abs=5e-5)
    assert "1 of 120 (0.83 %)" in found.reason
    assert "not by itself a finding" in found.reason


def test_61_percent_is_quiet():
    found = answer(100, 90, 80, 70, 61)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "not_material")


def test_the_bound_is_exact_where_floating_point_is_not():
    # 0.55 * 20 is above 11 in binary fractions; 11 of 20 is exactly 55 %.
    assert answer(20, 19, 18, 12, 11, last_percent=55).answer is Answer.SIGNAL
    assert answer(10**15, 9, 8, 7, 6).answer is Answer.SIGNAL


def test_one_tie_costs_half_of_the_evidence():
    found = answer(100, 100, 90, 80, 60)
    assert exact(found) == (1, 60)
    assert found.level is Level.REVIEW_SIGNAL
    assert any("Equal lengths" in text for text in found.evidence.not_modelled)


def test_a_shape_that_ties_explain_is_telemetry_and_not_queued():
    found = answer(100, 100, 100, 100, 60)
    assert found.answer is Answer.SIGNAL
    assert found.level is Level.TELEMETRY
    assert exact(found) == (1, 5)
    assert "not queued" in found.reason


def test_a_hole_is_never_guessed_over_nor_is_the_rest_searched():
    found = answer(100, 90, None, 70, 60, 50)
    assert found.answer is Answer.NOT_APPLICABLE
    assert found.reason_code == "usage_missing"
    assert "1 of 6 calls" in found.headline
    assert (found.evidence.usage_known, found.evidence.usage_missing) == (5, 1)
    assert found.evidence.series.values == (100, 90, None, 70, 60, 50)


def test_too_few_calls_come_before_missing_usage():
    assert answer(100, None, 60).reason_code == "too_short"


def test_one_rise_is_quiet_although_mann_kendall_sees_the_trend():
    found = answer(100, 90, 95, 70, 60)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "not_falling")
    assert found.evidence.chance is None
    trend = found.evidence.facts["mann_kendall"]
    assert trend["s"] == -8
    assert trend["p"] == pytest.approx(0.0417, abs=5e-5)


def test_only_the_whole_sequence_counts_never_its_best_part():
    assert answer(50, 100, 90, 80, 70, 60, 50).answer is Answer.QUIET


def test_the_evidence_carries_all_that_a_reviewer_needs():
    found = answer(112, 100, 86, 78, 70, 43)
    evidence = found.evidence
    assert found.headline == (
        "Output fell from 112 to 43 tokens over 6 serial calls (38.4 % kept)"
    )
    assert evidence.scope == "invocation 1, sequence 1"
    assert (evidence.agent, evidence.model, evidence.provider) == ("billing", "m", "p")
    assert (evidence.began, evidence.ended) == (
        "start of the agent invocation",
        "end of the agent invocation",
    )
    assert evidence.order == "by time"
    assert (evidence.length, evidence.first, evidence.last) == (6, 112, 43)
    assert evidence.ratio == pytest.approx(43 / 112)
    assert evidence.effect == pytest.approx(1 - 43 / 112)
    assert evidence.effect_bound == pytest.approx(0.4)
    assert (evidence.usage_known, evidence.usage_missing) == (6, 0)
    assert evidence.steps == evidence.series.steps == (0, 1, 2, 3, 4, 5)
    assert evidence.series.threshold == pytest.approx(67.2)
    assert evidence.chance.floor == pytest.approx(1 / 720)
    assert evidence.chance_of_signal == pytest.approx(1 / 720)
    assert "any order" in evidence.chance.assumptions
    assert evidence.facts["chance_under_autoregression"]["0.9"] > 0.02
    assert evidence.facts["chance_of_any_falling_run_of_5"] > 1 / 120
    assert "whole sequence" in evidence.facts["searched"]
    assert len(found.input_hash) == 64


def test_effect_and_chance_are_never_multiplied():
    deep, at_bound = answer(100, 90, 80, 70, 1), answer(100, 90, 80, 70, 60)
    assert deep.evidence.chance == at_bound.evidence.chance


def test_a_dip_of_the_input_does_not_silence_a_falling_output():
    rows = [(900, 100), (1000, 90), (400, 80), (1200, 70), (1300, 60)]
    steps = [call(n, usage=used(out, inp)) for n, (inp, out) in enumerate(rows)]
    (found,) = answers(trace_of(*steps))
    assert found.answer is Answer.SIGNAL
    assert found.evidence.facts["inputs"]["never_fall"] is False


def test_a_length_limit_is_named_among_what_is_not_modelled():
    steps = [
        call(
            n, 100 - 10 * n, finish=FinishReason.LENGTH if n > 3 else FinishReason.STOP
        )
        for n in range(5)
    ]
    (found,) = answers(trace_of(*steps))
    assert found.evidence.facts["finish_reasons"] == {"stop": 4, "length": 1}
    assert any("length limit" in text for text in found.evidence.not_modelled)


def test_retries_are_left_out_and_shown():
    failed = call(2, None, step={"status": StepStatus.ERROR})
    kept = [call(n, 100 - 10 * n) for n in (0, 1, 3, 4, 5)]
    (found,) = answers(trace_of(*kept, failed))
    assert found.answer is Answer.SIGNAL
    assert found.evidence.facts["retries_removed"] == [2]


def test_the_order_of_the_file_is_declared_as_the_weaker_one():
    trace = outputs_trace(100, 90, 80, 70, 60, order=OrderSource.FILE)
    (found,) = answers(trace)
    assert found.answer is Answer.SIGNAL
    assert "weaker" in found.evidence.order
    assert any("order is that of the file" in t for t in found.evidence.not_modelled)


def test_a_trace_without_model_calls_says_so_and_never_that_no_decay_was_found():
    (found,) = answers(trace_of(tool(0, "look")))
    assert found.answer is Answer.NOT_APPLICABLE
    assert found.headline == "No model calls recorded"
    assert "decay" not in found.headline + found.reason


def test_a_trace_of_failed_calls_only_says_what_became_of_them():
    failed = call(0, None, step={"status": StepStatus.ERROR})
    (found,) = answers(trace_of(failed))
    assert found.reason_code == "no_completed_calls"
    assert "1 failed" in found.reason


def test_calls_that_overlapped_share_one_answer_and_are_never_in_order():
    steps = [call(n, 100 - 10 * n, start=0, end=9) for n in range(6)]
    (found,) = answers(trace_of(*steps))
    assert found.reason_code == "parallel"
    assert found.evidence.scope == "invocation 1, parallel calls"
    assert found.evidence.length == 6


def test_every_sequence_has_an_answer_and_a_scope_of_its_own():
    steps = [call(n, 100 - 10 * n, model="mn"[n > 4]) for n in range(8)]
    found = answers(trace_of(*steps))
    assert [one.evidence.length for one in found] == [5, 3]
    assert len({one.evidence.scope for one in found}) == 2


def test_the_chance_of_a_signal_is_kept_for_quiet_answers_too():
    shuffled = answer(60, 100, 70, 90, 80)
    assert shuffled.answer is Answer.QUIET
    assert shuffled.evidence.chance_of_signal == pytest.approx(1 / 120)
    assert answer(100, 95, 90, 85, 80).evidence.chance_of_signal == 0


def test_a_very_long_fall_keeps_a_chance_without_an_unreadable_fraction():
    found = answer(*range(2_000, 0, -1))
    assert found.answer is Answer.SIGNAL
    assert found.evidence.chance.numerator is None
    assert 0 < found.evidence.chance.value < 1e-300
    assert "chance_under_autoregression" not in found.evidence.facts


@pytest.mark.parametrize(
    "parameters",
    [
        {"min_calls": 4},
        {"min_calls": 1_001},
        {"last_percent": 0},
        {"last_percent": 100},
        {"max_chance": 0},
        {"max_chance": 1.1},
    ],
)
def test_parameters_outside_their_range_are_refused(parameters):
    with pytest.raises(ValueError, match="must"):
        OutputDecay(**parameters)


lengths = st.lists(st.integers(1, 12), min_size=5, max_size=8)


@given(lengths, st.integers(2, 9))
@settings(max_examples=80, deadline=None)
def test_the_answer_does_not_depend_on_the_unit_of_length(outputs, factor):
    one, other = answer(*outputs), answer(*[factor * length for length in outputs])
    assert (one.answer, one.level, one.reason_code) == (
        other.answer,
        other.level,
        other.reason_code,
    )
    assert one.evidence.chance == other.evidence.chance


@given(lengths)
@settings(max_examples=80, deadline=None)
def test_a_signal_is_never_queued_above_its_largest_chance(outputs):
    found = answer(*outputs)
    if found.level is Level.REVIEW_SIGNAL:
        assert found.evidence.chance.value <= 0.05
    if found.answer is Answer.SIGNAL:
        assert outputs == sorted(outputs, reverse=True)
        assert outputs[-1] <= 0.6 * outputs[0]


@given(lengths, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_shuffling_the_steps_of_a_trace_changes_no_byte_of_the_answer(outputs, source):
    trace = outputs_trace(*outputs)
    steps = list(trace.steps)
    source.shuffle(steps)
    shuffled = msgspec.structs.replace(trace, steps=tuple(steps))
    assert answers(shuffled) == answers(trace)


def test_a_sequence_cut_by_a_call_without_an_end_says_so():
    calls = [call(n, 100 - n, step={"end_ns": None}) for n in range(6)]
    reasons = {screening.reason for screening in OutputDecay().run(trace_of(*calls))}
    assert all("end is not recorded" in reason for reason in reasons)


@pytest.mark.parametrize(
    "outputs", [(-1, -2, -3, -4, -5), (100, 90, 80, 70, -5), (-9, 8, 7, 6, 1)]
)
def test_a_negative_count_is_missing_and_never_a_short_output(outputs):
    found = answer(*outputs)
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "usage_missing")
    assert found.evidence.usage_missing == sum(one < 0 for one in outputs)


def test_a_chance_too_small_for_a_float_is_never_zero():
    found = answer(*range(400, 0, -1))
    assert found.answer is Answer.SIGNAL
    assert 0 < found.evidence.chance.value < 1e-300
    assert 0 < found.evidence.chance.floor < 1e-300
    assert found.evidence.chance_of_signal == found.evidence.chance.value
    assert "0 %" not in found.reason.replace("60 %", "").replace("0.25 %", "")
    assert "less than 0.0001 %" in found.reason


@pytest.mark.parametrize(
    "values",
    [
        (100, 90, 80, 70, 60),
        (100, 100, 80, 60, 60),
        (100, 100, 100, 100, 60),
        (100, 90, 80, 70, 61),
        (50, 50, 30, 30, 30),
        (7, 7, 7, 7, 7),
    ],
)
@pytest.mark.parametrize("max_chance", [0.001, 0.05, 1])
def test_the_chance_of_a_signal_is_the_share_of_orders_at_which_it_fires(
    values, max_chance
):
    found = [answer(*order, max_chance=max_chance) for order in permutations(values)]
    fired = sum(one.answer is Answer.SIGNAL for one in found) / len(found)
    [said] = {one.evidence.chance_of_signal for one in found}
    assert said == pytest.approx(fired)


def test_one_of_twenty_is_within_five_percent():
    found = answer(100, 100, 100, 90, 60)
    assert exact(found) == (1, 20)
    assert found.level is Level.REVIEW_SIGNAL
    assert answer(100, 100, 100, 90, 60, max_chance=0.0499).level is Level.TELEMETRY
