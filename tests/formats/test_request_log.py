"""Logs of requests and responses: which calls belong together, and what failed."""

from __future__ import annotations

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import (
    FinishReason,
    StepStatus,
    UsageState,
)
from tests.formats import provider_samples as providers
from tests.formats import stream_samples as streams
from tests.formats.reading import (
    as_json,
    counts_of,
    lines,
    traces_of,
)
from tests.formats.transcript_parts import calls, one, outputs, tools


def test_a_request_log_joins_the_calls_and_results_of_a_session():
    trace = one(providers.REQUEST_LOG)
    assert (trace.session, trace.task, trace.trial) == ("s-1", "parcel", 2)
    assert [step.kind.value for step in trace.steps] == [
        "user_message", "model_call", "tool_call", "model_call",
    ]  # fmt: skip
    [tool] = tools(trace)
    assert (tool.body.input, tool.body.output) == ({"id": "A-1"}, "in Graz")
    assert tool.call.requested_by == 1
    first = calls(trace)[0]
    usage = first.call.usage
    assert (usage.input_total, usage.input_cached, usage.output_reasoning) == (
        30,
        10,
        4,
    )
    assert first.end_ns - first.start_ns == 250_000_000
    assert outputs(trace) == [12, 5]


def test_requests_without_a_session_are_joined_by_the_answers_they_repeat():
    bare = [
        {
            key: item
            for key, item in one.items()
            if key not in {"session_id", "metadata"}
        }
        for one in providers.REQUEST_LOG
    ]
    other = {"messages": [{"role": "user", "content": "Hi"}],
             "response": providers.completion("Hello", number=9)}  # fmt: skip
    found = traces_of(as_json([bare[0], other, bare[1]]))
    assert [len(calls(trace)) for trace in found] == [2, 1]


def test_earlier_answers_in_a_request_are_not_counted_as_calls():
    record = {
        "messages": [*providers.ASKED, providers.LOOKED, providers.FOUND],
        "response": providers.completion("It is in Graz."),
    }
    assert counts_of([one(record)])["model_calls"] == 1


def test_the_requests_of_a_batch_are_no_sequence():
    trace = one([{"custom_id": f"r{n}", "response": {"body": providers.completion("a", number=n, output=n)}}
                 for n in (90, 70, 50, 30, 20, 10)])  # fmt: skip
    assert [sequence.outputs for sequence in serial_sequences(trace)] == [
        (n,) for n in (90, 70, 50, 30, 20, 10)
    ]


def test_a_request_that_failed_is_a_failed_call_without_usage():
    trace = one(providers.BATCH)
    failed = calls(trace)[1]
    assert failed.status is StepStatus.ERROR
    assert (failed.error_type, failed.error_message) == ("rate_limit", "slow down")
    assert failed.call.usage.state is UsageState.MISSING


def test_the_chunks_of_a_streamed_answer_are_one_call():
    usage = {"prompt_tokens": 3, "completion_tokens": 12}
    found = traces_of(lines(*streams.chunks(1, usage), *streams.chunks(2, None)))
    [trace] = found
    assert outputs(trace) == [12, None]
    assert calls(trace)[0].body.output == "ab"
    assert calls(trace)[0].call.finish is FinishReason.TOOL_CALLS
    assert [step.body.input for step in tools(trace)] == [{"id": "A-1"}] * 2
    logged = {
        "request": {"messages": providers.ASKED},
        "response": streams.chunks(1, usage),
    }
    assert outputs(one([logged])) == [12]


@pytest.mark.parametrize(
    ("pieces", "output"), [(streams.OLLAMA, 12), (streams.GEMINI, 6)]
)
def test_pieces_are_one_call_until_one_says_why_it_stopped(pieces, output):
    trace = one(pieces)
    assert (outputs(trace), calls(trace)[0].body.output) == ([output], "ab")
    twice = traces_of(lines(*pieces, *pieces))
    assert [outputs(trace) for trace in twice] == [[output, output]]


def test_gemini_thoughts_and_calls_are_read_from_its_parts():
    parts = [{"text": "Hm.", "thought": True},
             {"functionCall": {"name": "find_parcel", "args": {"id": "A-1"}}}]  # fmt: skip
    answer = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}],
              "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 12,
                                "thoughtsTokenCount": 3}}  # fmt: skip
    asked = {"contents": [{"role": "user", "parts": [{"text": "Where?"}]}]}
    trace = one([{"request": asked, "response": answer}])
    [call] = calls(trace)
    assert (call.body.reasoning, call.call.usage.output_reasoning) == ("Hm.", 3)
    assert tools(trace)[0].name == "find_parcel"


def test_bedrock_input_includes_what_the_cache_gave():
    usage = {"inputTokens": 5, "outputTokens": 12, "cacheReadInputTokens": 20}
    use = {"toolUse": {"toolUseId": "t", "name": "find_parcel", "input": {}}}
    answer = {"output": {"message": {"role": "assistant", "content": [use]}},
              "stopReason": "tool_use", "usage": usage}  # fmt: skip
    trace = one([answer])
    assert calls(trace)[0].call.usage.input_total == 25
    assert len(tools(trace)) == 1


