"""Langfuse: downloads, API pages and batch exports; buckets of scores, graphs, older spans."""

from __future__ import annotations

import json

import msgspec
import pytest

from apps.engine.trace import (
    FinishReason,
    OutcomeKind,
    StepKind,
    StepStatus,
    Trace,
)
from tests.formats.index import DATA, expected, rows
from tests.formats.langfuse_files import (
    RUN,
    SLUG,
    as_csv,
    attributes,
    billing,
    call_of,
    described,
    download,
    generation,
    observed,
    only,
    sequences,
)
from tests.formats.reading import (
    as_json,
    counts_of,
    items_of,
    lines,
    messages,
    refusal_of,
    rejected_of,
    slug_of,
    traces_of,
)


def test_it_gives_each_generation_to_the_nearest_agent():
    found = only(*billing())
    assert sequences(found) == [("Triage", (112,)), ("Billing", (100, 86, 43))]
    assert (found.name, found.session, found.task, found.trial, found.native_id) == (
        "Support", "chat-1", "refund", 3, RUN)  # fmt: skip


def as_api(found):
    plain = {key: item for key, item in described().items() if key != "bookmarked"}
    return plain | {"observations": found, "htmlPath": "/x"}


@pytest.mark.parametrize(
    "data",
    [
        as_json(download(billing())),
        as_json(as_api(billing())),
        as_json({"data": [as_api(billing())], "meta": {"page": 1}}),
        as_json([as_api(billing())]),
        lines(download(billing())),
        as_json(billing()),
        lines(*reversed(billing())),
        as_json({"data": billing(), "meta": {"page": 1}}),
        as_csv(billing()),
    ],
)
def test_it_reads_the_same_run_alike_in_every_form(data):
    assert slug_of(data) == SLUG
    [found] = traces_of(data)
    assert found.steps == only(*billing()).steps
    assert found.invocations == only(*billing()).invocations


def test_it_reads_the_names_of_the_database_as_it_reads_those_of_the_pages():
    row = {"id": "o1", "trace_id": RUN, "type": "GENERATION", "name": "n1",
           "parent_observation_id": None, "start_time": "2025-01-01 00:00:00.000",
           "end_time": "2025-01-01 00:00:01.000", "provided_model_name": "m",
           "usage_details": {"input": 10, "output": 5, "total": 15}}  # fmt: skip
    [found] = traces_of(lines(row))
    [step] = found.steps
    told = only(generation(1, None, 5)).steps[0].call
    assert step.call.model == told.model
    assert step.call.usage == msgspec.structs.replace(
        told.usage, source="usage_details.output"
    )
    assert step.end_ns - step.start_ns == 10**9


def test_it_takes_input_and_output_from_the_list_beside_the_trace():
    told = generation(1, None, 5) | {
        "input": json.dumps(messages("a")),
        "output": '"b"',
    }
    [step] = only(told).steps
    assert step.body.input == messages("a")
    assert step.body.output == "b"


def test_it_joins_both_lists_even_when_one_lacks_a_row():
    whole = billing()
    made = {"trace": described(observations=whole[:4]), "observations": whole[2:]}
    [found] = traces_of(as_json(made))
    assert found.steps == only(*whole).steps


def test_it_reads_all_types_of_observations():
    kinds = {
        "GENERATION": StepKind.MODEL_CALL, "TOOL": StepKind.TOOL_CALL,
        "AGENT": StepKind.AGENT, "RETRIEVER": StepKind.RETRIEVAL,
        "GUARDRAIL": StepKind.GUARDRAIL, "EMBEDDING": StepKind.OTHER,
        "EVALUATOR": StepKind.OTHER, "CHAIN": StepKind.OTHER, "SPAN": StepKind.OTHER,
        "EVENT": StepKind.OTHER,
    }  # fmt: skip
    found = only(*(observed(n, None, kind) for n, kind in enumerate(kinds)))
    assert {step.native_kind: step.kind for step in found.steps} == kinds


def test_it_takes_an_event_without_an_end_for_a_moment_and_not_for_unfinished():
    found = only(
        observed(1, None, "EVENT", endTime=None),
        observed(2, None, "SPAN", endTime=None),
    )
    statuses = {step.native_kind: step.status for step in found.steps}
    assert statuses == {"EVENT": StepStatus.UNSET, "SPAN": StepStatus.UNFINISHED}


