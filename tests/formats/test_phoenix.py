"""Phoenix exports: one run in every shape that a user may have saved it in."""

from __future__ import annotations

import io

import pytest

from apps.engine.format import UnreadableTrace
from apps.engine.formats import detect, open_source
from apps.engine.reading.bytestream import HEAD_BYTES
from apps.engine.sequences import serial_sequences
from apps.engine.trace import StepKind, StepStatus, UsageState
from tests.formats.phoenix_files import (
    ROWS,
    SHAPES,
    TRACE,
    by_column,
    call,
    flat,
    frame_row,
    graph,
    ident,
    moment,
    nested,
    rest,
    table,
)
from tests.formats.reading import (
    as_json,
    items_of,
    lines,
    refusal_of,
    rejected_of,
    traces_of,
)

OUTPUTS = (30, 20, 10)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_reads_one_run_alike_in_every_shape(shape):
    [trace] = traces_of(SHAPES[shape])
    assert trace.native_id == TRACE
    assert (trace.session, trace.task, trace.trial) == ("s1", "refund", 2)
    assert [step.kind for step in trace.steps] == [
        StepKind.AGENT,
        StepKind.MODEL_CALL,
        StepKind.TOOL_CALL,
        StepKind.MODEL_CALL,
        StepKind.MODEL_CALL,
    ]
    [sequence] = serial_sequences(trace)
    assert (sequence.agent, sequence.outputs) == ("billing", OUTPUTS)
    first, tool = trace.steps[1], trace.steps[2]
    assert first.call.usage.state is UsageState.REPORTED
    assert first.call.usage.source == "llm.token_count.completion"
    assert first.call.tool_call_ids == ("c2",)
    assert tool.call.requested_by == 1
    assert (tool.status, tool.error_type) == (StepStatus.ERROR, "KeyError")
    assert first.start_ns % 10**9 == 250_000


@pytest.mark.parametrize("shape", SHAPES)
def test_it_shows_the_same_messages_in_every_shape(shape):
    [trace] = traces_of(SHAPES[shape])
    body = trace.steps[1].body
    assert body.input == [{"role": "user", "content": "[why]"}]
    assert body.output[0]["content"] == "it's"


@pytest.mark.parametrize("shape", SHAPES)
def test_it_recognises_each_shape(shape):
    found = detect(open_source(io.BytesIO(SHAPES[shape])))
    assert found.slug == "phoenix-spans"


def test_it_reads_an_empty_cell_and_an_absent_column_as_missing_usage():
    rows = [dict(row) for row in ROWS]
    rows[1]["attributes.llm.token_count.completion"] = None
    rows[1]["attributes.llm.token_count.prompt"] = None
    for data in (as_json(rows), table(rows=rows)):
        [trace] = traces_of(data)
        assert trace.steps[1].call.usage.state is UsageState.MISSING


def test_it_reads_token_counts_of_a_graphql_answer():
    node = graph(call(2, None))
    node["node"] |= {"tokenCountPrompt": 5, "tokenCountCompletion": 7}
    [trace] = traces_of(as_json({"data": {"spans": {"edges": [node]}}}))
    assert trace.steps[0].call.usage.output_total == 7


def test_it_reads_the_traces_that_list_their_spans_without_attributes():
    span = {"id": "x", "span_id": ident(2), "parent_id": None, "name": "ChatModel",
            "span_kind": "LLM", "status_code": "OK", "start_time": moment(2),
            "end_time": moment(3)}  # fmt: skip
    data = {"data": [{"id": "t", "trace_id": TRACE, "spans": [span]}]}
    [trace] = traces_of(as_json(data))
    assert trace.native_id == TRACE
    assert trace.steps[0].call.usage.state is UsageState.MISSING


