"""AutoGen, CrewAI, smolagents and labelled transcripts of several agents."""

from __future__ import annotations

import pytest

from apps.engine.trace import (
    StepKind,
    StepStatus,
    UsageState,
)
from tests.formats import agent_samples as agents
from tests.formats import stream_samples as streams
from tests.formats.reading import (
    lines,
    traces_of,
)
from tests.formats.transcript_parts import calls, one, outputs, tools


def test_autogen_zeros_are_suspects_and_thoughts_are_reasoning():
    trace = one(agents.AUTOGEN)
    first, last = calls(trace)
    assert first.body.reasoning == "Look it up."
    assert last.call.usage.state is UsageState.ZERO_SUSPECT
    assert tools(trace)[0].error_message == "no such parcel"
    assert trace.metadata == {"stop_reason": "done"}


def test_the_log_of_autogen_says_the_same_as_its_result():
    trace = one(agents.AUTOGEN_LOG)
    assert [i.agent for i in trace.invocations] == [None, "clerk"]
    assert outputs(trace) == [12, 5]
    assert tools(trace)[0].body.output == "in Graz"


def test_the_total_of_a_crew_is_compared_and_not_used():
    trace = one(agents.CREW)
    assert outputs(trace) == [12, 5]
    assert [i.agent for i in trace.invocations] == [None, "Clerk"]
    assert tools(trace)[0].error_message == "no such parcel"
    assert "records 34 output tokens in all; its calls sum up to 17." in str(
        trace.notes
    )


@pytest.mark.parametrize("value", [agents.CREW_OUTPUT, agents.CREW_LOG])
def test_what_records_no_calls_says_so(value):
    trace = one(value)
    assert calls(trace) == []
    assert "no model calls" in trace.notes[0]


def test_two_kickoffs_in_one_log_are_two_traces():
    again = [event | {"event_id": f"x{event['event_id']}"} for event in agents.CREW]
    assert len(traces_of(lines(*agents.CREW, *again))) == 2


def test_smolagents_errors_belong_to_tools_and_a_cap_is_no_failed_call():
    trace = one(agents.SMOL)
    assert outputs(trace) == [12, 5, 4]
    assert [step.status for step in tools(trace)] == [
        StepStatus.UNSET,
        StepStatus.ERROR,
    ]
    assert all(step.status is not StepStatus.ERROR for step in calls(trace))
    assert "maximum of steps" in trace.notes[0]


def test_labels_reach_no_step_and_speakers_are_joined_whatever_their_case():
    trace = one(agents.WHO_AND_WHEN)
    assert [i.agent for i in trace.invocations] == [None, "Orchestrator", "WebSurfer"]
    assert trace.labels["mistake_agent"] == "WebSurfer"
    assert trace.task == "q-1"
    assert "wrong shop" not in repr(trace.steps)
    assert "Graz" not in repr((trace.steps, trace.metadata))


def test_long_transcripts_are_recognised_though_their_labels_stand_at_the_end():
    long = [{"role": "Orchestrator (thought)", "content": "x" * 4000}] * 40
    value = {
        "history": [agents.WHO_AND_WHEN["history"][0], *long],
        "mistake_agent": "a",
    }
    assert len(calls(one(value))) == 40


def test_an_execution_in_the_log_is_the_tool_call_that_an_answer_asked_for():
    done = {"type": "ToolCall", "tool_name": "find_parcel", "agent_id": "clerk/1",
            "arguments": {"id": "A-1"}, "result": "in Graz"}  # fmt: skip
    log = [agents.AUTOGEN_LOG[0], done, *agents.AUTOGEN_LOG[1:]]
    [tool] = tools(one(log))
    assert (tool.body.output, tool.call.requested_by) == ("in Graz", 0)


def test_a_handoff_of_a_swarm_is_counted_once():
    call = {"id": "c", "name": "transfer_to_bob", "arguments": "{}"}
    usage = {"prompt_tokens": 20, "completion_tokens": 12}
    message = agents.autogen_message
    value = {
        "messages": [
            message("ToolCallRequestEvent", "clerk", [call], usage),
            message("HandoffMessage", "clerk", "over to you") | {"target": "bob"},
            message("HandoffMessage", "user", "as told") | {"target": "clerk"},
        ]
    }
    trace = one(value)
    assert [step.kind for step in trace.steps] == [
        StepKind.MODEL_CALL, StepKind.HANDOFF, StepKind.HANDOFF,
    ]  # fmt: skip
    assert trace.steps[1].body.attributes == {"target": "bob"}


def test_code_that_an_agent_ran_is_a_tool_that_fails_by_its_exit_code():
    ran = agents.autogen_message("CodeExecutionEvent", "coder", None)
    trace = one({"messages": [ran | {"result": {"exit_code": 1, "output": "no"}}]})
    [tool] = tools(trace)
    assert (tool.error_type, tool.body.output) == ("exit code 1", "no")


def test_the_state_of_one_agent_is_read_from_its_context():
    trace = one(streams.AUTOGEN_CONTEXT)
    assert outputs(trace) == [None, None]
    assert tools(trace)[0].body.output == "in Graz"
    assert "without usage" in trace.notes[0]


def test_events_of_older_versions_of_crewai_have_no_ids_and_no_sequence():
    trace = one(streams.OLD_CREW)
    assert outputs(trace) == [12, 5]
    assert [i.agent for i in trace.invocations] == [None, "Clerk"]


def test_the_crews_of_a_flow_are_one_run():
    again = [event | {"event_id": f"x{event['event_id']}"} for event in agents.CREW]
    begun = agents.crew_event(0, "flow_started", flow_name="Parcels", event_id="f")
    ended = agents.crew_event(99, "flow_finished", flow_name="Parcels")
    [trace] = traces_of(lines(begun, *agents.CREW, *again, ended))
    assert (trace.name, outputs(trace)) == ("Parcels", [12, 5, 12, 5])


def test_a_chat_of_ag2_is_told_by_its_speakers_whatever_their_roles():
    trace = one(streams.AG2_CHAT)
    assert [i.agent for i in trace.invocations] == [None, "clerk"]
    assert len(calls(trace)) == 2
    [tool] = tools(trace)
    assert (tool.body.output, tool.call.requested_by) == ("in Graz", 1)
    assert "only as a total" in trace.notes[0]
    assert "cost" in trace.metadata
