"""Reader of TruLens' OpenTelemetry spans: rows of an event table.

Spans of evaluations and their scores are an evaluator's verdict about another trace:
the scores and the expected answers become labels, never an outcome and never a step's
content.
Names: https://www.trulens.org/otel/semantic_conventions/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.rows import cell, header_of, read_table_or_json
from apps.engine.reading.span_records import SpanRecord, opened, span_of
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import SpanStore, TraceFacts

_SCOPE: Final = "ai.observability."
_LABELS: Final = (
    f"{_SCOPE}record_root.ground_truth_output",
    f"{_SCOPE}ground_truth_output",
    f"{_SCOPE}record_root.ground_truth",
)
_EVALUATION: Final = f"{_SCOPE}eval."
_TASK: Final = (f"{_SCOPE}input_id", f"{_SCOPE}record_root.input_id")
_RECORD_ID: Final = f"{_SCOPE}record_id"
_NO_TRACE_ID: Final = (
    "Spans without a trace id stand under the id of the record that they judge."
)
_COLUMNS: Final = frozenset({"record", "record_attributes", "trace"})


class TruLens:
    """The format `trulens`."""

    slug = "trulens"
    label = "TruLens spans"
    version = 1
    description = (
        "OpenTelemetry spans of TruLens, one event each (record, record_attributes, "
        "trace), as JSON, JSON lines or CSV. Evaluation scores and expected answers "
        "are kept as labels."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the header or the first record is that of an event table of spans."""
        header = header_of(source)
        if header is not None:
            return {column.lower() for column in header.columns} >= _COLUMNS
        return _is_event(first_record(source))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        return demand_a_trace(_items(source), nothing="The file holds no spans.")


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and {key.lower() for key in value} >= _COLUMNS


def _items(source: Source) -> Iterator[Item]:
    events = _Events()
    yield from read_table_or_json(source, events.take)
    yield from traces_of(events.finish())


class _Events:
    """Takes events into a store; labels are collected by trace."""

    def __init__(self) -> None:
        self._store = SpanStore()
        self._labels: dict[str, dict[str, Any]] = {}
        self._tasks: dict[str, Any] = {}
        self._guessed: set[str] = set()

    def take(self, record: Record) -> Iterator[Item]:
        """Take one event; raise `RefusedRecord` for what is none."""
        if not _is_event(record.value):
            raise RefusedRecord("This is not a span of TruLens.", "$")
        event = {key.lower(): item for key, item in record.value.items()}
        place, named = opened(event["trace"]), opened(event["record"])
        attributes = dict(opened(event["record_attributes"]))
        labels = _labels_out_of(attributes)
        span = span_of(
            SpanRecord(
                trace_id=_identifier(place.get("trace_id"))
                or attributes.get(_RECORD_ID),
                span_id=_identifier(place.get("span_id")),
                parent_id=_identifier(
                    place.get("parent_id") or named.get("parent_span_id")
                ),
                name=named.get("name"),
                start=event.get("start_timestamp"),
                end=event.get("timestamp"),
                status=named.get("status"),
                status_message=named.get("status_message"),
                attributes=attributes,
                resource=event.get("resource_attributes"),
            )
        )
        self._store.add(span)
        if labels:
            self._labels.setdefault(span.trace_id, {})[span.span_id] = labels
        if not place.get("trace_id"):
            self._guessed.add(span.trace_id)
        task = next((attributes[key] for key in _TASK if attributes.get(key)), None)
        if task is not None:
            self._tasks.setdefault(span.trace_id, task)
        return iter(())

    def finish(self) -> SpanStore:
        """Return the store, with the labels and the task of each trace."""
        for trace_id in self._store.traces:
            labels = self._labels.get(trace_id)
            facts = TraceFacts(
                task=self._tasks.get(trace_id),
                labels={"by_span": labels} if labels else {},
                is_id_unique=trace_id not in self._guessed,
                notes=(_NO_TRACE_ID,) if trace_id in self._guessed else (),
            )
            self._store.describe(trace_id, facts)
        return self._store


def _labels_out_of(attributes: dict[str, Any]) -> dict[str, Any]:
    """Take evaluations and expected answers out of `attributes` and return them."""
    names = [
        key for key in attributes if key.startswith(_EVALUATION) or key in _LABELS
    ]  # fmt: skip
    return {name: cell(attributes.pop(name)) for name in names}


def _identifier(value: Any) -> Any:
    """Return an id; decimal texts are the integers that they are."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value) if len(value) <= 40 else value
    return value
