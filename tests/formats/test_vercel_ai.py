"""Results, steps, streams and messages of the Vercel AI SDK."""

from __future__ import annotations

import pytest

from apps.engine.trace import (
    StepStatus,
)
from tests.formats import framework_samples as frameworks
from tests.formats import stream_samples as streams
from tests.formats.reading import (
    as_json,
    counts_of,
    lines,
    traces_of,
)
from tests.formats.transcript_parts import calls, one, outputs, tools


def test_vercel_steps_are_calls_and_their_errors_are_failed_tools():
    trace = one(frameworks.VERCEL)
    assert outputs(trace) == [12, 5]
    assert trace.invocations[0].agent == "clerk"
    assert (trace.session, trace.trial, trace.notes) == ("s-3", 1, ())
    [tool] = tools(trace)
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "no such parcel")


def test_a_total_that_is_not_the_sum_is_shown_and_never_added():
    wrong = frameworks.VERCEL | {"totalUsage": {"outputTokens": 34}}
    trace = one(wrong)
    assert outputs(trace) == [12, 5]
    assert trace.notes == (
        "The result records 34 output tokens in all; its calls sum up to 17.",
    )


def test_a_ui_message_holds_a_call_for_each_step_start():
    trace = one(frameworks.VERCEL_UI)
    first, last = calls(trace)
    assert (first.body.reasoning, last.body.output) == ("Look it up.", "It is in Graz.")
    assert tools(trace)[0].body.output == "in Graz"


def test_a_result_written_whole_by_version_5_has_only_its_steps():
    trace = one({"steps": frameworks.VERCEL["steps"], "resolvedOutput": "x"})
    assert outputs(trace) == [12, 5]


@pytest.mark.parametrize("write", [lambda *steps: as_json(steps), lines])
def test_steps_alone_are_one_run_and_a_first_step_begins_another(write):
    steps = frameworks.VERCEL["steps"]
    found = traces_of(write(*steps, *steps))
    assert [outputs(trace) for trace in found] == [[12, 5], [12, 5]]


@pytest.mark.parametrize("parts", [streams.VERCEL_4, streams.VERCEL_5])
def test_the_parts_of_a_stream_are_one_call_for_each_step(parts):
    [trace] = traces_of(lines(*parts))
    assert (outputs(trace), calls(trace)[0].body.output) == ([12], "ab")
    [tool] = tools(trace)
    assert (tool.body.input, tool.body.output) == ({"a": 1}, "in Graz")


def test_version_4_repeats_the_invocations_of_its_parts_and_they_count_once():
    invoked = {"state": "result", "toolCallId": "c", "toolName": "f", "result": "ok"}
    told = {"type": "tool-invocation", "toolInvocation": invoked}
    parts = [{"type": "step-start"}, told, {"type": "step-start"},
             {"type": "text", "text": "done"}]  # fmt: skip
    message = {"role": "assistant", "content": "done", "toolInvocations": [invoked]}
    assert counts_of([one([message | {"parts": parts}])])["tool_calls"] == 1
    trace = one([message])
    assert (len(calls(trace)), calls(trace)[0].body.output) == (1, "done")
    assert [step.kind.value for step in trace.steps] == ["model_call", "tool_call"]


def test_what_an_application_added_is_no_call_and_a_denied_tool_failed():
    denied = {"type": "dynamic-tool", "toolName": "f", "toolCallId": "c",
              "state": "output-denied", "input": {}}  # fmt: skip
    parts = [{"type": "step-start"}, denied, {"type": "source-url", "url": "u"},
             {"type": "step-start"}, {"type": "data-progress", "data": {}}]  # fmt: skip
    trace = one([{"role": "assistant", "parts": parts}])
    assert len(calls(trace)) == 1
    assert tools(trace)[0].status is StepStatus.ERROR
