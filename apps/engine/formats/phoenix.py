"""Reader of Phoenix's span exports as JSON and CSV.

The REST answer, a GraphQL answer, and data frames of spans in all orientations of
JSON, as JSON lines and as CSV, whose cells hold JSON or Python literals. What the
attributes mean (OpenInference, or any other names) is decided in one place for all
span formats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.engine.format import Item, Rejected, Source
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.phoenix_rows import (
    SPAN_COLUMNS,
    PhoenixRows,
    is_annotation,
    is_row,
    rows_in,
)
from apps.engine.reading.rows import header_of, read_rows
from apps.engine.reading.span_traces import traces_of

_ONLY_ANNOTATIONS = (
    "The file holds annotations of spans but no spans, so there is no trace; upload "
    "the spans, or both in one file."
)


class Phoenix:
    """The format `phoenix-spans`."""

    slug = "phoenix-spans"
    label = "Phoenix spans (OpenInference)"
    version = 1
    description = (
        "Spans exported from Phoenix: the REST or GraphQL answer, or a data frame of "
        "spans as JSON, JSON lines or CSV (columns context.span_id, attributes.*). "
        "Annotations are kept as labels and never shown to a check."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the header or the first record is that of Phoenix spans."""
        header = header_of(source)
        if header is not None:
            return set(header.columns) >= SPAN_COLUMNS
        record = first_record(source)
        return is_annotation(record) or _holds_a_row(record)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        taker = _Taker()
        return demand_a_trace(_items(source, taker), nothing=_ONLY_ANNOTATIONS)


def _holds_a_row(record: Any) -> bool:
    """Whether a span can be seen; an OTLP span that stands alone is not Phoenix's."""
    if not isinstance(record, dict):
        return False
    if "start_time_unix_nano" in record:
        return False
    row = next(iter(rows_in(record)), None)
    return row is not None and (is_row(row) or is_annotation(row) or "span_kind" in row)


def _items(source: Source, taker: _Taker) -> Iterator[Item]:
    if header_of(source) is not None:
        yield from read_rows(source, taker.row)
    else:
        yield from read_each(source, taker.record, unroll=True)
    yield from traces_of(taker.rows.finish())


class _Taker:
    """Takes the rows of each record."""

    def __init__(self) -> None:
        self.rows = PhoenixRows()

    def row(self, record: Record) -> Iterator[Item]:
        """Take a row of a table."""
        self.rows.take(record.value)
        return iter(())

    def record(self, record: Record) -> Iterator[Item]:
        """Take all rows inside a JSON value; a bad one does not stop the others."""
        found = False
        for index, row in enumerate(rows_in(record.value)):
            found = True
            try:
                self.rows.take(row)
            except RefusedRecord as refusal:
                yield Rejected(
                    place=f"{record.place}, span {index + 1}",
                    reason=refusal.reason,
                    excerpt=str(row.get("name") or "")[:120],
                )
        if not found:
            raise RefusedRecord("This is not a span of Phoenix.", "$")