def test_it_reads_spans_that_phoenix_gives_in_otlp_spelling():
    pairs = [
        {"key": "openinference.span.kind", "value": {"stringValue": "LLM"}},
        {"key": "llm.token_count.completion", "value": {"intValue": "9"}},
    ]
    span = {"trace_id": TRACE, "span_id": ident(2), "name": "x", "attributes": pairs,
            "start_time_unix_nano": 1_796_008_524_000_000_000}  # fmt: skip
    [trace] = traces_of(as_json({"data": [span], "next_cursor": None}))
    assert trace.steps[0].call.usage.output_total == 9


NOTE = {
    "id": "1",
    "name": "correctness",
    "annotator_kind": "HUMAN",
    "span_id": ident(2),
    "result": {"label": "wrong", "score": 0.0},
}


def test_it_keeps_annotations_as_labels_and_out_of_every_step():
    inside = rest(ROWS[0], flat(ROWS[0])) | {"spanAnnotations": [{"name": "tone"}]}
    rows = [inside, *(rest(row, flat(row)) for row in ROWS[1:])]
    [trace] = traces_of(lines({"data": rows}, {"data": [NOTE]}))
    names = [one["name"] for one in trace.labels["annotations"]]
    assert names == ["tone", "correctness"]
    assert trace.labels["annotations"][1]["span_id"] == ident(2)
    assert "correctness" not in repr(trace.steps)
    assert trace.outcome.kind == "unknown"


def test_it_keeps_columns_of_annotations_as_labels():
    rows = [dict(row) for row in ROWS]
    rows[1]["annotations.correctness"] = {"label": "wrong"}
    [trace] = traces_of(as_json(rows))
    assert trace.labels["annotations"] == [
        {"span_id": ident(2), "annotations.correctness": {"label": "wrong"}}
    ]
    assert "wrong" not in repr(trace.steps)


def test_it_reads_a_trace_with_its_root_and_its_annotations_beside_its_spans():
    spans = [rest(row, flat(row)) for row in ROWS]
    verdict = {"name": "helpful", "label": "no"}
    whole = {"traceId": TRACE, "spans": spans, "rootSpan": spans[0],
             "annotations": [verdict]}  # fmt: skip
    [trace] = traces_of(as_json([whole]))
    assert len(trace.steps) == len(ROWS)
    assert trace.notes == ()
    [label] = trace.labels["annotations"]
    assert label["name"] == "helpful"


def test_it_says_that_annotations_alone_are_no_trace():
    assert "annotations of spans but no spans" in refusal_of(as_json({"data": [NOTE]}))


def test_it_rejects_a_span_without_ids_and_reads_the_others():
    broken = rest(ROWS[1], flat(ROWS[1]))
    broken["context"] = {"trace_id": TRACE}
    items = items_of(as_json({"data": [rest(ROWS[0], flat(ROWS[0])), broken]}))
    [rejected] = rejected_of(items)
    assert rejected.place == "record 1 (line 1), span 2"
    assert "no span id" in rejected.reason
    assert rejected.excerpt == "ChatModel"


def test_it_reads_a_kind_that_phoenix_does_not_know_by_its_other_names():
    row = frame_row(2, None, "UNKNOWN", "chat m", gen_ai__operation__name="chat",
                    gen_ai__usage__output_tokens=4)  # fmt: skip
    [trace] = traces_of(as_json([row]))
    assert trace.steps[0].kind is StepKind.MODEL_CALL


def test_it_is_recognised_when_the_head_ends_in_the_middle_of_an_escape():
    """JSON inside JSON is full of backslashes: the head may end behind one."""
    for start in ("", "x", "xy", "xyz"):
        text = start + '\\"' * HEAD_BYTES
        row = ROWS[0] | {"attributes.input.value": text}
        source = open_source(io.BytesIO(as_json([row])))
        assert detect(source).slug == "phoenix-spans"


CHANGEABLE = [
    ROWS,
    by_column(),
    {"data": [rest(row, nested(row)) for row in ROWS] + [NOTE]},
    {"data": {"node": {"spans": {"edges": [graph(row) for row in ROWS]}}}},
]


def test_it_leaves_other_tables_to_others():
    with pytest.raises(UnreadableTrace):
        traces_of(b"id,name,start_time\n1,a,b\n")
