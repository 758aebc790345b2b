"""MLflow traces: three spellings of spans, two versions of the summary, and tables."""

from __future__ import annotations

import base64
import csv
import io
import json

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import (
    FinishReason,
    OutcomeKind,
    StepKind,
    StepStatus,
    Trace,
    UsageState,
)
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

HEX = "0123456789abcdef0123456789abcdef"
START = 1_796_008_524_000_000_000


def ident(number):
    return f"{number:016x}"


def b64(text):
    return base64.b64encode(bytes.fromhex(text)).decode()


def span(number, parent, kind, name, **attributes):
    """What a span says, before it is spelled; `__` in a name is a dot."""
    return {
        "number": number,
        "parent": parent,
        "name": name,
        "start": START + number * 10**9,
        "end": attributes.pop(
            "end", START + (number + (0.5 if parent else 40)) * 10**9
        ),
        "status": attributes.pop("status", "OK"),
        "message": attributes.pop("message", ""),
        "events": attributes.pop("events", []),
        "attributes": {
            "mlflow.traceRequestId": f"tr-{HEX}",
            "mlflow.spanType": kind,
            **{key.replace("__", "."): item for key, item in attributes.items()},
        },
    }


def call(number, output, **more):
    tool = {"id": f"c{number}", "type": "function", "function": {"name": "look"}}
    answer = {
        "id": f"r{number}",
        "model": "m-2026",
        "choices": [{"finish_reason": "tool_calls",
                     "message": {"role": "assistant", "tool_calls": [tool]}}],
    }  # fmt: skip
    usage = {"input_tokens": 9, "output_tokens": output, "cache_read_input_tokens": 4}
    told = {"mlflow__chat__tokenUsage": usage} if output is not None else {}
    return span(number, 1, "CHAT_MODEL", "Completions",
                mlflow__spanInputs={"model": "m", "messages": [{"role": "user"}]},
                mlflow__spanOutputs=more.pop("answer", answer), **told, **more)  # fmt: skip


SPANS = [
    span(1, None, "AGENT", "billing", mlflow__spanInputs={"q": "why"}),
    call(2, 30),
    span(3, 1, "TOOL", "look", mlflow__spanOutputs="A-100", status="ERROR", message="no",
         events=[{"name": "exception", "attributes": {"exception.type": "KeyError"}}]),
    call(4, 20),
    call(6, 10),
]  # fmt: skip


def dumped(attributes):
    return {key: json.dumps(item) for key, item in attributes.items()}


def version_3(one):
    return {
        "trace_id": b64(HEX),
        "span_id": b64(ident(one["number"])),
        "parent_span_id": b64(ident(one["parent"])) if one["parent"] else None,
        "name": one["name"],
        "start_time_unix_nano": int(one["start"]),
        "end_time_unix_nano": int(one["end"]) if one["end"] else None,
        "events": [{"time_unix_nano": START, **event} for event in one["events"]],
        "status": {"code": f"STATUS_CODE_{one['status']}", "message": one["message"]},
        "attributes": dumped(one["attributes"]),
        "links": [],
    }


def version_3_5(one):
    """3.5.0 wrote the ids of its objects."""
    return version_3(one) | {
        "trace_id": f"tr-{HEX}",
        "span_id": ident(one["number"]),
        "parent_span_id": ident(one["parent"]) if one["parent"] else None,
        "status": {"code": one["status"], "message": one["message"]},
    }


def version_2(one):
    return {
        "name": one["name"],
        "context": {"trace_id": f"0x{HEX}", "span_id": f"0x{ident(one['number'])}"},
        "parent_id": f"0x{ident(one['parent'])}" if one["parent"] else None,
        "start_time": int(one["start"]),
        "end_time": int(one["end"]) if one["end"] else None,
        "status_code": one["status"],
        "status_message": one["message"],
        "attributes": dumped(one["attributes"]),
        "events": [{"timestamp": START, **event} for event in one["events"]],
    }


TOLD = json.dumps({"input_tokens": 27, "output_tokens": 60, "total_tokens": 87})
INFO_3 = {
    "trace_id": f"tr-{HEX}",
    "trace_location": {"type": "MLFLOW_EXPERIMENT"},
    "request_time": "2026-11-30T03:35:25.000Z",
    "state": "OK",
    "trace_metadata": {"mlflow.trace.session": "s1", "mlflow.trace.tokenUsage": TOLD},
    "tags": {"mlflow.traceName": "support", "task": "refund", "trial": "2"},
    "execution_duration_ms": 40000,
}
INFO_2 = {
    "request_id": "tr-77777777777777777777777777777777",
    "experiment_id": "1",
    "timestamp_ms": 1796008524000,
    "execution_time_ms": 40000,
    "status": "OK",
    "request_metadata": INFO_3["trace_metadata"],
    "tags": INFO_3["tags"],
}