def test_it_reads_what_attributes_say_of_an_older_span():
    tool = attributes(**{"openinference.span.kind": "TOOL", "tool.name": "search"})
    agent = attributes(**{"openinference.span.kind": "AGENT", "agent.name": "Helper"})
    found = only(
        observed(1, None, "SPAN", 0, 9, metadata=agent),
        generation(2, 1, 5, 1),
        observed(3, 1, "SPAN", 2, metadata=tool),
    )
    assert [step.kind for step in found.steps] == [
        StepKind.AGENT,
        StepKind.MODEL_CALL,
        StepKind.TOOL_CALL,
    ]
    assert found.steps[2].call.name == "search"
    assert sequences(found) == [("Helper", (5,))]


def test_it_reads_finish_and_tool_calls_from_attributes_and_from_the_answer():
    told = {"gen_ai.response.finish_reasons": ["length"], "gen_ai.usage.x": 1}
    call = call_of(metadata=json.dumps({"attributes": told}))
    assert call.finish is FinishReason.LENGTH
    answer = {"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "t"}}]}}]}  # fmt: skip
    call = call_of(output=json.dumps(json.dumps(answer)))
    assert call.finish is FinishReason.TOOL_CALLS
    assert call.tool_call_ids == ("c1",)
    asked = ['{"id": "c7", "arguments": "{}"}']
    assert call_of(toolCalls=asked).tool_call_ids == ("c7",)


def test_it_reads_an_error_with_its_message():
    [step] = only(
        observed(1, None, "TOOL", level="ERROR", statusMessage="timeout")
    ).steps
    assert (step.status, step.error_message) == (StepStatus.ERROR, "timeout")
    [step] = only(
        observed(1, None, "TOOL", level="WARNING", statusMessage="slow")
    ).steps
    assert step.status is StepStatus.UNSET


def score(name, value, **fields):
    return {
        "name": name,
        "value": value,
        "source": "EVAL",
        "observationId": None,
        **fields,
    }


def test_it_keeps_a_judges_marks_as_labels_and_never_as_the_outcome():
    found = only(generation(1, None, 5), scores=[score("correctness", 0, comment="no")])
    assert found.outcome.kind is OutcomeKind.UNKNOWN
    [kept] = found.labels["scores"]
    assert (kept["name"], kept["comment"]) == ("correctness", "no")
    assert "correctness" not in str(found.metadata)


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (score("success", 1, dataType="BOOLEAN"), OutcomeKind.PASS),
        (score("task-success", 0), OutcomeKind.FAIL),
        (score("verdict", 0, stringValue="passed"), OutcomeKind.PASS),
        (score("success", 0.5), OutcomeKind.UNKNOWN),
        (score("success", 1, observationId="o1"), OutcomeKind.UNKNOWN),
    ],
)
def test_it_takes_only_a_plain_verdict_on_the_whole_trace_for_the_outcome(told, kind):
    assert only(generation(1, None, 5), scores=[told]).outcome.kind is kind


def graph_run(number, parent, node, path, at, lasts=1, kind="SPAN", **fields):
    metadata = {"langgraph_node": node, "langgraph_checkpoint_ns": path}
    more = {"name": node, "metadata": metadata, **fields}
    return observed(number, parent, kind, at, lasts, **more)


def test_it_reads_the_agents_of_a_graph_from_its_metadata():
    found = [observed(1, None, "SPAN", 0, 50, name="LangGraph"),
             graph_run(2, 1, "supervisor", "supervisor:1", 1),
             graph_run(3, 2, "supervisor", "supervisor:1", 1.2, 0.5, "GENERATION",
                       usageDetails={"output": 103}),
             graph_run(4, 1, "billing", "billing:2", 3, 40),
             graph_run(5, 4, "billing", "billing:2", 3, 40)]  # fmt: skip
    for index, output in enumerate((100, 86, 43)):
        path, at = f"billing:2|agent:{index}", 4 + 4 * index
        found += [
            graph_run(10 + index, 5, "agent", path, at),
            graph_run(20 + index, 10 + index, "agent", path, at, 0.5, "GENERATION",
                      usageDetails={"output": output}),
            graph_run(30 + index, 5, "tools", f"billing:2|tools:{index}", at + 2),
            graph_run(40 + index, 30 + index, "tools", f"billing:2|tools:{index}", at + 2,
                      kind="TOOL"),
        ]  # fmt: skip
    made = only(*found)
    assert sequences(made) == [("supervisor", (103,)), ("billing", (100, 86, 43))]
    owners = {
        made.invocations[step.invocation].agent
        for step in made.steps
        if step.kind is StepKind.TOOL_CALL
    }
    assert owners == {"billing"}


