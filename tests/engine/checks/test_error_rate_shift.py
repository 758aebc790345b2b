"""Error-rate shift: more failures than a baseline lets expect, tool by tool."""

from __future__ import annotations

from random import Random

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.error_rate_shift import ErrorRateShift
from apps.engine.nulls import error_baseline
from apps.engine.sequences.calls import failures_by_name
from apps.engine.trace import StepStatus
from tests.engine.traces import tool, trace_of


def run_of(ends: str, name: str = "search"):
    """A trace of tool calls: `x` failed, `.` did not, `?` does not say."""
    status = {"x": StepStatus.ERROR, ".": StepStatus.OK, "?": StepStatus.UNSET}
    return trace_of(
        *[tool(seq, name, status=status[end]) for seq, end in enumerate(ends)]
    )


def baseline_of(traces: int, every: int = 10) -> dict[str, object]:
    """Each trace makes 10 calls; in one of `every` traces one call fails."""
    made = error_baseline(
        failures_by_name(run_of(("." if n % every else "x") + 9 * "."))
        for n in range(traces)
    )
    return {"baseline": made, "baseline_name": "May", "baseline_key": "k"}


def answer(trace, **fields):
    (found,) = ErrorRateShift(**fields).run(trace)
    return found


def test_more_failures_than_any_trace_of_the_baseline_is_a_review_signal():
    found = answer(run_of("xxx."), **baseline_of(40))
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.evidence.chance.value == pytest.approx(1 / 41)
    assert found.evidence.steps == (0, 1, 2)
    assert found.evidence.facts["expected"] == pytest.approx(0.04)


def test_as_few_failures_as_elsewhere_are_quiet():
    found = answer(run_of("x........."), **baseline_of(40))
    assert found.answer is Answer.QUIET
    assert answer(run_of(".."), **baseline_of(40)).answer is Answer.QUIET


def test_failures_that_every_other_trace_has_too_are_not_rare():
    found = answer(run_of("xx........"), **baseline_of(40, every=1))
    assert found.evidence.chance.value == pytest.approx(1 / 41)
    alike = error_baseline(failures_by_name(run_of("xx.")) for _ in range(40))
    same = answer(run_of("xxx"), baseline=alike, baseline_name="x", baseline_key="y")
    assert same.answer is Answer.SIGNAL
    equal = answer(run_of("xx."), baseline=alike, baseline_name="x", baseline_key="y")
    assert equal.answer is Answer.QUIET


def test_where_nobody_says_how_calls_ended_nothing_is_compared():
    silent = error_baseline(failures_by_name(run_of("??")) for _ in range(40))
    given = {"baseline": silent, "baseline_name": "x", "baseline_key": "y"}
    found = answer(run_of("??"), **given)
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_statuses")


def test_spans_that_say_only_that_a_call_failed_are_counted_with_those_that_do_not():
    assert failures_by_name(run_of("?x?")) == {"tool search": (1, 3)}
    spans = error_baseline(
        failures_by_name(run_of("x?????????" if n % 10 == 0 else "??????????"))
        for n in range(40)
    )
    given = {"baseline": spans, "baseline_name": "x", "baseline_key": "y"}
    assert answer(run_of("xxx?"), **given).answer is Answer.SIGNAL
    assert answer(run_of("????"), **given).answer is Answer.QUIET


def test_an_unfinished_call_is_not_counted():
    trace = trace_of(tool(0, "search", status=StepStatus.UNFINISHED))
    assert failures_by_name(trace) == {}
    assert answer(trace, **baseline_of(40)).reason_code == "no_tool_calls"


def test_a_small_baseline_says_that_it_cannot_give_a_signal():
    found = answer(run_of("xxx"), **baseline_of(18))
    assert found.reason_code == "baseline_too_small"
    assert answer(run_of("xxx"), **baseline_of(19)).answer is Answer.SIGNAL


def test_without_a_baseline_or_without_its_tools_it_does_not_apply():
    assert answer(run_of("x")).reason_code == "no_baseline"
    other = answer(run_of("xx", name="another"), **baseline_of(40))
    assert other.reason_code == "nothing_alike"


@pytest.mark.parametrize(
    "fields", [{"fewest_failures": 0}, {"fewest_failures": 1.5}, {"max_chance": 1.1}]
)
def test_its_parameters_have_limits(fields):
    with pytest.raises(ValueError, match="must be"):
        ErrorRateShift(**fields)


def test_one_call_is_spoken_of_as_one():
    found = answer(run_of("x"), fewest_failures=1, **baseline_of(40))
    assert found.answer is Answer.SIGNAL
    assert found.reason.startswith("1 of 1 compared tool call failed")
    assert "At least 1 compared call failed" in (
        ErrorRateShift(fewest_failures=1).material_when
    )


def test_a_baseline_without_a_trace_to_rank_among_is_too_small_at_any_chance():
    made = error_baseline([{"tool search": (0, 9)}])
    assert made.scores == ()
    given = {"baseline": made, "baseline_name": "x", "baseline_key": "y"}
    found = answer(run_of("xx"), max_chance=1, **given)
    assert found.reason_code == "baseline_too_small"
    assert found.headline == "The baseline has 0 traces with tool calls: too few"


def test_it_claims_no_exactness_and_says_what_the_expected_count_is():
    found = answer(run_of("xxx."), **baseline_of(40))
    assert not found.evidence.chance.method.startswith("exact")
    assert any("upper bound" in one for one in found.evidence.not_modelled)


@pytest.mark.parametrize("max_chance", [0.05, 0.2])
def test_exchangeable_traces_give_a_signal_no_more_often_than_it_says(max_chance):
    source = Random(11)

    def drawn():
        rate = source.betavariate(1, 4)
        return "".join("x" if source.random() < rate else "." for _ in range(12))

    fired, tried = 0, 400
    for _ in range(tried):
        made = error_baseline(failures_by_name(run_of(drawn())) for _ in range(39))
        given = {"baseline": made, "baseline_name": "x", "baseline_key": "y"}
        found = answer(run_of(drawn()), max_chance=max_chance, **given)
        fired += found.answer is Answer.SIGNAL
    said = found.evidence.chance_of_signal
    assert said == pytest.approx(max_chance)
    assert fired / tried < said + 3 * (said * (1 - said) / tried) ** 0.5


def test_it_rests_on_the_failed_calls_of_compared_tools_only():
    failed = {"status": StepStatus.ERROR}
    known = [tool(seq, "search", **failed) for seq in range(3)]
    trace = trace_of(*known, tool(3, "unheard of", **failed))
    found = answer(trace, **baseline_of(40))
    assert found.answer is Answer.SIGNAL
    assert found.reason.startswith("3 of 3 compared tool calls failed")
    assert found.evidence.steps == (0, 1, 2)
    assert found.evidence.facts["without_baseline"] == ["tool unheard of"]
