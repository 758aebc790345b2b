"""Real files and traps: each reader finds what the index says is there."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from apps.engine.format import UnreadableTrace
from apps.engine.sequences import serial_sequences
from apps.engine.trace import OutcomeKind, StepKind, Trace, UsageState
from tests.formats.reading import counts_of, traces_of

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
FOLDERS = {
    "otlp_json",
    "otlp_protobuf",
    "openai_chat_messages",
    "tau_bench_results",
    "invariant_trace_jsonl",
    "vs_copilot_otel_jsonl",
    "traps",
}
# Read and explained in the tests of their own formats.
ELSEWHERE = {
    "traps/blank_lines.jsonl",
    "traps/crlf.jsonl",
    "traps/csv_formula.csv",
    "traps/latin1_bytes.jsonl",
    "traps/mixed.zip",
    "traps/truncated_last_line.jsonl",
}
WITHOUT_TRACES = {"label_codetracebench", "harbor_trials_kimi"}
COUNTED = (
    "n_traces",
    "model_calls",
    "tool_calls",
    "usage_known",
    "usage_missing",
    "usage_zero",
    "errors",
)


def index() -> list[dict[str, str]]:
    if not DATA.is_dir():
        return []
    with (DATA / "INDEX.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [row for row in rows if row["path"].split("/")[0] in FOLDERS]


def of(*, traces: bool) -> list[dict[str, str]]:
    return [
        pytest.param(row, id=row["path"])
        for row in index()
        if (row["n_traces"] != "0") is traces and row["path"] not in ELSEWHERE
    ] or [
        pytest.param({}, marks=pytest.mark.skip("The shared trace files are absent."))
    ]


def read(path: Path) -> list[Trace]:
    return traces_of(path.read_bytes())


@pytest.mark.parametrize("row", of(traces=True))
def test_it_finds_the_counts_of_the_index(row):
    found = counts_of(read(DATA / row["path"]))
    assert found == {key: int(row[key]) for key in COUNTED}


@pytest.mark.parametrize("row", of(traces=False))
def test_it_says_in_a_sentence_why_a_file_holds_no_trace(row):
    with pytest.raises(UnreadableTrace) as refusal:
        read(DATA / row["path"])
    assert str(refusal.value)[-1] == "."
    assert len(str(refusal.value)) > 20


def test_it_reads_the_two_airline_facts_that_everything_rests_on(shared_data):
    traces = read(shared_data / "tau_bench_results/gpt-4o-airline.json")
    kinds = [trace.outcome.kind for trace in traces]
    assert (kinds.count(OutcomeKind.PASS), kinds.count(OutcomeKind.FAIL)) == (84, 116)
    trials: dict[str, set[int]] = {}
    for trace in traces:
        trials.setdefault(trace.task, set()).add(trace.trial)
    assert len(trials) == 50
    assert all(found == {0, 1, 2, 3} for found in trials.values())


def test_it_keeps_the_expected_actions_of_a_task_out_of_the_steps(shared_data):
    trace = read(shared_data / "tau_bench_results/gpt-4o-airline.json")[0]
    assert trace.labels["task"]["actions"]
    secret = trace.labels["task"]["instruction"]
    assert all(secret not in str(step.body) for step in trace.steps)
    assert secret not in str(trace.metadata)


def test_it_joins_every_tool_result_to_the_call_that_asked_for_it(shared_data):
    for trace in read(shared_data / "tau_bench_results/gpt-4o-airline.json"):
        for step in trace.steps:
            if step.kind is StepKind.TOOL_CALL:
                asking = trace.steps[step.call.requested_by]
                assert step.call.call_id in asking.call.tool_call_ids
                assert step.body.output is not None


RUNS = (
    "openinference_openai_agents__chat_streamed",
    "openinference_openai_agents__responses_flaky_retries",
    "openinference_smolagents__no_usage",
    "traceloop__normal_3runs",
    "traceloop__streamed",
    "traceloop__tool_error",
    "traceloop_old033__no_usage",
    "traceloop_old033__normal_3runs",
)


@pytest.mark.parametrize("run", RUNS)
def test_it_reads_the_same_run_alike_in_all_three_encodings(run, shared_data):
    document = read(shared_data / f"otlp_json/{run}.otlp.json")
    assert read(shared_data / f"otlp_protobuf/{run}.otlp.pb") == document
    in_lines = read(shared_data / f"otlp_json/{run}.collector.jsonl")
    assert _by_id(in_lines) == _by_id(document)


def _by_id(traces):
    return sorted(traces, key=lambda trace: trace.native_id)


WHOLE = (112, 100, 86, 78, 70, 43)


@pytest.mark.parametrize(
    ("path", "sequences"),
    [
        ("otlp_json/openinference_openai_agents__chat_streamed.otlp.json",
         [("Triage Agent", WHOLE[:1]), ("Billing Agent", WHOLE[1:])]),
        ("otlp_json/openinference_openai_agents__responses_flaky_retries.otlp.json",
         [("Triage Agent", WHOLE[:1]), ("Billing Agent", WHOLE[1:])]),
        ("otlp_json/traceloop__normal_3runs.otlp.json", [("billing_agent", WHOLE)] * 3),
        ("otlp_json/traceloop_old033__normal_3runs.otlp.json",
         [("billing_agent", WHOLE)] * 3),
        ("otlp_json/vercel_ai__responses.otlp.jsonl", [("billing-agent", WHOLE)]),
        ("otlp_json/vercel_ai__stream.otlp.jsonl", [("billing-agent", WHOLE)]),
        ("traps/orphan_parents.otlp.json", [("billing_agent", WHOLE)] * 3),
        ("traps/dup_and_reversed.otlp.json", [("billing_agent", WHOLE)] * 3),
        ("traps/timestamps_in_ms.otlp.json", [("billing_agent", WHOLE)] * 3),
        ("traps/base64_ids.otlp.json", [("billing_agent", WHOLE)] * 3),
    ],
)  # fmt: skip
def test_it_gives_each_call_to_the_agent_that_made_it(path, sequences, shared_data):
    found = [
        (sequence.agent, sequence.outputs)
        for trace in read(shared_data / path)
        for sequence in serial_sequences(trace)
    ]
    assert found == sequences


def test_it_reads_a_sentinel_of_minus_one_as_not_recorded(shared_data):
    traces = read(shared_data / "traps/usage_minus_one.otlp.json")
    usages = [s.call.usage for t in traces for s in t.steps if s.kind == "model_call"]
    assert {usage.output_total for usage in usages} == {None}
    assert {usage.state for usage in usages} == {UsageState.PARTIAL}
    assert all(usage.input_total > 0 for usage in usages)
    assert "no counts" in traces[0].notes[0]


def test_it_counts_a_handoff_as_a_handoff_and_names_its_agents(shared_data):
    [trace] = read(
        shared_data / "otlp_json/openinference_openai_agents__chat_streamed.otlp.json"
    )
    handoffs = [step for step in trace.steps if step.kind is StepKind.HANDOFF]
    assert [step.name for step in handoffs] == ["handoff to Billing Agent"]
    names = {one.agent: one.via for one in trace.invocations}
    assert names["Billing Agent"] == "handoff"


def test_every_folder_of_the_index_is_compared_with_it_somewhere(shared_data):
    told = "".join(
        path.read_text(encoding="utf-8")
        for path in Path(__file__).parent.glob("test_*.py")
    )
    folders = {
        path.name for path in shared_data.iterdir() if path.is_dir()
    } - WITHOUT_TRACES
    assert {folder for folder in folders if f'"{folder}' not in told} == set()
    assert {path for path in ELSEWHERE if told.count(f'"{path}"') < 2} == set()
