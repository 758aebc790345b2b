"""Error-rate shift: more failures than a baseline lets expect, tool by tool."""

from __future__ import annotations

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


def test_an_unknown_status_is_no_success_and_no_failure():
    found = answer(run_of("??"), **baseline_of(40))
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_statuses")
    assert failures_by_name(run_of("?x")) == {"tool search": (1, 1)}


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
