"""Reader of what OpenTelemetry's console exporters print: span objects one by one.

The objects are pretty JSON after one another, with or without a list around them;
lines of a program's own between them are rejected with their place. What the
attributes mean is decided in one place for all span formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apps.engine.format import Item, Source
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.sdk_spans import is_sdk_span, record_of
from apps.engine.reading.span_records import span_of
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import SpanStore

# A console mixes spans with other output, which may come first.
_PRINTED: Final = re.compile(
    rb'^\{\s*"name": "[^\n]*\n\s*"context": \{\s*"trace_id": "0x', re.MULTILINE
)


class OtelConsole:
    """The format `otel-console`."""

    slug = "otel-console"
    label = "OpenTelemetry console output"
    version = 1
    description = (
        "Spans as the console exporter of an OpenTelemetry SDK prints them: JSON "
        "objects with context, parent_id and attributes, one after another. Other "
        "lines of the program between them are listed as not read."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first value is a printed span, or one follows other output."""
        if not source.is_text:
            return False
        return is_sdk_span(first_record(source)) or bool(_PRINTED.search(source.head))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        return demand_a_trace(_items(source), nothing="The file holds no spans.")


def _items(source: Source) -> Iterator[Item]:
    store = SpanStore()

    def take(record: Record) -> Iterator[Item]:
        if not is_sdk_span(record.value):
            raise RefusedRecord("This is not a printed span.", "$")
        store.add(span_of(record_of(record.value)))
        return iter(())

    yield from read_each(source, take, unroll=True)
    yield from traces_of(store)
