"""Latency shift: slower than a baseline, in the terms of the baseline's own traces."""

from __future__ import annotations

from random import Random

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.latency_shift import LatencyShift
from apps.engine.nulls import latency_baseline
from apps.engine.sequences.calls import durations_by_name
from apps.engine.trace import OrderSource
from tests.engine.traces import call, tool, trace_of


def run_of(*seconds: float, name: str = "m"):
    """A trace whose model calls took this long, one after another."""
    steps, at = [], 0.0
    for seq, took in enumerate(seconds):
        steps.append(call(seq, start=at, end=at + took, model=name))
        at += took + 0.1
    return trace_of(*steps)


def baseline_of(traces: int, seconds: float = 1.0) -> dict[str, object]:
    made = latency_baseline(
        durations_by_name(run_of(*[seconds * (1 + 0.01 * n)] * 3))
        for n in range(traces)
    )
    return {"baseline": made, "baseline_name": "May", "baseline_key": "k"}


def answer(trace, **fields):
    (found,) = LatencyShift(**fields).run(trace)
    return found


def test_a_trace_slower_than_every_one_of_a_baseline_is_a_review_signal():
    found = answer(run_of(4, 4, 4), **baseline_of(99))
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    # The slowest trace of the baseline is above all of its others too: a tie of two.
    assert found.evidence.chance.value == pytest.approx(4 / 100)
    assert found.evidence.chance.floor == pytest.approx(2 / 100)
    assert found.evidence.ratio == pytest.approx(4 / 1.49)
    assert "not by itself a finding" in found.reason
    assert "“May”" in found.reason


def test_the_expected_number_of_signals_is_what_ranks_give():
    found = answer(run_of(1, 1, 1), **baseline_of(99))
    # 5 % of both sides: 2 of 100 ranks on the slow side.
    assert found.evidence.chance_of_signal == pytest.approx(0.02)


def test_a_trace_like_the_others_is_quiet():
    found = answer(run_of(1.3, 1.2, 1.3), **baseline_of(60))
    assert (found.answer, found.level) == (Answer.QUIET, Level.TELEMETRY)


def test_a_faster_trace_is_never_a_signal():
    found = answer(run_of(0.1, 0.1), **baseline_of(60))
    assert (found.answer, found.reason_code) == (Answer.QUIET, "not_slower")


def test_a_little_slower_is_rare_and_still_not_material():
    found = answer(run_of(1.7, 1.7, 1.7), **baseline_of(60))
    assert (found.answer, found.reason_code) == (Answer.QUIET, "not_material")


def test_a_small_baseline_says_that_it_cannot_give_a_signal():
    found = answer(run_of(4, 4, 4), **baseline_of(38))
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "baseline_too_small",
    )
    found = answer(run_of(4, 4, 4), **baseline_of(39))
    assert (found.answer, found.reason_code) == (Answer.QUIET, "not_rare")


def test_without_a_baseline_it_does_not_apply():
    assert answer(run_of(4)).reason_code == "no_baseline"


def test_other_models_are_compared_with_nothing():
    found = answer(run_of(4, 4, name="another"), **baseline_of(60))
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "nothing_alike",
    )


def test_calls_without_times_have_no_duration_and_never_zero():
    step = {"start_ns": None, "end_ns": None}
    trace = trace_of(call(0, step=step), call(1, step=step), order=OrderSource.FILE)
    assert answer(trace, **baseline_of(60)).reason_code == "no_durations"


def test_a_tool_and_a_model_of_one_name_are_two_things():
    found = durations_by_name(trace_of(call(0, start=0, end=1), tool(1, "m")))
    assert set(found) == {"model m", "tool m"}


def test_another_baseline_is_another_parameter():
    one = LatencyShift(**baseline_of(60))
    assert one.parameters != LatencyShift().parameters
    assert one.parameters["baseline"] == "k"


@pytest.mark.parametrize(
    "fields", [{"slower_at": 1}, {"slower_at": 101}, {"max_chance": 0}]
)
def test_its_parameters_have_limits(fields):
    with pytest.raises(ValueError, match="must be"):
        LatencyShift(**fields)


def one_quick_trace_and(slow: int) -> dict[str, object]:
    """A baseline of mostly quick calls, all of one trace, and mostly slow traces."""
    quick = {"model m": tuple([1.0] * 2_000)}
    made = latency_baseline([quick, *({"model m": (10.0 + n,)} for n in range(slow))])
    return {"baseline": made, "baseline_name": "May", "baseline_key": "k"}


def test_a_trace_that_is_faster_than_most_traces_is_never_called_slower():
    found = answer(run_of(5), **one_quick_trace_and(120))
    # Above most calls of the baseline, and still below nearly all of its traces.
    assert found.evidence.facts["percentile"] > 0.5
    assert found.evidence.ratio == pytest.approx(5)
    assert found.evidence.chance.value < 0.05
    assert (found.answer, found.reason_code) == (Answer.QUIET, "not_slower")
    assert "not slower than most traces" in found.reason


def test_it_claims_no_exactness_and_says_what_the_expected_count_is():
    found = answer(run_of(4, 4, 4), **baseline_of(99))
    assert not found.evidence.chance.method.startswith("exact")
    assert any("upper bound" in one for one in found.evidence.not_modelled)


@pytest.mark.parametrize("seconds", [0.5, 1.3, 40])
def test_one_call_is_spoken_of_as_one(seconds):
    found = answer(run_of(seconds), **baseline_of(99))
    assert "1 compared call " in found.reason
    assert "1 compared calls" not in found.reason


def test_one_trace_of_a_baseline_is_spoken_of_as_one():
    found = answer(run_of(4), **baseline_of(9))
    assert "9 traces" in found.headline
    # With 3 others the larger trace has nobody to be ranked among.
    alone = latency_baseline([{"model m": (1.0,) * 9}, {"model m": (1.0,) * 3}])
    found = answer(run_of(4), baseline=alone, baseline_name="x", baseline_key="y")
    assert found.headline == "The baseline has 1 trace with durations: too few"
    assert found.reason.startswith("With 1 trace no chance")


def test_exchangeable_traces_give_a_signal_no_more_often_than_it_says():
    source = Random(7)

    def drawn():
        quick = source.lognormvariate(0, 0.5)
        return tuple(quick * source.lognormvariate(0, 1) for _ in range(4))

    fired, tried = 0, 400
    for _ in range(tried):
        made = latency_baseline({"model m": drawn()} for _ in range(60))
        given = {"baseline": made, "baseline_name": "x", "baseline_key": "y"}
        found = answer(run_of(*drawn()), slower_at=1.01, max_chance=0.2, **given)
        fired += found.answer is Answer.SIGNAL
    said = found.evidence.chance_of_signal
    assert said == pytest.approx(6 / 61)
    assert fired / tried < said + 3 * (said * (1 - said) / tried) ** 0.5
    assert fired / tried > said / 2
