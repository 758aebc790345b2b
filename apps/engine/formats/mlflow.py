"""Reader of MLflow traces: `trace.to_json()`, and tables of `search_traces`.

Both versions of the schema, as one document, a list, JSON lines or CSV. What a trace
says of its tokens together is compared with its calls and never added to them.
Expectations and feedback are labels; feedback becomes the outcome only where it is a
plain yes or no about the whole trace under a name that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.format import Item, Source
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
    refused_part,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.mlflow.spans import (
    is_mlflow_span,
    mlflow_span,
    without_numbers,
)
from apps.engine.reading.mlflow.verdicts import labels_of, outcome_of
from apps.engine.reading.platform_rows import opened, opened_object, task_in, trial_in
from apps.engine.reading.rows import cell, header_of, read_rows
from apps.engine.reading.run_totals import known_outputs, remark_total
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import SpanStore, TraceFacts
from apps.engine.reading.text_limits import Remarks
from apps.engine.reading.token_counts import whole_number
from apps.engine.trace import Trace

Raw = dict[str, Any]

_NO_SPANS: Final = (
    "This is the summary of an MLflow trace without its spans, so there are no steps; "
    "export it with its spans (`trace.to_json()`)."
)
_OBJECTS_AS_TEXT: Final = (
    "The spans of this row are the text of Python objects and cannot be read; export "
    "the traces with `trace.to_json()`."
)
_COLUMNS: Final = frozenset({"spans", "trace", "trace_id", "request_id", "request"})
_INFO_COLUMNS: Final = (
    "trace_id", "request_id", "client_request_id", "state", "status", "request_time",
    "timestamp_ms", "execution_duration", "execution_time_ms", "trace_metadata",
    "request_metadata", "tags", "assessments",
)  # fmt: skip


class MLflow:
    """The format `mlflow`."""

    slug = "mlflow"
    label = "MLflow traces"
    version = 1
    description = (
        "MLflow traces as `trace.to_json()` writes them (schema 2 and 3), in lists or "
        "JSON lines, and data frames of `search_traces` as JSON or CSV. Expectations "
        "and feedback are kept as labels."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the header or the first record is that of MLflow traces."""
        header = header_of(source)
        if header is not None:
            return _is_table(set(header.columns))
        record = first_record(source)
        inside = record.get("traces") if isinstance(record, dict) else None
        if isinstance(inside, list) and inside:
            record = inside[0]
        return isinstance(record, dict) and (_is_trace(record) or _is_row(record))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each record; raise `UnreadableTrace` when there is none."""
        if header_of(source) is not None:
            items = read_rows(source, _take_row)
        else:
            items = read_each(source, _take, unroll=True)
        return demand_a_trace(items, nothing="The file holds no MLflow trace.")


def _is_table(columns: set[str]) -> bool:
    if not columns & {"trace_id", "request_id"} or not columns & {"trace", "spans"}:
        return False
    return bool(columns & {"trace_metadata", "request_metadata", "execution_duration"})


def _is_trace(record: Raw) -> bool:
    """Whether a record is a trace or the spans of one."""
    info, data = record.get("info"), record.get("data")
    if isinstance(info, dict) and isinstance(data, dict):
        return not info.keys().isdisjoint({"trace_id", "request_id"})
    if isinstance(info, dict) and "trace_location" in info:
        return True
    spans = record.get("spans")
    return isinstance(spans, list) and bool(spans) and is_mlflow_span(spans[0])


def _is_row(record: Raw) -> bool:
    """Whether a record is a row of `search_traces`, or the summary of a trace."""
    if _is_table(set(record)):
        return True
    return "trace_id" in record and "trace_location" in record


def _take_row(record: Record) -> Iterator[Item]:
    row = {key: cell(item) for key, item in record.value.items()}
    return _take(Record(row, record.number, record.line))


def _take(record: Record) -> Iterator[Item]:
    value = record.value
    if not isinstance(value, dict):
        raise RefusedRecord("An MLflow trace is an object.", "$")
    inside = value.get("traces")
    if not isinstance(inside, list):
        yield from _take_one(record, value)
        return
    for index, one in enumerate(inside):
        try:
            yield from _take_one(record, one if isinstance(one, dict) else {})
        except RefusedRecord as refusal:
            place = f"{record.place}, $.traces[{index}]"
            yield refused_part(place, refusal, one)


def _take_one(record: Record, value: Raw) -> Iterator[Item]:
    whole = value if _is_trace(value) else opened_object(value.get("trace"))
    info = opened_object(whole.get("info")) or _info_of(value)
    spans = _spans_of(whole, value)
    store = SpanStore()
    for index, raw in enumerate(spans):
        try:
            store.add(mlflow_span(raw))
        except RefusedRecord as refusal:
            place = f"{record.place}, span {index + 1}"
            yield refused_part(place, refusal, raw)
    if not store.traces:
        raise RefusedRecord("The trace has no span that can be read.", "$.data.spans")
    trace_id = next(iter(store.traces))
    store.describe(trace_id, _facts(info))
    for trace in traces_of(store, without_numbers):
        yield _compared(trace, info)


def _info_of(row: Raw) -> Raw:
    return {key: row[key] for key in _INFO_COLUMNS if row.get(key) is not None}


def _spans_of(whole: Raw, row: Raw) -> list[Any]:
    data = opened_object(whole.get("data"))
    found = data.get("spans", whole.get("spans", row.get("spans")))
    spans = opened(found)
    if isinstance(spans, str):
        raise RefusedRecord(_OBJECTS_AS_TEXT, "$.spans")
    if not isinstance(spans, list) or not spans:
        raise RefusedRecord(_NO_SPANS, "$.data.spans")
    return spans


def _facts(info: Raw) -> TraceFacts:
    told = _metadata(info)
    tags = opened_object(info.get("tags"))
    both = {**told, **tags}
    assessments = cell(info.get("assessments"))
    outcome, notes = outcome_of(assessments)
    kept = {
        "tags": tags,
        "trace_metadata": told,
        "state": info.get("state") or info.get("status"),
        "request_time_ns": any_time_ns(
            info.get("request_time") or info.get("timestamp_ms")
        ),
        "client_request_id": info.get("client_request_id"),
    }
    return TraceFacts(
        name=tags.get("mlflow.traceName"),
        session=told.get("mlflow.trace.session") or tags.get("mlflow.trace.session"),
        task=task_in(both),
        trial=whole_number(trial_in(both)),
        outcome=outcome,
        metadata={key: item for key, item in kept.items() if item},
        labels=labels_of(assessments),
        notes=notes,
    )


def _metadata(info: Raw) -> Raw:
    return opened_object(info.get("trace_metadata")) or opened_object(
        info.get("request_metadata")
    )


def _compared(trace: Trace, info: Raw) -> Trace:
    """Return the trace, with a note where its sum of tokens is not that of its calls."""
    usage = opened_object(_metadata(info).get("mlflow.trace.tokenUsage"))
    told = whole_number(usage.get("output_tokens"))
    outputs = known_outputs(trace.steps)
    known = [count for count in outputs if count is not None]
    if not known:
        return trace
    remarks = Remarks()
    remark_total(remarks, "trace", "output tokens", told=told, found=sum(known))
    return msgspec.structs.replace(trace, notes=trace.notes + remarks.sentences())