def test_it_takes_a_function_with_several_calls_for_an_agent_and_says_so():
    found = only(
        observed(1, None, "SPAN", 0, 30),
        observed(2, 1, "SPAN", 0, 20, name="answer"),
        generation(3, 2, 9, 1),
        generation(4, 2, 8, 3),
        generation(5, 1, 7, 25),
    )
    assert sequences(found) == [(None, (7,)), ("answer", (9, 8))]
    assert any("No span is marked as an agent" in note for note in found.notes)


def test_it_keeps_a_trace_whose_observations_are_not_in_the_file():
    listed = described(observations=["o1", "o2"], scores=["s1"], input='{"a": 1}')
    [found] = traces_of(as_json({"data": [listed], "meta": {}}), SLUG)
    [step] = found.steps
    assert step.kind is StepKind.OTHER
    assert step.body.input == {"a": 1}
    assert "without its observations" in found.notes[0]
    row = described(input="hello", tags=["x"])
    [from_row] = traces_of(as_csv([row]))
    assert (from_row.name, from_row.session) == ("Support", "chat-1")


def test_it_recognises_a_download_whose_head_ends_inside_its_trace():
    long = [observed(number, None, "SPAN", name="x" * 500) for number in range(200)]
    data = as_json(download(long))
    assert slug_of(data) == SLUG
    [found] = traces_of(data)
    assert len(found.steps) == 200


def test_it_rejects_what_is_no_observation_and_keeps_the_rest():
    bad = [
        {"id": "x"},
        7,
        observed(9, None, "UNHEARD"),
        observed(9, None, "SPAN", id=None),
    ]
    items = items_of(as_json([*billing(), *bad]), SLUG)
    assert len(rejected_of(items)) == 4
    [found] = [one for one in items if isinstance(one, Trace)]
    assert found.steps == only(*billing()).steps
    inside = items_of(as_json(download(billing()) | {"observations": bad}), SLUG)
    assert "$.observations[0]" in rejected_of(inside)[0].place


@pytest.mark.parametrize(
    "value",
    [{"trace": {"id": "a"}, "spans": []}, {"observations": []}, [], [{}], {"data": []}],
)
def test_it_recognises_nothing_else_as_langfuse(value):
    assert slug_of(as_json(value)) != SLUG
    assert refusal_of(as_json(value), SLUG).endswith(".")


FOLDERS = (
    "langfuse_trace_ui_json",
    "langfuse_seed_trace_json",
    "langfuse_batch_export",
)


@pytest.mark.parametrize("row", rows(*FOLDERS))
def test_it_finds_the_counts_of_the_index(row):
    assert counts_of(traces_of((DATA / row["path"]).read_bytes())) == expected(row)


@pytest.mark.parametrize("row", rows("langfuse_chatml_normalised"))
def test_it_takes_no_normal_form_of_messages_for_a_trace(row):
    assert refusal_of((DATA / row["path"]).read_bytes()).endswith(".")


def test_it_reads_the_three_encodings_of_a_real_batch_export_alike(shared_data):
    stem = shared_data / "langfuse_batch_export/observations_public"
    read = [
        traces_of(stem.with_suffix(end).read_bytes())
        for end in (".json", ".jsonl", ".csv")
    ]
    assert read[0] == read[1]
    calls = [[s.call for t in found for s in t.steps if s.call] for found in read]
    assert calls[0] == calls[2]
    owners = [[[i.agent for i in t.invocations] for t in found] for found in read]
    assert owners[0] == owners[2]