def test_a_batch_of_anthropic_may_begin_with_a_request_that_failed():
    error = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "no"},
    }
    results = [{"type": "errored", "error": error},
               {"type": "succeeded", "message": providers.anthropic_answer(1, 9)},
               {"type": "expired"}]  # fmt: skip
    trace = one([{"custom_id": f"r{n}", "result": r} for n, r in enumerate(results)])
    assert outputs(trace) == [None, 9, None]
    assert [step.error_type for step in calls(trace)] == [
        "invalid_request_error", None, "expired",
    ]  # fmt: skip


def test_a_failed_request_of_litellm_is_retried_by_the_next_with_the_same_messages():
    shared = {"call_type": "acompletion", "messages": providers.ASKED, "model": "m",
              "session_id": "s"}  # fmt: skip
    told = {"error_class": "RateLimitError", "error_message": "slow down"}
    failed = shared | {"status": "failure", "response": {}, "error_information": told}
    trace = one([failed, shared | {"response": providers.completion("yes")}])
    first, second = calls(trace)
    assert (first.error_type, first.status) == ("RateLimitError", StepStatus.ERROR)
    assert second.call.retry_of == first.seq


def test_a_trace_id_of_a_gateway_does_not_part_what_the_answers_join():
    apart = [
        {key: item for key, item in record.items() if key != "session_id"}
        | {"trace_id": f"t-{number}"}
        for number, record in enumerate(providers.REQUEST_LOG)
    ]
    assert outputs(one(apart)) == [12, 5]


def test_a_gateway_keeps_bodies_as_text_and_names_the_session_in_properties():
    record = {
        "request_created_at": "2026-03-01T10:00:00Z",
        "response_created_at": "2026-03-01T10:00:01Z",
        "request_properties": {"Helicone-Session-Id": "hs"},
        "request_body": as_json({"messages": providers.ASKED}).decode(),
        "response_body": as_json(providers.completion("yes")).decode(),
    }
    trace = one([record])
    assert (trace.session, outputs(trace)) == ("hs", [12])
    assert trace.end_ns - trace.start_ns == 10**9
    http = {"request": {"url": "u", "body": record["request_body"]},
            "response": {"status": 200, "body": record["response_body"]}}  # fmt: skip
    assert outputs(one([http])) == [12]


def test_counts_beside_a_response_that_was_not_kept_are_its_usage():
    record = {"request_id": "r", "call_type": "acompletion", "model": "m",
              "response": {}, "prompt_tokens": 3, "completion_tokens": 12}  # fmt: skip
    assert outputs(one([record])) == [12]


@pytest.mark.parametrize(
    "pairs",
    [
        [
            (providers.ANTHROPIC["messages"][:1], providers.anthropic_answer(1, 9)
             | {"content": providers.ANTHROPIC["messages"][1]["content"]}),
            (providers.ANTHROPIC["messages"][:3], providers.anthropic_answer(2, 4)),
        ],
        [
            ([providers.RESPONSE_ITEMS[0]], providers.response(1, 9)
             | {"output": providers.RESPONSE_ITEMS[1:3]}),
            (providers.RESPONSE_ITEMS[:4], providers.response(2, 4)),
        ],
    ],
    ids=["anthropic", "responses"],
)  # fmt: skip
def test_results_of_tools_are_joined_in_every_spelling_of_a_request(pairs):
    trace = one([{"request": {"input": sent}, "response": got} for sent, got in pairs])
    assert outputs(trace) == [9, 4]
    [tool] = tools(trace)
    assert tool.body.output in ("no such parcel", "in Graz")


def test_agents_that_share_a_session_keep_their_results_and_their_sequences():
    def record(number, agent, *more):
        messages = [{"role": "system", "content": f"You are {agent}."}, *more]
        asked = [providers.tool("find_parcel", f"call_{number}")]
        answer = providers.completion("x", number=number, tool_calls=asked)
        return {"session_id": "s", "messages": messages, "response": answer}

    hello = {"role": "user", "content": "Hello"}
    result = {"role": "tool", "tool_call_id": "call_3", "content": "in Graz"}
    trace = one([record(1, "triage", hello, hello, hello), record(3, "billing"),
                 record(4, "billing", result)])  # fmt: skip
    assert [s.outputs for s in serial_sequences(trace)] == [(12,), (12, 12)]
    assert [step.body.output for step in tools(trace)][1] == "in Graz"
    assert "different system messages" in trace.notes[0]


def test_several_choices_of_one_answer_are_one_call_with_a_remark():
    answer = providers.completion("a")
    both = answer | {"choices": answer["choices"] * 2}
    trace = one([both])
    assert outputs(trace) == [12]
    assert "several choices" in trace.notes[0]
