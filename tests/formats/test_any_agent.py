"""Three span formats of few users: any-agent, TRAIL and TruLens."""

from __future__ import annotations

import json

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import StepKind, StepStatus, UsageState
from tests.formats import index
from tests.formats.reading import (
    as_json,
    counts_of,
    items_of,
    lines,
    refusal_of,
    rejected_of,
    slug_of,
    traces_of,
)

TRACE = 0x0123456789ABCDEF0123456789ABCDEF
START = 1_796_008_524_000_000_000


def agent_span(number, parent, name, **attributes):
    """A span of any-agent: ids are integers, `__` in a name is a dot."""

    def context(of):
        return {"trace_id": TRACE, "span_id": of, "is_remote": False}

    return {
        "name": name,
        "kind": "internal",
        "parent": context(parent) if parent else None,
        "start_time": START + number * 10**9,
        "end_time": START + (number + (0.5 if parent else 40)) * 10**9,
        "status": {"status_code": "ok", "description": None},
        "context": context(number),
        "attributes": {
            key.replace("__", "."): item for key, item in attributes.items()
        },
        "links": [],
        "events": [],
        "resource": {"attributes": {}, "schema_url": ""},
    }


def model_span(number, parent, output):
    return agent_span(number, parent, "call_llm m", gen_ai__operation__name="call_llm",
                      gen_ai__request__model="m", gen_ai__output="hello",
                      gen_ai__usage__input_tokens=3,
                      gen_ai__usage__output_tokens=output)  # fmt: skip


RUN = {
    "spans": [
        model_span(2, 1, 30),
        agent_span(3, 1, "execute_tool look", gen_ai__operation__name="execute_tool",
                   gen_ai__tool__name="look", gen_ai__tool__args='{"q": 1}'),
        model_span(4, 1, 20),
        agent_span(1, None, "invoke_agent [helper]",
                   gen_ai__operation__name="invoke_agent"),
    ],
    "final_output": "done",
}  # fmt: skip


def test_it_reads_ids_that_are_integers_of_128_bits():
    [trace] = traces_of(as_json(RUN))
    assert trace.native_id == "0123456789abcdef0123456789abcdef"
    assert trace.steps[0].native_id == f"{1:016x}"
    [sequence] = serial_sequences(trace)
    assert (sequence.agent, sequence.outputs) == ("helper", (30, 20))
    tool = trace.steps[2]
    assert (tool.name, tool.body.input) == ("look", {"q": 1})
    assert trace.steps[1].body.output == "hello"
    assert trace.metadata["final_output"] == "done"
    assert trace.outcome.kind == "unknown"


def test_it_gives_calls_whose_parents_were_not_exported_to_the_only_agent():
    """Other frameworks' own spans are often left out of the export."""
    spans = [model_span(2, 77, 30), model_span(4, 78, 20), RUN["spans"][3]]
    [trace] = traces_of(as_json({"spans": spans}))
    [sequence] = serial_sequences(trace)
    assert (sequence.agent, sequence.outputs) == ("helper", (30, 20))
    assert any("parent is not in the file" in note for note in trace.notes)


def test_it_does_not_give_an_agent_what_began_after_it_ended():
    late = model_span(50, 77, 9)
    [trace] = traces_of(as_json({"spans": [*RUN["spans"], late]}))
    owners = [(one.agent, one.outputs) for one in serial_sequences(trace)]
    assert ("helper", (30, 20)) in owners
    assert ("helper", (30, 20, 9)) not in owners


def test_it_rejects_one_span_and_reads_the_others():
    items = items_of(as_json({"spans": [1, *RUN["spans"]]}), "any-agent")
    [rejected] = rejected_of(items)
    assert rejected.place == "record 1 (line 1), $.spans[0]"


def tree_span(number, name, *children, **more):
    attributes = more.pop("attributes", {})
    return {
        "timestamp": f"2026-11-30T03:00:{number:02}.250Z",
        "trace_id": f"{TRACE:032x}",
        "span_id": f"{number:016x}",
        "parent_span_id": more.pop("parent", None),
        "span_name": name,
        "span_kind": "Internal",
        "service_name": "support",
        "resource_attributes": {"service.name": "support"},
        "scope_name": "x",
        "span_attributes": attributes,
        "duration": more.pop("duration", "PT1.5S"),
        "status_code": more.pop("status", "Ok"),
        "status_message": "",
        "events": more.pop("events", []),
        "links": [],
        "logs": [],
        "child_spans": list(children),
    }


def tree_call(number, output):
    return tree_span(number, "LiteLLM", attributes={
        "openinference.span.kind": "LLM", "llm.model_name": "m",
        "llm.token_count.prompt": "5", "llm.token_count.completion": str(output)})  # fmt: skip


RAISED = [
    {"Name": "exception", "Timestamp": "2026-11-30T03:00:04Z",
     "Attributes": {"exception.type": "KeyError", "exception.message": "A"}}
]  # fmt: skip
TREE = {
    "trace_id": f"{TRACE:032x}",
    "spans": [
        tree_span(
            1, "main",
            tree_span(2, "CodeAgent.run", tree_call(3, 30),
                      tree_span(4, "look", status="Error", events=RAISED,
                                attributes={"openinference.span.kind": "TOOL",
                                            "tool.name": "look"}),
                      tree_call(6, 20),
                      attributes={"openinference.span.kind": "AGENT"},
                      duration="PT1M2.5S"),
            duration="PT2M",
        )
    ],
}  # fmt: skip
LABELS = {
    "trace_id": f"{TRACE:032x}",
    "errors": [{"category": "Tool-related", "location": f"{4:016x}", "impact": "HIGH"}],
    "scores": [{"overall": 2.25}],
}


