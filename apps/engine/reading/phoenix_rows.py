"""Rows of Phoenix's span exports, whatever file they stand in, taken into a store.

A row is a span of the REST answer, of a GraphQL answer, or of a data frame, whose
columns begin with `context.` and `attributes.`. Annotations are other people's
verdicts on spans: they become labels of the trace and reach no step.
REST: https://arize.com/docs/phoenix/sdk-api-reference/rest-api/api-reference/spans
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.recorded import first_of
from apps.engine.reading.rows import cell
from apps.engine.reading.span_records import (
    SpanRecord,
    flat,
    id_of,
    opened,
    span_of,
    trace_id_of,
)
from apps.engine.reading.spans import SpanStore, TraceFacts

Row = dict[str, Any]

SPAN_COLUMNS: Final = frozenset({"context.span_id", "context.trace_id"})
_ATTRIBUTES: Final = "attributes."
_HOLDERS: Final = (
    "data", "node", "edges", "spans", "project", "projects", "trace", "traces",
    "session",
)  # fmt: skip
# A trace may show its root once more beside all of its spans.
_ROOTS: Final = ("rootSpan", "rootSpans")
_COUNTS: Final = {
    "tokenCountPrompt": "llm.token_count.prompt",
    "tokenCountCompletion": "llm.token_count.completion",
    "tokenCountTotal": "llm.token_count.total",
}
_CONTENTS: Final = ("input", "output")
_ANNOTATIONS: Final = (
    "annotations", "traceAnnotations", "spanAnnotations", "span_annotations", "evaluations",
    "spanEvaluations",
)  # fmt: skip
_ANNOTATION_COLUMNS: Final = ("annotations.", "annotation.", "eval.", "evals.")


def is_row(value: Any) -> bool:
    """Whether a value is a span of one of the shapes that Phoenix writes."""
    if not isinstance(value, dict):
        return False
    if "context.span_id" in value:
        return True
    context = value.get("context")
    if isinstance(context, dict):
        return not value.keys().isdisjoint({"span_kind", "spanKind"})
    return "span_id" in value and {"name", "start_time_unix_nano"} <= value.keys()


def is_annotation(value: Any) -> bool:
    """Whether a value is an annotation that stands beside the spans."""
    return (
        isinstance(value, dict)
        and "annotator_kind" in value
        and ("span_id" in value or "trace_id" in value)
    )


def rows_in(value: Any, trace_id: Any = None) -> Iterator[Row]:
    """Yield the rows and annotations inside an answer or a frame, however wrapped.

    `trace_id` is that of the trace the value stands in. Nothing is yielded for what
    holds no span.
    """
    if isinstance(value, list):
        for item in value:
            yield from rows_in(item, trace_id)
    elif isinstance(value, dict):
        yield from _rows_in_object(value, trace_id)


def _rows_in_object(value: Row, trace_id: Any) -> Iterator[Row]:
    if _is_columns(value):
        yield from _turned(value)
    elif {"columns", "data"} <= value.keys():
        yield from _split(value)
    elif is_row(value) or is_annotation(value):
        yield value
    elif trace_id is not None and "span_id" in value:
        yield {"trace_id": trace_id, **value}
    else:
        yield from _rows_in_holder(value, trace_id)
        yield from _by_span_id(value)


def _rows_in_holder(value: Row, trace_id: Any) -> Iterator[Row]:
    """Yield what stands in the lists of an object that is no span itself."""
    known = value.get("trace_id") or value.get("traceId") or trace_id
    for key in _HOLDERS:
        yield from rows_in(value.get(key), known)
    if "spans" not in value:
        for key in _ROOTS:
            yield from rows_in(value.get(key), known)
    if known is not None:
        for annotation in _annotations(value):
            yield {"annotator_kind": None, "trace_id": known, **annotation}


def _is_columns(value: Row) -> bool:
    columns = [value.get(key) for key in SPAN_COLUMNS]
    return any(isinstance(column, dict) for column in columns)


def _turned(columns: Row) -> Iterator[Row]:
    """Yield the rows of a frame that was written column by column."""
    first = columns.get("context.span_id") or columns.get("context.trace_id")
    for index in first if isinstance(first, dict) else ():
        row = {
            name: column.get(index)
            for name, column in columns.items()
            if isinstance(column, dict)
        }
        yield row if "context.span_id" in row else {"context.span_id": index, **row}


def _split(frame: Row) -> Iterator[Row]:
    """Yield the rows of a frame that was written as columns, index and data."""
    columns, rows = frame["columns"], frame["data"]
    if not isinstance(columns, list) or not isinstance(rows, list):
        return
    names = [str(name) for name in columns]
    for row in rows:
        if isinstance(row, list) and len(row) == len(names):
            yield dict(zip(names, row, strict=True))


def _by_span_id(value: Row) -> Iterator[Row]:
    """Yield the rows of a frame that was written as an object by its index."""
    for index, row in value.items():
        if isinstance(row, dict) and "context.trace_id" in row:
            yield {"context.span_id": index, **row}


class PhoenixRows:
    """Takes rows into a store, and annotations into the labels of their traces."""

    def __init__(self) -> None:
        self.store = SpanStore()
        self._of_spans: dict[str, list[Row]] = {}
        self._of_traces: dict[str, list[Row]] = {}

    def take(self, row: Row) -> None:
        """Take one row; raise `RefusedRecord` for a span without ids."""
        if is_annotation(row):
            self._annotate(row)
            return
        span = span_of(_record(row))
        self.store.add(span)
        for annotation in _annotations(row):
            self._of_spans.setdefault(span.span_id, []).append(annotation)

    def _annotate(self, annotation: Row) -> None:
        span_id = id_of(annotation.get("span_id"), 16)
        trace_id = trace_id_of(annotation.get("trace_id"))
        if span_id is not None:
            self._of_spans.setdefault(span_id, []).append(annotation)
        elif trace_id is not None:
            self._of_traces.setdefault(trace_id, []).append(annotation)
        else:
            raise RefusedRecord("The annotation names no span and no trace.", "$")

    def finish(self) -> SpanStore:
        """Return the store with the labels of all traces; call it at the end."""
        if self._of_spans or self._of_traces:
            for trace_id, spans in self.store.traces.items():
                found = [
                    {"span_id": span_id, **annotation}
                    for span_id in spans
                    for annotation in self._of_spans.get(span_id, ())
                ]
                found += self._of_traces.get(trace_id, [])
                if found:
                    facts = TraceFacts(labels={"annotations": found})
                    self.store.describe(trace_id, facts)
        return self.store


def _annotations(row: Row) -> Iterator[Row]:
    for key in _ANNOTATIONS:
        found = cell(row.get(key))
        if isinstance(found, list):
            yield from (item for item in found if isinstance(item, dict))
    columns = {
        key: cell(item)
        for key, item in row.items()
        if key.startswith(_ANNOTATION_COLUMNS) and item is not None
    }
    if columns:
        yield columns


def _record(row: Row) -> SpanRecord:
    context = opened(row.get("context"))
    status = row.get("status")
    status = status if isinstance(status, dict) else {}
    return SpanRecord(
        trace_id=first_of(row, ("context.trace_id", "trace_id", "traceId"))
        or first_of(context, ("trace_id", "traceId")),
        span_id=first_of(row, ("context.span_id", "span_id", "spanId"))
        or first_of(context, ("span_id", "spanId")),
        parent_id=first_of(row, ("parent_id", "parentId", "parent_span_id")),
        name=row.get("name"),
        start=first_of(row, ("start_time", "startTime", "start_time_unix_nano")),
        end=first_of(row, ("end_time", "endTime", "end_time_unix_nano")),
        status=first_of(row, ("status_code", "statusCode")) or status.get("code"),
        status_message=first_of(row, ("status_message", "statusMessage"))
        or status.get("message"),
        attributes=_attributes(row),
        events=row.get("events"),
    )


def _attributes(row: Row) -> Row:
    """Return the attributes of a row; what only its own fields say is added."""
    found = dict(opened(row.get("attributes")))
    for key, item in row.items():
        if key.startswith(_ATTRIBUTES) and item is not None:
            found[key[len(_ATTRIBUTES) :]] = item
    kind = first_of(row, ("span_kind", "spanKind"))
    if isinstance(kind, str) and kind:
        found["openinference.span.kind"] = kind.upper()
    for key, name in _COUNTS.items():
        if row.get(key) is not None:
            found.setdefault(name, row[key])
    for key in _CONTENTS:
        content = row.get(key)
        if isinstance(content, dict) and content.get("value") is not None:
            found.setdefault(f"{key}.value", content["value"])
    return flat({key: _opened_part(item) for key, item in found.items()})


def _opened_part(item: Any) -> Any:
    """Open what a CSV writes as text though it was an object; contents stay text."""
    if isinstance(item, str) and item.startswith(("{'", "[{'", '{"', '[{"')):
        return cell(item)
    return item