def document(info=INFO_3, spell=version_3, spans=SPANS):
    return {"info": info, "data": {"spans": [spell(one) for one in spans]}}


def row(spell=version_3, *, has_trace=True):
    return {
        "trace_id": f"tr-{HEX}",
        "trace": json.dumps(document(spell=spell)) if has_trace else f"Trace(tr-{HEX})",
        "state": "OK",
        "request_time": 1796008524000,
        "execution_duration": 40000,
        "request": {"q": "why"},
        "response": "ok",
        "trace_metadata": INFO_3["trace_metadata"],
        "tags": INFO_3["tags"],
        "spans": [spell(one) for one in SPANS],
        "assessments": [],
    }


def table(*rows):
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


SHAPES = {
    "version 3": as_json(document()),
    "version 3.5": as_json(document(spell=version_3_5)),
    "version 2": as_json(document(INFO_2, version_2)),
    "list": as_json([document()]),
    "search answer": as_json({"traces": [document()], "next_page_token": ""}),
    "rows with traces": as_json([row()]),
    "rows with spans": as_json([row(has_trace=False)]),
    "row lines": lines(row()),
    "csv with traces": table(row()),
    "csv with spans": table(row(has_trace=False)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_it_reads_one_run_alike_in_every_shape(shape):
    [trace] = traces_of(SHAPES[shape])
    assert trace.native_id == HEX
    assert (trace.name, trace.session) == ("support", "s1")
    assert (trace.task, trace.trial) == ("refund", 2)
    assert [step.kind for step in trace.steps] == [
        StepKind.AGENT,
        StepKind.MODEL_CALL,
        StepKind.TOOL_CALL,
        StepKind.MODEL_CALL,
        StepKind.MODEL_CALL,
    ]
    [sequence] = serial_sequences(trace)
    assert (sequence.agent, sequence.outputs) == ("billing", (30, 20, 10))
    assert trace.notes == ()
    assert trace.outcome.kind is OutcomeKind.UNKNOWN


@pytest.mark.parametrize("shape", SHAPES)
def test_it_reads_the_facts_of_each_call_in_every_shape(shape):
    [trace] = traces_of(SHAPES[shape])
    first, tool = trace.steps[1].call, trace.steps[2]
    assert (first.model, first.response_id) == ("m-2026", "r2")
    assert (first.finish, first.tool_call_ids) == (FinishReason.TOOL_CALLS, ("c2",))
    usage = first.usage
    assert usage.state is UsageState.REPORTED
    assert (usage.input_total, usage.input_cached) == (9, 4)
    assert usage.source == "mlflow.chat.tokenUsage.output_tokens"
    assert (tool.name, tool.status) == ("look", StepStatus.ERROR)
    assert (tool.error_type, tool.error_message) == ("KeyError", "no")
    assert tool.body.output == "A-100"
    assert trace.steps[1].body.input["messages"] == [{"role": "user"}]
    assert trace.steps[0].start_ns == START + 10**9


@pytest.mark.parametrize("shape", SHAPES)
def test_it_recognises_each_shape(shape):
    assert slug_of(SHAPES[shape]) == "mlflow"


@pytest.mark.parametrize("row", index.rows("mlflow_trace_json"))
def test_it_finds_the_counts_of_the_index(row):
    traces = traces_of((index.DATA / row["path"]).read_bytes())
    assert counts_of(traces) == index.expected(row)
    for trace in traces:
        [sequence] = serial_sequences(trace)
        assert sequence.agent == "billing_agent"
        assert sequence.outputs == (112, 100, 86, 78, 70, 43)


def test_it_reads_the_same_run_alike_in_all_three_files(shared_data):
    folder = shared_data / "mlflow_trace_json"
    [whole] = traces_of((folder / "normal_3runs.json").read_bytes())
    for name in ("normal_3runs.search_traces.json", "normal_3runs.search_traces.csv"):
        traces = traces_of((folder / name).read_bytes())
        same = next(one for one in traces if one.native_id == whole.native_id)
        assert same.steps == whole.steps
        assert same.session == whole.session


def test_it_takes_usage_from_the_response_where_older_versions_kept_it():
    answer = {"usage": {"prompt_tokens": 9, "completion_tokens": 7}}
    [trace] = traces_of(as_json(document(spans=[call(2, None, answer=answer)])))
    usage = trace.steps[0].call.usage
    assert (usage.output_total, usage.state) == (7, UsageState.REPORTED)
    assert usage.source == "mlflow.spanOutputs.usage.completion_tokens"


def test_it_reads_no_usage_anywhere_as_missing():
    [trace] = traces_of(as_json(document(spans=[SPANS[0], call(2, None)])))
    assert trace.steps[1].call.usage.state is UsageState.MISSING
    assert trace.notes == ()


def test_it_says_when_the_trace_tells_another_sum_than_its_calls():
    info = INFO_3 | {
        "trace_metadata": {"mlflow.trace.tokenUsage": {"output_tokens": 1184}}
    }
    [trace] = traces_of(as_json(document(info)))
    assert trace.notes == (
        "The trace records 1,184 output tokens in all; its calls sum up to 60.",
    )


def test_it_counts_the_leaf_of_two_model_spans():
    inner = call(4, 20) | {"parent": 2}
    [trace] = traces_of(as_json(document(spans=[SPANS[0], call(2, 20), inner])))
    kinds = [step.kind for step in trace.steps]
    assert kinds == [StepKind.AGENT, StepKind.OTHER, StepKind.MODEL_CALL]


def test_it_takes_off_the_numbers_that_older_versions_gave_to_equal_names():
    """Five visits of one graph node are steps of the graph, whatever their numbers."""
    spans = [SPANS[0]]
    for turn in range(1, 4):
        visit = span(10 * turn, 1, "AGENT", f"node_{turn}",
                     end=START + (10 * turn + 5) * 10**9)  # fmt: skip
        spans += [visit, call(10 * turn + 1, 40 - turn) | {"parent": 10 * turn}]
    [trace] = traces_of(as_json(document(INFO_2, version_2, spans)))
    [sequence] = serial_sequences(trace)
    assert (sequence.agent, sequence.outputs) == ("billing", (39, 38, 37))
    kept = [span(1, None, "AGENT", "gpt_4"), span(2, 1, "AGENT", "gpt_5")]
    [trace] = traces_of(as_json(document(spans=kept)))
    assert [step.name for step in trace.steps] == ["gpt_4", "gpt_5"]


def test_it_reads_a_span_that_has_not_ended_as_unfinished():
    [trace] = traces_of(
        as_json(document(spans=[SPANS[0] | {"end": None, "status": "UNSET"}]))
    )
    assert trace.steps[0].status is StepStatus.UNFINISHED


def feedback(name, value, source="HUMAN", **more):
    return {
        "assessment_name": name,
        "source": {"source_type": source},
        "feedback": {"value": value},
        "valid": True,
        **more,
    }


EXPECTED = {"assessment_name": "answer", "expectation": {"value": "the secret"}}


@pytest.mark.parametrize(
    ("assessments", "kind"),
    [
        ([feedback("correctness", value=True)], OutcomeKind.PASS),
        ([feedback("correctness", "no", "LLM_JUDGE")], OutcomeKind.FAIL),
        ([feedback("correctness", value=False), feedback("correct", value=True, source="LLM_JUDGE")],
         OutcomeKind.FAIL),
        ([feedback("correct", value=True), feedback("success", value=False)], OutcomeKind.UNKNOWN),
        ([feedback("relevance", value=True)], OutcomeKind.UNKNOWN),
        ([feedback("correctness", 0.7)], OutcomeKind.UNKNOWN),
        ([feedback("correctness", "mostly right")], OutcomeKind.UNKNOWN),
        ([feedback("correctness", value=True, span_id=ident(2))], OutcomeKind.UNKNOWN),
        ([feedback("correctness", value=True, valid=False)], OutcomeKind.UNKNOWN),
        ([EXPECTED], OutcomeKind.UNKNOWN),
    ],
)  # fmt: skip
def test_only_a_plain_verdict_on_the_whole_trace_is_an_outcome(assessments, kind):
    [trace] = traces_of(as_json(document(INFO_3 | {"assessments": assessments})))
    assert trace.outcome.kind is kind
    assert trace.outcome.kind is OutcomeKind.UNKNOWN or trace.outcome.source == (
        "assessments.correctness"
    )


def test_it_keeps_expectations_and_feedback_as_labels_and_out_of_every_step():
    assessments = [EXPECTED, feedback("relevance", "low")]
    [trace] = traces_of(as_json(document(INFO_3 | {"assessments": assessments})))
    assert trace.labels == {"expectations": [EXPECTED], "feedbacks": [assessments[1]]}
    assert "the secret" not in repr(trace.steps) + repr(trace.metadata)


def test_it_says_that_a_summary_without_spans_has_no_steps():
    assert "without its spans" in refusal_of(as_json({"info": INFO_3, "data": {}}))
    assert "without its spans" in refusal_of(as_json([INFO_3]))


def test_it_says_that_the_text_of_python_objects_cannot_be_read():
    said = refusal_of(table(row() | {"trace": "Trace(x)", "spans": "[Span(name='x')]"}))
    assert "text of Python objects" in said


def test_it_rejects_one_span_and_reads_the_others():
    whole = document()
    whole["data"]["spans"][1]["span_id"] = ""
    items = items_of(as_json(whole))
    [rejected] = rejected_of(items)
    assert rejected.place == "record 1 (line 1), span 2"


def test_a_bad_row_does_not_stop_the_next():
    items = items_of(table(row() | {"trace": "x", "spans": "[]"}, row()))
    assert len(rejected_of(items)) == sum(isinstance(one, Trace) for one in items) == 1
