"""LangChain messages and LangGraph states: each message once, in any spelling."""

from __future__ import annotations

from apps.engine.trace import (
    StepStatus,
)
from tests.formats import framework_samples as frameworks
from tests.formats import stream_samples as streams
from tests.formats.reading import (
    as_json,
    items_of,
    lines,
    rejected_of,
    traces_of,
)
from tests.formats.transcript_parts import calls, one, outputs, tools


def test_langchain_messages_keep_usage_agents_and_failures():
    trace = one(frameworks.LC_MESSAGES)
    assert [i.agent for i in trace.invocations] == ["clerk"]
    usage = calls(trace)[0].call.usage
    assert (usage.input_total, usage.input_cached, usage.output_reasoning) == (20, 8, 3)
    [tool] = tools(trace)
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "no such parcel")


def test_a_thread_is_read_once_though_its_history_repeats_it():
    trace = one(frameworks.LC_HISTORY)
    assert (trace.session, trace.trial) == ("th-1", 4)
    assert [step.kind.value for step in trace.steps] == [
        "user_message", "model_call", "tool_call", "model_call",
    ]  # fmt: skip
    assert outputs(trace) == [12, 5]


def test_the_three_spellings_of_a_message_are_one():
    def dumped(message):
        names = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
        path = ["langchain", "schema", "messages", names[message["type"]]]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": message}

    plain = one(frameworks.LC_MESSAGES)
    assert one([dumped(message) for message in frameworks.LC_MESSAGES]) == plain
    as_dict = [{"type": m["type"], "data": m} for m in frameworks.LC_MESSAGES]
    assert one(as_dict) == plain


def test_a_call_that_langchain_could_not_parse_is_a_failed_tool_call():
    broken = frameworks.lc_ai(1, 12, invalid_tool_calls=[
        {"name": "find_parcel", "args": "{id", "id": "call_9", "error": "bad JSON"}])  # fmt: skip
    [tool] = tools(one([frameworks.LC_MESSAGES[0], broken]))
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "bad JSON")


def test_the_chunks_of_a_message_are_one_call_whose_counts_are_their_sum():
    result = {"type": "tool", "tool_call_id": "call_1", "content": "in Graz"}
    trace = one([*streams.lc_chunks(1, 12), result, *streams.lc_chunks(2, 5)])
    assert outputs(trace) == [12, 5]
    first = calls(trace)[0]
    assert (first.body.output, first.call.usage.input_total) == ("ab", 20)
    tool = tools(trace)[0]
    assert (tool.body.input, tool.body.output) == ({"id": 1}, "in Graz")


def test_a_stream_of_messages_with_metadata_is_one_conversation():
    for data in (lines(*streams.LC_PAIRS), as_json(streams.LC_PAIRS)):
        [trace] = traces_of(data)
        assert (trace.session, outputs(trace)) == ("th-1", [12, 5])


def test_states_that_grow_are_one_conversation():
    messages = frameworks.LC_MESSAGES
    states = [{"messages": messages[:count]} for count in range(1, 5)]
    [trace] = traces_of(lines(*states))
    assert outputs(trace) == [12, 5]


def test_updates_of_nodes_are_one_conversation():
    updates = [{"agent": {"messages": [message]}} for message in frameworks.LC_MESSAGES]
    [trace] = traces_of(lines(*updates, {"tools": None}))
    assert outputs(trace) == [12, 5]


def test_a_checkpoint_holds_its_messages_in_its_channels():
    trace = one({"v": 4, "channel_values": {"messages": frameworks.LC_MESSAGES}})
    assert outputs(trace) == [12, 5]


def test_snapshots_written_as_tuples_are_read_like_snapshots():
    trace = one(streams.LC_TUPLES)
    assert (trace.session, trace.trial, outputs(trace)) == ("th-1", 4, [12, 5])
    alone = items_of(as_json(streams.LC_TUPLES[0]))
    assert rejected_of(alone) == []
