"""Reader of any-agent's traces: {spans: [...]} with SDK spans and integer ids.

Each record is one run. Its `final_output` is the answer of the run, no verdict, so
it becomes no outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.engine.format import Item, Source
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
    refused_part,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.sdk_spans import is_sdk_span, record_of
from apps.engine.reading.span_records import span_of
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import Span, SpanStore, TraceFacts


class AnyAgent:
    """The format `any-agent`."""

    slug = "any-agent"
    label = "any-agent traces"
    version = 1
    description = (
        "Agent traces of any-agent: an object with spans, each with a context, a "
        "parent and GenAI attributes, as one document or one a line. Trace ids are "
        "read as 128-bit integers."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first record is an object with a list of SDK spans."""
        record = first_record(source)
        spans = record.get("spans") if isinstance(record, dict) else None
        if not isinstance(spans, list) or not spans:
            return False
        return is_sdk_span(spans[0])

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        return demand_a_trace(_items(source), nothing="The file holds no spans.")


def _items(source: Source) -> Iterator[Item]:
    store = SpanStore()

    def take(record: Record) -> Iterator[Item]:
        return _take(record, store)

    yield from read_each(source, take, unroll=True)
    yield from traces_of(store)


def _take(record: Record, store: SpanStore) -> Iterator[Item]:
    value = record.value
    spans = value.get("spans") if isinstance(value, dict) else None
    if not isinstance(spans, list):
        raise RefusedRecord("This is no trace of any-agent: it has no spans.", "$")
    for index, raw in enumerate(spans):
        try:
            span = _span(raw)
        except RefusedRecord as refusal:
            yield refused_part(f"{record.place}, $.spans[{index}]", refusal, raw)
            continue
        store.add(span)
        store.describe(span.trace_id, _facts(value))
    if not spans:
        raise RefusedRecord("The trace has no spans.", "$.spans")


def _span(raw: Any) -> Span:
    if not is_sdk_span(raw):
        raise RefusedRecord("This is not a span.")
    return span_of(record_of(raw))


def _facts(value: dict[str, Any]) -> TraceFacts:
    kept = {
        key: item
        for key, item in value.items()
        if key != "spans" and item is not None
    }  # fmt: skip
    return TraceFacts(metadata=kept)
