"""Transcripts and answers of the APIs of Anthropic and OpenAI (Responses)."""

from __future__ import annotations

from apps.engine.trace import (
    FinishReason,
    StepStatus,
    UsageState,
)
from tests.formats import provider_samples as providers
from tests.formats import stream_samples as streams
from tests.formats.reading import (
    lines,
    traces_of,
)
from tests.formats.transcript_parts import calls, one, outputs, tools


def test_anthropic_parts_become_calls_tools_and_reasoning():
    trace = one(providers.ANTHROPIC)
    first, last = calls(trace)
    assert first.body.reasoning == "Look it up."
    assert first.call.model == "claude-x"
    [tool] = tools(trace)
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "no such parcel")
    assert first.call.usage.state is last.call.usage.state is UsageState.MISSING
    assert (trace.session, trace.trial) == ("s-2", 3)


def test_anthropic_input_includes_what_the_cache_gave_and_took():
    trace = one([providers.anthropic_answer(1, 9), providers.anthropic_answer(2, 4)])
    usage = calls(trace)[0].call.usage
    assert (usage.input_total, usage.input_cached, usage.input_cache_write) == (
        32,
        20,
        7,
    )
    assert outputs(trace) == [9, 4]
    assert "which calls belong together" in trace.notes[0]


def test_response_items_between_results_are_one_call():
    trace = one(providers.RESPONSE_ITEMS)
    first, last = calls(trace)
    assert first.body.reasoning == "Look it up."
    assert last.body.output == "It is in Graz."
    [tool] = tools(trace)
    assert (tool.call.requested_by, tool.body.output) == (first.seq, "in Graz")


def test_two_function_calls_of_one_response_are_one_call():
    call = providers.RESPONSE_ITEMS[2]
    again = call | {"id": "fc_2", "call_id": "call_2"}
    trace = one([*providers.RESPONSE_ITEMS[:3], again, *providers.RESPONSE_ITEMS[3:]])
    assert [len(step.call.tool_call_ids) for step in calls(trace)] == [2, 0]


def test_responses_are_joined_by_the_one_before():
    found = traces_of(
        lines(
            providers.response(1, 9),
            providers.response(5, 7),
            providers.response(2, 4, "resp_1"),
            providers.response(3, 3, "resp_2"),
        )
    )
    assert [outputs(trace) for trace in found] == [[9, 4, 3], [7]]


def test_a_response_that_was_cut_says_length():
    cut = providers.response(1, 9) | {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    }
    assert calls(one([cut]))[0].call.finish is FinishReason.LENGTH


def test_of_a_stream_only_the_last_event_of_a_response_is_read():
    begun = providers.response(1, 0) | {"output": [], "status": "in_progress"}
    found = traces_of(
        lines(
            {"type": "response.created", "sequence_number": 0, "response": begun},
            {"type": "response.output_text.delta", "sequence_number": 1, "delta": "a"},
            {"type": "response.completed", "sequence_number": 2,
             "response": providers.response(1, 9)},
        )
    )  # fmt: skip
    assert [outputs(trace) for trace in found] == [[9]]
    assert any("Stream events" in note for note in found[0].notes)


def without_usage(number):
    answer = providers.anthropic_answer(number, 1)
    return {key: item for key, item in answer.items() if key != "usage"}


def test_an_answer_of_anthropic_without_usage_is_a_call_whose_usage_is_missing():
    trace = one([without_usage(1), without_usage(2)])
    assert [step.call.usage.state for step in calls(trace)] == [UsageState.MISSING] * 2


def test_an_error_in_the_place_of_an_answer_is_a_failed_call():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    trace = traces_of(lines(providers.anthropic_answer(1, 9), error))[0]
    assert outputs(trace) == [9, None]
    assert calls(trace)[1].error_type == "overloaded_error"


def test_the_events_of_an_anthropic_stream_are_one_call():
    [trace] = traces_of(lines(*streams.ANTHROPIC_STREAM))
    [call] = calls(trace)
    assert (call.body.output, outputs(trace)) == ("Here", [12])
    assert call.call.usage.input_total == 32
    assert [step.body.input for step in tools(trace)] == [{"id": 1}]


def test_tools_that_ran_at_the_provider_keep_their_results_in_an_answer_alone():
    content = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": ["found"]},
    ]
    trace = one([providers.anthropic_answer(1, 9) | {"content": content}])
    assert tools(trace)[0].body.output == ["found"]


def test_items_listed_newest_first_are_read_from_the_last_one():
    listed = {"object": "list", "data": providers.RESPONSE_ITEMS[::-1]}
    trace = one(listed)
    assert [step.kind for step in trace.steps] == [
        step.kind for step in one(providers.RESPONSE_ITEMS).steps
    ]
    assert "newest first" in trace.notes[0]


def test_tools_of_the_provider_are_within_one_response():
    trace = one(
        [
            providers.RESPONSE_ITEMS[0],
            {"type": "mcp_list_tools", "id": "m1", "tools": []},
            {"type": "mcp_call", "id": "m2", "name": "find_parcel", "error": "no such"},
            {"type": "web_search_call", "id": "w", "status": "completed"},
            providers.RESPONSE_ITEMS[4],
        ]
    )
    assert len(calls(trace)) == 1
    assert [step.name for step in tools(trace)] == ["find_parcel", "web_search"]
    assert [step.status for step in tools(trace)] == [
        StepStatus.ERROR, StepStatus.UNSET,
    ]  # fmt: skip
    assert "kinds that are not read: 1" in trace.notes[0]


def test_a_response_whose_stream_broke_off_is_a_call_without_usage():
    begun = providers.response(1, 0) | {"output": [], "status": "in_progress"}
    item = providers.RESPONSE_ITEMS[2]
    [trace] = traces_of(
        lines(
            {"type": "response.created", "sequence_number": 0,
             "response": begun | {"usage": None}},
            {"type": "response.output_item.done", "sequence_number": 1, "item": item},
        )
    )  # fmt: skip
    assert outputs(trace) == [None]
    assert [step.name for step in tools(trace)] == ["find_parcel"]
