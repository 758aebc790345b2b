"""Readers of transcripts and provider APIs: what each finds, and what it must not."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.engine.format import UnreadableTrace
from apps.engine.formats import detect, open_source
from apps.engine.sequences import serial_sequences
from apps.engine.trace import FinishReason, StepKind, StepStatus, Trace, UsageState
from tests.formats import transcript_samples as samples
from tests.formats.index import DATA, rows
from tests.formats.reading import as_json, counts_of, items_of, lines, traces_of
from tests.formats.test_fuzz import JSON, check_storable, places, replaced

CASES = [
    pytest.param(slug, value, id=f"{slug}-{number}")
    for slug, values in samples.SAMPLES.items()
    for number, value in enumerate(values)
]
IN_LINES = [
    pytest.param(*case.values, id=case.id)
    for case in CASES
    if isinstance(case.values[1], list)
    and case.values[0] in {"request-log", "autogen", "crewai", "langchain-messages"}
]


def calls(trace: Trace):
    return [step for step in trace.steps if step.kind is StepKind.MODEL_CALL]


def tools(trace: Trace):
    return [step for step in trace.steps if step.kind is StepKind.TOOL_CALL]


def outputs(trace: Trace):
    return [step.call.usage.output_total for step in calls(trace)]


def one(value) -> Trace:
    [trace] = traces_of(as_json(value))
    return trace


@pytest.mark.parametrize(("slug", "value"), CASES)
def test_each_format_is_told_from_all_others(slug, value):
    source = open_source(io.BytesIO(as_json(value)))
    assert detect(source).slug == slug


@pytest.mark.parametrize(("slug", "value"), CASES)
def test_it_reads_pretty_json_like_compact_json(slug, value):
    pretty = json.dumps(value, indent=2).encode()
    assert traces_of(pretty) == traces_of(as_json(value))


@pytest.mark.parametrize(("slug", "value"), IN_LINES)
def test_it_reads_json_lines_like_a_list(slug, value):
    assert traces_of(lines(*value)) == traces_of(as_json(value))


def test_a_request_log_joins_the_calls_and_results_of_a_session():
    trace = one(samples.REQUEST_LOG)
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
        for one in samples.REQUEST_LOG
    ]
    other = {"messages": [{"role": "user", "content": "Hi"}],
             "response": samples.completion("Hello", number=9)}  # fmt: skip
    found = traces_of(as_json([bare[0], other, bare[1]]))
    assert [len(calls(trace)) for trace in found] == [2, 1]


def test_earlier_answers_in_a_request_are_not_counted_as_calls():
    record = {
        "messages": [*samples.ASKED, samples.LOOKED, samples.FOUND],
        "response": samples.completion("It is in Graz."),
    }
    assert counts_of([one(record)])["model_calls"] == 1


def test_the_requests_of_a_batch_are_no_sequence():
    trace = one([{"custom_id": f"r{n}", "response": {"body": samples.completion("a", number=n, output=n)}}
                 for n in (90, 70, 50, 30, 20, 10)])  # fmt: skip
    assert [sequence.outputs for sequence in serial_sequences(trace)] == [
        (n,) for n in (90, 70, 50, 30, 20, 10)
    ]


def test_a_request_that_failed_is_a_failed_call_without_usage():
    trace = one(samples.BATCH)
    failed = calls(trace)[1]
    assert failed.status is StepStatus.ERROR
    assert (failed.error_type, failed.error_message) == ("rate_limit", "slow down")
    assert failed.call.usage.state is UsageState.MISSING


def test_anthropic_parts_become_calls_tools_and_reasoning():
    trace = one(samples.ANTHROPIC)
    first, last = calls(trace)
    assert first.body.reasoning == "Look it up."
    assert first.call.model == "claude-x"
    [tool] = tools(trace)
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "no such parcel")
    assert first.call.usage.state is last.call.usage.state is UsageState.MISSING
    assert (trace.session, trace.trial) == ("s-2", 3)


def test_anthropic_input_includes_what_the_cache_gave_and_took():
    trace = one([samples.anthropic_answer(1, 9), samples.anthropic_answer(2, 4)])
    usage = calls(trace)[0].call.usage
    assert (usage.input_total, usage.input_cached, usage.input_cache_write) == (
        32,
        20,
        7,
    )
    assert outputs(trace) == [9, 4]
    assert "which calls belong together" in trace.notes[0]


def test_response_items_between_results_are_one_call():
    trace = one(samples.RESPONSE_ITEMS)
    first, last = calls(trace)
    assert first.body.reasoning == "Look it up."
    assert last.body.output == "It is in Graz."
    [tool] = tools(trace)
    assert (tool.call.requested_by, tool.body.output) == (first.seq, "in Graz")


def test_two_function_calls_of_one_response_are_one_call():
    call = samples.RESPONSE_ITEMS[2]
    again = call | {"id": "fc_2", "call_id": "call_2"}
    trace = one([*samples.RESPONSE_ITEMS[:3], again, *samples.RESPONSE_ITEMS[3:]])
    assert [len(step.call.tool_call_ids) for step in calls(trace)] == [2, 0]


def test_responses_are_joined_by_the_one_before():
    found = traces_of(
        lines(
            samples.response(1, 9),
            samples.response(5, 7),
            samples.response(2, 4, "resp_1"),
            samples.response(3, 3, "resp_2"),
        )
    )
    assert [outputs(trace) for trace in found] == [[9, 4, 3], [7]]


def test_a_response_that_was_cut_says_length():
    cut = samples.response(1, 9) | {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    }
    assert calls(one([cut]))[0].call.finish is FinishReason.LENGTH


def test_of_a_stream_only_the_last_event_of_a_response_is_read():
    begun = samples.response(1, 0) | {"output": [], "status": "in_progress"}
    found = traces_of(
        lines(
            {"type": "response.created", "sequence_number": 0, "response": begun},
            {"type": "response.output_text.delta", "sequence_number": 1, "delta": "a"},
            {"type": "response.completed", "sequence_number": 2,
             "response": samples.response(1, 9)},
        )
    )  # fmt: skip
    assert [outputs(trace) for trace in found] == [[9]]
    assert any("Stream events" in note for note in found[0].notes)


def test_langchain_messages_keep_usage_agents_and_failures():
    trace = one(samples.LC_MESSAGES)
    assert [i.agent for i in trace.invocations] == ["clerk"]
    usage = calls(trace)[0].call.usage
    assert (usage.input_total, usage.input_cached, usage.output_reasoning) == (20, 8, 3)
    [tool] = tools(trace)
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "no such parcel")


def test_a_thread_is_read_once_though_its_history_repeats_it():
    trace = one(samples.LC_HISTORY)
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

    plain = one(samples.LC_MESSAGES)
    assert one([dumped(message) for message in samples.LC_MESSAGES]) == plain
    as_dict = [{"type": m["type"], "data": m} for m in samples.LC_MESSAGES]
    assert one(as_dict) == plain


def test_a_call_that_langchain_could_not_parse_is_a_failed_tool_call():
    broken = samples.lc_ai(1, 12, invalid_tool_calls=[
        {"name": "find_parcel", "args": "{id", "id": "call_9", "error": "bad JSON"}])  # fmt: skip
    [tool] = tools(one([samples.LC_MESSAGES[0], broken]))
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "bad JSON")


def test_pydantic_ai_zeros_are_suspects_and_a_retry_is_a_failed_tool_call():
    trace = one(samples.PYDANTIC)
    states = [step.call.usage.state for step in calls(trace)]
    assert states == [UsageState.REPORTED, UsageState.ZERO_SUSPECT]
    [tool] = tools(trace)
    assert (tool.status, tool.error_type) == (StepStatus.ERROR, "retry-prompt")
    assert (trace.session, trace.invocations[0].native_id) == ("c-1", "r-1")


def test_a_second_run_in_a_history_is_an_invocation_of_its_own():
    again = [message | {"run_id": "r-2"} for message in samples.PYDANTIC]
    trace = one([*samples.PYDANTIC, *again])
    assert [i.native_id for i in trace.invocations] == ["r-1", "r-2"]
    assert len(serial_sequences(trace)) == 2


def test_vercel_steps_are_calls_and_their_errors_are_failed_tools():
    trace = one(samples.VERCEL)
    assert outputs(trace) == [12, 5]
    assert trace.invocations[0].agent == "clerk"
    assert (trace.session, trace.trial, trace.notes) == ("s-3", 1, ())
    [tool] = tools(trace)
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "no such parcel")


def test_a_total_that_is_not_the_sum_is_shown_and_never_added():
    wrong = samples.VERCEL | {"totalUsage": {"outputTokens": 34}}
    trace = one(wrong)
    assert outputs(trace) == [12, 5]
    assert trace.notes == (
        "The file's own total of 34 output tokens is not the sum of its steps, which "
        "is 17.",
    )


def test_a_ui_message_holds_a_call_for_each_step_start():
    trace = one(samples.VERCEL_UI)
    first, last = calls(trace)
    assert (first.body.reasoning, last.body.output) == ("Look it up.", "It is in Graz.")
    assert tools(trace)[0].body.output == "in Graz"


def test_adk_thoughts_stay_beside_the_output_and_partial_events_are_left_out():
    trace = one(samples.ADK_SESSION)
    first, last = calls(trace)
    usage = first.call.usage
    assert (usage.output_total, usage.output_reasoning, usage.total) == (12, 30, 62)
    assert last.call.usage.state is UsageState.MISSING
    assert first.body.reasoning == "Look it up."
    assert tools(trace)[0].error_message == "no such parcel"
    assert [i.agent for i in trace.invocations] == ["clerk"]


def test_an_eval_set_says_that_nothing_was_run():
    trace = one(samples.ADK_EVALSET)
    assert (trace.task, len(calls(trace)), len(tools(trace))) == ("case-1", 1, 1)
    assert "nothing in it was run" in trace.notes[0]


def test_swe_agent_steps_are_calls_and_actions_are_tools():
    trace = one(samples.SWE_AGENT)
    assert [step.name for step in tools(trace)] == ["find_file", "python"]
    assert len(calls(trace)) == 3
    assert trace.invocations[0].agent == "main"
    assert trace.metadata["exit_status"] == "submitted"
    assert "submission" not in trace.metadata
    assert {step.call.usage.state for step in calls(trace)} == {UsageState.MISSING}


def test_a_total_alone_is_an_aggregate_and_no_count_of_a_call():
    stats = {"tokens_sent": 900, "tokens_received": 70, "api_calls": 4}
    trace = one(samples.SWE_AGENT | {"info": {"model_stats": stats}})
    usages = {step.call.usage for step in calls(trace)}
    assert {usage.state for usage in usages} == {UsageState.AGGREGATE_ONLY}
    assert {usage.output_total for usage in usages} == {None}
    assert "900 tokens sent and 70 received in 4 calls" in trace.notes[0]
    assert "4 calls; the trajectory has 3" in trace.notes[1]


def test_an_answer_in_a_wrong_format_is_a_call_too():
    trace = one(samples.MINI_SWE)
    assert outputs(trace) == [12, 3, None]
    assert [step.name for step in tools(trace)] == ["bash"]
    assert "refused for their format" in trace.notes[0]


def test_actions_that_are_no_tool_calls_are_tools_too():
    message = {
        "role": "assistant",
        "content": "x",
        "extra": {"actions": [{"command": "ls"}]},
    }
    run = samples.MINI_SWE | {"messages": [*samples.MINI_SWE["messages"][:2], message]}
    assert [step.body.input for step in tools(one(run))] == ["ls"]


def test_autogen_zeros_are_suspects_and_thoughts_are_reasoning():
    trace = one(samples.AUTOGEN)
    first, last = calls(trace)
    assert first.body.reasoning == "Look it up."
    assert last.call.usage.state is UsageState.ZERO_SUSPECT
    assert tools(trace)[0].error_message == "no such parcel"
    assert trace.metadata == {"stop_reason": "done"}


def test_the_log_of_autogen_says_the_same_as_its_result():
    trace = one(samples.AUTOGEN_LOG)
    assert [i.agent for i in trace.invocations] == [None, "clerk"]
    assert outputs(trace) == [12, 5]
    assert tools(trace)[0].body.output == "in Graz"


def test_the_total_of_a_crew_is_compared_and_not_used():
    trace = one(samples.CREW)
    assert outputs(trace) == [12, 5]
    assert [i.agent for i in trace.invocations] == [None, "Clerk"]
    assert tools(trace)[0].error_message == "no such parcel"
    assert "total of 34 output tokens is not the sum of its calls, which is 17" in str(
        trace.notes
    )


@pytest.mark.parametrize("value", [samples.CREW_OUTPUT, samples.CREW_LOG])
def test_what_records_no_calls_says_so(value):
    trace = one(value)
    assert calls(trace) == []
    assert "no model calls" in trace.notes[0]


def test_two_kickoffs_in_one_log_are_two_traces():
    again = [event | {"event_id": f"x{event['event_id']}"} for event in samples.CREW]
    assert len(traces_of(lines(*samples.CREW, *again))) == 2


def test_smolagents_errors_belong_to_tools_and_a_cap_is_no_failed_call():
    trace = one(samples.SMOL)
    assert outputs(trace) == [12, 5, 4]
    assert [step.status for step in tools(trace)] == [
        StepStatus.UNSET,
        StepStatus.ERROR,
    ]
    assert all(step.status is not StepStatus.ERROR for step in calls(trace))
    assert "maximum of steps" in trace.notes[0]


def test_labels_reach_no_step_and_speakers_are_joined_whatever_their_case():
    trace = one(samples.WHO_AND_WHEN)
    assert [i.agent for i in trace.invocations] == [None, "Orchestrator", "WebSurfer"]
    assert trace.labels["mistake_agent"] == "WebSurfer"
    assert trace.task == "q-1"
    assert "wrong shop" not in repr(trace.steps)
    assert "Graz" not in repr((trace.steps, trace.metadata))


def test_long_transcripts_are_recognised_though_their_labels_stand_at_the_end():
    long = [{"role": "Orchestrator (thought)", "content": "x" * 4000}] * 40
    value = {
        "history": [samples.WHO_AND_WHEN["history"][0], *long],
        "mistake_agent": "a",
    }
    assert len(calls(one(value))) == 40


FOLDERS = (
    "anthropic_messages", "openai_responses", "openai_batch_output", "google_adk",
    "openai_request_response_log", "litellm_completion_log", "langgraph_state",
    "openai_chat_completion_response", "pydantic_ai_messages", "vercel_ai_sdk",
    "swe_agent_traj", "mini_swe_agent_traj", "autogen", "crewai_events",
    "smolagents_memory", "label_who_and_when", "label_agentrx",
)  # fmt: skip
SAME_RUN = (
    "The same run as task_result.json, which the index counts: 18 calls, 5 tools."
)
DIFFERENT = {
    "swe_agent_traj/test__gpt4__swe-bench-dev-easy_first_only__default__t-0.00__p-0.95__"
    "c-3.00__install-1__pydicom__pydicom-1458.traj": (
        {"usage_missing": 0},
        "Usage is there as a total of the run (1,369 tokens received): the calls are "
        "aggregate_only, which the index has no column for.",
    ),
    "autogen/tool_error.event_log.jsonl": (
        {"tool_calls": 5},
        f"The responses ask for 5 tools and later requests hold the results. {SAME_RUN}",
    ),
    "autogen/tool_error.team_state.json": (
        {"model_calls": 18, "tool_calls": 5, "usage_known": 18, "errors": 5},
        f"The saved manager holds the whole thread with usage. {SAME_RUN}",
    ),
}


@pytest.mark.parametrize("row", rows(*FOLDERS))
def test_it_finds_the_counts_of_the_index(row):
    if row["n_traces"] == "0":
        with pytest.raises(UnreadableTrace):
            traces_of((DATA / row["path"]).read_bytes())
        return
    traces = traces_of((DATA / row["path"]).read_bytes())
    found = counts_of(traces)
    # The index counts a failed tool of these formats once.
    failed = [step for trace in traces for step in trace.steps]
    found["errors"] = sum(step.status is StepStatus.ERROR for step in failed)
    expected = {key: int(row[key]) for key in found}
    assert found == expected | DIFFERENT.get(row["path"], ({}, ""))[0]


BILLING = (112, 100, 86, 78, 70, 43)


@pytest.mark.parametrize(
    ("path", "agent"),
    [
        ("langgraph_state/normal_3runs.dumpd.json", "billing_agent"),
        ("langgraph_state/normal_3runs.messages_to_dict.json", "billing_agent"),
        ("langgraph_state/normal_3runs.model_dump.json", "billing_agent"),
        ("langgraph_state/normal_3runs.state_history.json", "billing_agent"),
        ("pydantic_ai_messages/chat_v2.json", None),
        ("crewai_events/normal.event_bus.jsonl", "Billing Agent"),
        ("anthropic_messages/max_tokens.responses.jsonl", None),
    ],
)
def test_it_finds_the_billing_run_in_every_encoding(path, agent, shared_data):
    [trace] = traces_of((shared_data / path).read_bytes())
    found = [(s.agent, s.outputs) for s in serial_sequences(trace)]
    assert (agent, BILLING) in found


QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def read_or_refused(data: bytes, slug: str):
    """What is read of `data`; nothing when it is refused, which takes a sentence."""
    refusal = "."
    try:
        return items_of(data, slug)
    except UnreadableTrace as raised:
        refusal = str(raised)
        return []
    finally:
        assert refusal.endswith(".")


@pytest.mark.parametrize(("slug", "value"), CASES)
@QUICK
@given(data=st.data(), new=JSON)
def test_any_value_of_a_file_may_be_anything(slug, value, data, new):
    path = data.draw(st.sampled_from(list(places(value))))
    changed = as_json(replaced(value, path, new))
    for item in read_or_refused(changed, slug):
        if isinstance(item, Trace):
            check_storable(item)


@pytest.mark.parametrize(("slug", "value"), CASES)
@QUICK
@given(data=st.data())
def test_a_file_that_was_cut_off_invents_nothing(slug, value, data):
    whole = as_json(value)
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    items = read_or_refused(cut, slug)
    found = [item for item in items if isinstance(item, Trace)]
    everything = counts_of(traces_of(whole, slug))
    assert counts_of(found)["model_calls"] <= everything["model_calls"]
    assert counts_of(found)["tool_calls"] <= everything["tool_calls"]
