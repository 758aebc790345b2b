"""All readers of transcripts and provider APIs: detection, the index, bad input."""

from __future__ import annotations

import io
import json

import pytest

from apps.engine.format import UnreadableTrace
from apps.engine.formats import detect, open_source
from apps.engine.sequences import serial_sequences
from apps.engine.trace import StepStatus
from tests.each import for_each
from tests.formats import transcript_samples as samples
from tests.formats.index import DATA, rows
from tests.formats.reading import as_json, counts_of, lines, traces_of

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


def test_every_reader_of_this_family_has_files_of_its_own():
    assert set(samples.SAMPLES) == {
        "anthropic-messages", "autogen", "crewai", "google-adk", "langchain-messages",
        "mini-swe-agent", "openai-responses", "pydantic-ai-messages", "request-log",
        "smolagents-memory", "swe-agent", "vercel-ai", "who-and-when",
    }  # fmt: skip


@for_each(("slug", "value"), CASES)
def test_each_format_is_told_from_all_others(slug, value):
    source = open_source(io.BytesIO(as_json(value)))
    assert detect(source).slug == slug


@for_each(("slug", "value"), CASES)
def test_it_reads_pretty_json_like_compact_json(slug, value):
    pretty = json.dumps(value, indent=2).encode()
    assert traces_of(pretty) == traces_of(as_json(value))


@for_each(("slug", "value"), IN_LINES)
def test_it_reads_json_lines_like_a_list(slug, value):
    assert traces_of(lines(*value)) == traces_of(as_json(value))


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
        {"tool_calls": 5, "errors": 5},
        "The responses ask for 5 tools, later requests hold the results, and the messages "
        f"say that they failed. {SAME_RUN}",
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
