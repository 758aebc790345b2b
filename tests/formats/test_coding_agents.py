"""Trajectories of SWE-agent and mini-swe-agent."""

from __future__ import annotations

from apps.engine.trace import (
    UsageState,
)
from tests.formats import agent_samples as agents
from tests.formats import provider_samples as providers
from tests.formats import stream_samples as streams
from tests.formats.reading import (
    as_json,
    traces_of,
)
from tests.formats.transcript_parts import calls, one, outputs, tools


def test_swe_agent_steps_are_calls_and_actions_are_tools():
    trace = one(agents.SWE_AGENT)
    assert [step.name for step in tools(trace)] == ["find_file", "python"]
    assert len(calls(trace)) == 3
    assert trace.invocations[0].agent == "main"
    assert trace.metadata["exit_status"] == "submitted"
    assert "submission" not in trace.metadata
    assert {step.call.usage.state for step in calls(trace)} == {UsageState.MISSING}


def test_a_total_alone_is_an_aggregate_and_no_count_of_a_call():
    stats = {"tokens_sent": 900, "tokens_received": 70, "api_calls": 4}
    trace = one(agents.SWE_AGENT | {"info": {"model_stats": stats}})
    usages = {step.call.usage for step in calls(trace)}
    assert {usage.state for usage in usages} == {UsageState.AGGREGATE_ONLY}
    assert {usage.output_total for usage in usages} == {None}
    assert "900 tokens sent and 70 received in 4 calls" in trace.notes[0]
    assert "records 4 model calls in all; its calls sum up to 3." in trace.notes[1]


def test_an_answer_in_a_wrong_format_is_a_call_too():
    trace = one(agents.MINI_SWE)
    assert outputs(trace) == [12, 3, None]
    assert [step.name for step in tools(trace)] == ["bash"]
    assert "refused for their format" in trace.notes[0]


def test_actions_that_are_no_tool_calls_are_tools_too():
    message = {
        "role": "assistant",
        "content": "x",
        "extra": {"actions": [{"command": "ls"}]},
    }
    run = agents.MINI_SWE | {"messages": [*agents.MINI_SWE["messages"][:2], message]}
    assert [step.body.input for step in tools(one(run))] == ["ls"]


def test_actions_done_twice_keep_the_ids_of_their_own_calls():
    history = [
        {"role": "assistant", "content": "Look.", "action": "ls", "agent": "main",
         "tool_calls": [providers.tool("bash", f"call_{number}")]}
        for number in (1, 2)
    ]  # fmt: skip
    step = {"action": "ls", "observation": "a", "response": "Look.", "thought": ""}
    trace = one({"trajectory": [step, step], "history": history})
    assert [step.call.call_id for step in tools(trace)] == ["call_1", "call_2"]


def test_attempts_without_a_chosen_one_are_traces_of_their_own():
    found = traces_of(as_json({"attempts": [agents.SWE_AGENT] * 2, "info": {}}))
    assert [len(calls(trace)) for trace in found] == [3, 3]
    chosen = one(agents.SWE_AGENT | {"attempts": [agents.SWE_AGENT] * 2})
    assert "Attempts in the file" in chosen.notes[0]


def test_responses_in_the_place_of_messages_are_calls_with_usage():
    trace = one(streams.MINI_RESPONSES)
    assert outputs(trace) == [12, 5]
    [tool] = tools(trace)
    assert (tool.body.output, tool.error_message) == ("a.py", "timed out")
