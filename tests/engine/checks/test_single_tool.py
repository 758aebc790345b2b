"""Single tool: a share of names, exactly at its bound, and never queued."""

from __future__ import annotations

import random

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.single_tool import SingleTool
from tests.engine.random_traces import shuffled
from tests.engine.traces import call, tool, tools_trace, trace_of


def answer(*names, **parameters):
    (found,) = SingleTool(**parameters).run(tools_trace(*names))
    return found


def test_nine_of_ten_calls_of_one_tool_are_telemetry():
    found = answer(*["search"] * 9, "book")
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.TELEMETRY)
    assert found.headline == "One tool makes up 90 % of 10 tool calls"
    assert found.evidence.facts == {"tool": "search", "calls": 9, "different_tools": 2}
    assert (found.evidence.effect, found.evidence.effect_bound) == (0.9, 0.8)


def test_exactly_80_percent_is_inside_and_less_is_quiet():
    assert answer(*["a"] * 8, "b", "c").answer is Answer.SIGNAL
    found = answer(*["a"] * 7, "b", "c", "d")
    assert (found.answer, found.reason_code) == (Answer.QUIET, "several_tools")
    assert "below the bound of 80 %" in found.reason


def test_the_bound_is_exact_where_floating_point_is_not():
    # 57 of 100 is exactly 57 %, though 0.57 * 100 is below 57 in binary fractions.
    assert answer(*["a"] * 57, *["b"] * 43, share_percent=57).answer is Answer.SIGNAL


def test_seven_calls_are_too_few():
    found = answer(*["a"] * 7)
    assert (found.answer, found.headline) == (
        Answer.NOT_APPLICABLE,
        "7 tool calls, needs 8",
    )
    assert answer("a").headline == "1 tool call, needs 8"


def test_a_trace_without_tools_says_so():
    (found,) = SingleTool().run(trace_of(call(0)))
    assert found.reason_code == "no_tool_calls"


def test_false_alarm_of_an_agent_with_one_tool_is_named_and_never_queued():
    found = answer(*["bash"] * 20)
    assert found.level is Level.TELEMETRY
    assert "may have no other tool" in found.reason
    assert "offered" in found.evidence.not_modelled[0]


def test_false_alarm_of_two_agents_that_each_use_another_mix():
    steps = [tool(n, "ab"[n % 2], invocation=n % 2) for n in range(8)]
    found = list(SingleTool().run(trace_of(*steps, agents=("one", "two"))))
    assert {one.reason_code for one in found} == {"too_few_tool_calls"}


def test_parameters_can_be_set_and_are_told():
    assert answer("a", "a", min_calls=2).answer is Answer.SIGNAL
    text = SingleTool(min_calls=12, share_percent=95).material_when
    assert "at least 95 %" in text
    assert "at least 12" in text
    for wrong in ({"min_calls": 1}, {"share_percent": 50}, {"share_percent": 101}):
        with pytest.raises(ValueError, match="must be at least"):
            SingleTool(**wrong)


def test_shuffled_steps_give_the_same_answer_also_where_two_tools_are_as_frequent():
    trace = tools_trace(*"babababa", *"aabb")
    other = shuffled(trace, random.Random(2))
    assert list(SingleTool().run(other)) == list(SingleTool().run(trace))
    (found,) = SingleTool().run(trace)
    assert found.evidence.facts["tool"] == "a"
