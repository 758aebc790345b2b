"""One run in several encodings: the same counts and the same answers of every check.

Where a file cannot say what another one says, the test says which and why.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from apps.engine.check import Answer, Screening
from apps.engine.checks import CHECKS
from apps.engine.trace import ModelCall, Step, StepKind, StepStatus, Trace, UsageState
from tests.formats.index import DATA, rows
from tests.formats.reading import counts_of, traces_of

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="The shared trace files are absent."
)


def read(path: str) -> list[Trace]:
    """The traces of a file, by their ids: two files may list runs in any order."""
    found = traces_of((DATA / path).read_bytes())
    return sorted(found, key=lambda trace: trace.native_id or "")


def screened(trace: Trace, *, without: tuple[str, ...] = ()) -> list[Screening]:
    return [
        answer
        for check in CHECKS
        if check.slug not in without
        for answer in check.run(trace)
    ]


def said(trace: Trace, *, without: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    """What the checks said, without the numbers of the steps they rest on.

    Files of one run may hold or lack steps that are no calls. `without` names checks
    that read what only one of the files holds.
    """
    return [
        (answer.answer, answer.reason_code, answer.headline, answer.evidence.agent,
         answer.evidence.length, answer.evidence.usage_known,
         answer.evidence.series and answer.evidence.series.values)
        for answer in screened(trace, without=without)
    ]  # fmt: skip


def of_kind(trace: Trace, kind: StepKind) -> list[Step]:
    return [step for step in trace.steps if step.kind is kind]


def calls_of(trace: Trace) -> list[ModelCall]:
    return [step.call for step in of_kind(trace, StepKind.MODEL_CALL)]


def tools_of(trace: Trace) -> list[tuple[str, str | None, StepStatus]]:
    tools = of_kind(trace, StepKind.TOOL_CALL)
    return [(step.call.name, step.call.call_id, step.status) for step in tools]


def tools_that_failed(trace: Trace) -> list[tuple[str, str | None, bool]]:
    return [(*tool[:2], tool[2] is StepStatus.ERROR) for tool in tools_of(trace)]


def decay_of(trace: Trace) -> list[Screening]:
    return list(CHECKS[0].run(trace))


def spellings(run: str) -> tuple[str, ...]:
    """The files of one run of an OpenTelemetry SDK."""
    every = (
        f"otlp_json/{run}.otlp.json",
        f"otlp_json/{run}.collector.jsonl",
        f"otlp_protobuf/{run}.otlp.pb",
        f"otel_console_json/{run}.console.json",
    )
    return tuple(path for path in every if (DATA / path).exists())


OTEL_RUNS = {
    "openinference_openai_agents__chat_streamed": 3,
    "openinference_openai_agents__responses_flaky_retries": 3,
    "openinference_smolagents__no_usage": 4,
    "traceloop__normal_3runs": 4,
    "traceloop__streamed": 4,
    "traceloop__tool_error": 3,
    "traceloop_old033__no_usage": 4,
    "traceloop_old033__normal_3runs": 3,
}
AGENTS = "openai_agents_sdk_trace/responses_handoff_3runs"
LANGGRAPH = "langgraph_state/normal_3runs"
MLFLOW = "mlflow_trace_json/normal_3runs"
LANGFUSE = "langfuse_batch_export/observations_public"
AUTOGEN = "autogen/tool_error"
MESSAGES = "openai_chat_messages/no_usage.messages"
SAME_RUN = {
    "OpenAI Agents": (f"{AGENTS}.jsonl", f"{AGENTS}.backend_payload.json"),
    "OpenAI Agents without usage": (
        "openai_agents_sdk_trace/chat_no_usage.jsonl",
        "openai_agents_sdk_trace/chat_no_usage.backend_payload.json",
    ),
    "LangGraph state": tuple(
        f"{LANGGRAPH}.{spelling}.json"
        for spelling in ("dumpd", "messages_to_dict", "model_dump", "state_history")
    ),
    "MLflow": (f"{MLFLOW}.search_traces.csv", f"{MLFLOW}.search_traces.json"),
    "Langfuse": (f"{LANGFUSE}.json", f"{LANGFUSE}.jsonl", f"{LANGFUSE}.csv"),
    "AutoGen": (f"{AUTOGEN}.task_result.json", f"{AUTOGEN}.task_results.jsonl",
                f"{AUTOGEN}.team_state.json"),
    "chat messages": (f"{MESSAGES}.json", f"{MESSAGES}.jsonl"),
}  # fmt: skip


def same(paths: tuple[str, ...]) -> list[Trace]:
    """Check that all files tell the same; the traces of the first."""
    first = read(paths[0])
    for path in paths[1:]:
        other = read(path)
        assert counts_of(other) == counts_of(first), path
        assert [screened(one) for one in other] == [screened(one) for one in first]
    return first


@pytest.mark.parametrize("run", OTEL_RUNS)
def test_every_encoding_of_opentelemetry_gives_the_same_counts_and_answers(run):
    paths = spellings(run)
    assert len(paths) == OTEL_RUNS[run]
    same(paths)


@pytest.mark.parametrize("name", SAME_RUN)
def test_every_export_of_a_run_gives_the_same_counts_and_answers(name):
    same(SAME_RUN[name])


def test_one_mlflow_trace_is_the_same_alone_and_among_others():
    [alone] = read(f"{MLFLOW}.json")
    [among] = [
        trace
        for trace in read(f"{MLFLOW}.search_traces.json")
        if trace.native_id == alone.native_id
    ]
    assert screened(alone) == screened(among)
    assert counts_of([alone]) == counts_of([among])


def test_autogens_event_log_tells_the_same_calls_and_failed_tools():
    """Its calls come from one kind of line and the failures from another."""
    [result] = read(f"{AUTOGEN}.task_result.json")
    [log] = read(f"{AUTOGEN}.event_log.jsonl")
    # The result has neither finish reasons nor all that was heard; times differ.
    lacks = ("truncation", "unsupported-claim", "latency-shift")
    assert said(log, without=lacks) == said(result, without=lacks)
    assert counts_of([log]) == counts_of([result])


def test_a_request_log_tells_the_same_run_as_its_last_messages():
    [messages] = read(f"{MESSAGES}.json")
    [log] = read("openai_request_response_log/no_usage.jsonl")
    assert counts_of([log]) == counts_of([messages])
    # Messages alone do not say why a model stopped, which tools it had, or when.
    lacks = ("truncation", "tool-not-offered", "unsupported-claim", "latency-shift")
    assert said(log, without=lacks) == said(messages, without=lacks)
    assert tools_of(log) == tools_of(messages)


def test_the_outputs_of_a_batch_are_the_same_calls_in_no_order():
    """Nothing proves that one request of a batch came after another."""
    [messages] = read(f"{MESSAGES}.json")
    [batch] = read("openai_batch_output/no_usage.batch_output.jsonl")
    assert counts_of([batch]) == counts_of([messages])
    answers = decay_of(batch)
    assert [one.evidence.length for one in answers] == [1] * 6


# Transcripts hold no usage; the responses to the same requests do.

WITHOUT_USAGE = {
    "anthropic_messages/max_tokens.responses.jsonl": (
        "anthropic_messages/max_tokens.0.messages.json",
    ),
    "openai_responses/normal.responses.jsonl": (
        "openai_responses/normal.0.input_items.json",
        "openai_responses/normal.1.input_items.json",
    ),
}


@pytest.mark.parametrize("path", WITHOUT_USAGE)
def test_a_transcript_tells_the_calls_of_its_responses_without_their_usage(path):
    [responses] = read(path)
    transcripts = [trace for one in WITHOUT_USAGE[path] for trace in read(one)]
    total = counts_of(transcripts)
    known = counts_of([responses])
    for key in ("model_calls", "tool_calls", "errors"):
        assert total[key] == known[key]
    assert total["usage_missing"] == known["usage_known"] == known["model_calls"]
    names = [tool[:2] for trace in transcripts for tool in tools_of(trace)]
    assert names == [tool[:2] for tool in tools_of(responses)]


# Claude Code's stream, and the trajectory that Harbor made of it.


def pairs() -> list[Any]:
    return [
        row
        for row in rows("atif_harbor")
        if not row.values[0] or "/kimi__" in row.values[0]["path"]
    ]


@pytest.mark.parametrize("row", pairs())
def test_harbors_trajectory_tells_the_same_calls_as_claudes_stream(row):
    """But for one: a last, empty answer, of which the stream has only the totals."""
    name = row["path"].removeprefix("atif_harbor/kimi__").removesuffix(".json")
    [trajectory] = read(row["path"])
    [stream] = read(f"claude_code_stream_json/{name}.jsonl")
    # Harbor lists a tool call where its result stands, and one without result last.
    assert Counter(tools_that_failed(trajectory)) == Counter(tools_that_failed(stream))
    ours = [call.usage.output_total for call in calls_of(trajectory)]
    theirs = [call.usage.output_total for call in calls_of(stream)]
    extra = calls_of(trajectory)[len(theirs) :]
    assert ours[: len(theirs)] == theirs
    assert [call.usage.output_total for call in extra] == [0] * len(extra)
    assert sum(call.usage.input_total for call in extra) == input_without_a_call(stream)
    if extra:
        assert said(trajectory)[0][1] == "zero_outputs"
        assert said(stream)[0][1] == "not_falling"
    else:
        assert about_usage(trajectory) == about_usage(stream)
    if [tool[1] for tool in tools_of(trajectory)] == [
        tool[1] for tool in tools_of(stream)
    ]:
        assert about_tools(trajectory) == about_tools(stream)


def about_usage(trace: Trace) -> list[tuple[Any, ...]]:
    """What is said of lengths; the two files name the one agent differently."""
    answers = said(trace, without=all_but("output-decay", "missing-usage"))
    return [one[:3] + one[4:] for one in answers]


def about_tools(trace: Trace) -> list[tuple[Any, ...]]:
    """What is said of the order of tools, which a call without result changes."""
    tools = ("tool-drift", "error-streak", "single-tool")
    answers = said(trace, without=all_but(*tools))
    return [one[:3] + one[4:] for one in answers]


def all_but(*slugs: str) -> tuple[str, ...]:
    return tuple(check.slug for check in CHECKS if check.slug not in slugs)


def input_without_a_call(stream: Trace) -> int:
    """Input tokens in the totals of the run that no call of the file has."""
    for note in stream.notes:
        totals = re.search(r"counts (\d+) input.* add up to (\d+)", note)
        if totals:
            return int(totals[1]) - int(totals[2])
    return 0


# Runs whose truth is known.

BILLING = (112, 100, 86, 78, 70, 43)
DECAYS = {
    "otlp_json/traceloop__normal_3runs.otlp.json": ("billing_agent", BILLING, 3),
    "otlp_json/traceloop_old033__normal_3runs.otlp.json": ("billing_agent", BILLING, 3),
    "otlp_json/openinference_openai_agents__chat_streamed.otlp.json":
        ("Billing Agent", BILLING[1:], 1),
    "otel_console_json/openinference_openai_agents__chat_handoff.console.json":
        ("Billing Agent", BILLING[1:], 1),
    "otlp_json/vercel_ai__responses.otlp.jsonl": ("billing-agent", BILLING, 1),
    f"{AGENTS}.jsonl": ("Billing Agent", BILLING[1:], 3),
    f"{LANGGRAPH}.model_dump.json": ("billing_agent", BILLING, 1),
    f"{MLFLOW}.search_traces.json": ("billing_agent", BILLING, 3),
    "crewai_events/normal.event_bus.jsonl": ("Billing Agent", BILLING, 1),
    "pydantic_ai_messages/chat_v2.json": (None, BILLING, 1),
}  # fmt: skip


@pytest.mark.parametrize("path", DECAYS)
def test_the_decay_of_the_billing_agent_is_a_signal_and_no_other_call_is(path):
    agent, outputs, runs = DECAYS[path]
    signals = [
        (answer.evidence.agent, answer.evidence.series.values, answer.reason_code)
        for trace in read(path)
        for answer in decay_of(trace)
        if answer.answer is Answer.SIGNAL
    ]
    assert signals == [(agent, outputs, "decay")] * runs


# The SDKs of these write zeros where the provider sent nothing.
ZEROS = {
    "openai_agents_sdk_trace/chat_no_usage.jsonl",
    "openai_agents_sdk_trace/chat_no_usage.backend_payload.json",
}
FOLDERS = [path.name for path in DATA.iterdir()] if DATA.is_dir() else []
SILENT = [
    row.values[0]["path"]
    for row in rows(*FOLDERS)
    if "no_usage" in row.values[0].get("path", "")
]
# Its supervisor is not streamed, and so its one call has usage.
PARTLY = "langsmith_runs_jsonl/streamed_no_usage.jsonl"


@pytest.mark.parametrize("path", SILENT)
def test_a_run_without_usage_gives_no_signal_and_says_why(path):
    for trace in read(path):
        calls = calls_of(trace)
        if path == PARTLY:
            calls = [call for call in calls if call.usage.output_total != 103]
            assert len(calls) == len(calls_of(trace)) - 1
        expected = UsageState.ZERO_SUSPECT if path in ZEROS else UsageState.MISSING
        assert {call.usage.state for call in calls} == {expected}
        answers = decay_of(trace)
        assert {answer.answer for answer in answers} == {Answer.NOT_APPLICABLE}
        longest = max(answers, key=lambda answer: answer.evidence.length or 0)
        if (longest.evidence.length or 0) >= 5:
            assert longest.reason_code == "usage_missing"
            assert "missing on" in longest.headline