def test_it_reads_spans_inside_spans():
    [trace] = traces_of(as_json(TREE))
    assert [step.parent for step in trace.steps] == [None, 0, 1, 1, 1]
    [sequence] = serial_sequences(trace)
    assert (sequence.agent, sequence.outputs) == ("CodeAgent.run", (30, 20))
    failed = trace.steps[3]
    assert (failed.status, failed.error_type) == (StepStatus.ERROR, "KeyError")
    assert trace.steps[1].end_ns - trace.steps[1].start_ns == 62_500_000_000


def test_it_says_that_annotations_of_a_trace_are_labels_and_hold_no_trace():
    assert "labels" in refusal_of(as_json(LABELS))
    assert slug_of(as_json(LABELS)) == "trail"


def test_it_keeps_annotations_inside_a_trace_as_labels_only():
    [trace] = traces_of(as_json(TREE | {"errors": LABELS["errors"]}))
    assert trace.labels == {"errors": LABELS["errors"]}
    assert "Tool-related" not in repr(trace.steps)


SCOPE = "ai.observability."


def event(number, parent, kind, name, **attributes):
    """A row of TruLens' event table."""
    return {
        "event_id": str(number),
        "record": {"name": name, "kind": 1, "status": "STATUS_CODE_UNSET",
                   "parent_span_id": str(parent or "")},
        "record_type": "SPAN",
        "resource_attributes": {"service.name": "trulens"},
        "start_timestamp": f"2026-11-30 03:00:{number:02}.250000",
        "timestamp": f"2026-11-30 03:00:{number + (1 if parent else 40):02}.250000",
        "trace": {"trace_id": str(TRACE), "span_id": str(number),
                  "parent_id": str(parent or "")},
        "record_attributes": {
            f"{SCOPE}span_type": kind,
            **{f"{SCOPE}{key.replace('__', '.')}": value
               for key, value in attributes.items()}},
    }  # fmt: skip


def generation(number, output):
    return event(number, 1, "generation", "generate", cost__model="m",
                 cost__num_prompt_tokens=5, cost__num_completion_tokens=output)  # fmt: skip


EVENTS = [
    event(1, None, "record_root", "App.query", input_id="q7",
          record_root__input="why?", record_root__output="because",
          record_root__ground_truth_output="the secret"),
    event(2, 1, "retrieval", "App.retrieve"),
    generation(3, 30),
    generation(5, 20),
    event(7, 1, "eval", "judge", eval__metric_name="relevance", eval__score=0.5),
]  # fmt: skip


@pytest.mark.parametrize("data", [as_json(EVENTS), lines(*EVENTS)])
def test_it_reads_the_spans_of_an_event_table(data):
    [trace] = traces_of(data)
    assert trace.native_id == f"{TRACE:032x}"
    assert [step.kind for step in trace.steps] == [
        StepKind.OTHER,
        StepKind.RETRIEVAL,
        StepKind.MODEL_CALL,
        StepKind.MODEL_CALL,
        StepKind.OTHER,
    ]
    [sequence] = serial_sequences(trace)
    assert sequence.outputs == (30, 20)
    assert trace.steps[2].call.usage.state is UsageState.REPORTED
    assert trace.steps[0].body.output == "because"
    assert trace.task == "q7"


def test_it_keeps_scores_and_expected_answers_as_labels():
    [trace] = traces_of(as_json(EVENTS))
    labels = json.dumps(trace.labels)
    assert "the secret" in labels
    assert "relevance" in labels
    assert "the secret" not in repr(trace.steps)
    assert "relevance" not in repr(trace.steps)
    assert trace.outcome.kind == "unknown"


def test_it_reads_an_event_table_that_was_saved_as_csv():
    names = list(EVENTS[0])
    cells = [
        ",".join('"' + str(row[name]).replace('"', '""') + '"' for name in names)
        for row in EVENTS
    ]
    data = "\n".join([",".join(name.upper() for name in names), *cells, ""]).encode()
    [trace] = traces_of(data)
    [first] = traces_of(as_json(EVENTS))
    assert counts_of([trace]) == counts_of([first])


def test_it_puts_a_judgement_without_a_trace_under_the_record_that_it_judges():
    row = event(1, None, "eval_root", "judge", record_id="dd121e81-ccc2-449f")
    row["trace"]["trace_id"] = ""
    [trace] = traces_of(as_json(row))
    assert trace.native_id is None
    assert any("record that they judge" in note for note in trace.notes)


FILES = {"any-agent": RUN, "trail": TREE, "trulens": EVENTS}


@pytest.mark.parametrize("slug", FILES)
def test_it_recognises_each_of_the_three(slug):
    assert slug_of(as_json(FILES[slug])) == slug


@pytest.mark.parametrize(
    "row", index.rows("any_agent_trace", "trail_shape", "trulens_otel_span")
)
def test_it_finds_the_counts_of_the_index(row):
    data = (index.DATA / row["path"]).read_bytes()
    if row["n_traces"] == "0":
        assert "labels" in refusal_of(data)
    else:
        assert counts_of(traces_of(data)) == index.expected(row)


def test_it_reads_the_tree_shape_as_the_run_it_was_made_from(shared_data):
    [path] = shared_data.glob("trail_shape/*aef.json")
    [trace] = traces_of(path.read_bytes())
    found = [(one.agent, one.outputs) for one in serial_sequences(trace)]
    assert found == [("Triage Agent", (112,)), ("Billing Agent", (100, 86, 78, 70, 43))]
