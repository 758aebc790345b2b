"""Reader of Phoenix's span exports as Parquet, where pyarrow is installed.

The file is read in batches of rows, so that memory follows the batch and the spans,
not the file. Without pyarrow the file is recognised and refused with a sentence.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from datetime import date, datetime
from types import ModuleType
from typing import Any, Final

from apps.engine.format import Item, Progress, Rejected, Source, UnreadableTrace
from apps.engine.privacy.sealed import ScratchFile, scratch_file
from apps.engine.reading.json_gate import RefusedRecord, demand_a_trace
from apps.engine.reading.json_values import made_visible
from apps.engine.reading.phoenix_rows import SPAN_COLUMNS, PhoenixRows
from apps.engine.reading.span_traces import traces_of

MAGIC: Final = b"PAR1"
_BATCH: Final = 256
_IN_MEMORY: Final = 16 * 1024 * 1024
_PIECE: Final = 1024 * 1024
_NOT_INSTALLED: Final = (
    "This is a Parquet file, and pyarrow, which reads it, is not installed. Run "
    "`.venv/bin/pip install pyarrow` and start Evalsite again, or export the spans as "
    "CSV or JSON lines."
)
_NO_SPANS: Final = (
    "The Parquet file is no table of spans: it lacks the columns context.span_id and "
    "context.trace_id."
)


class PhoenixParquet:
    """The format `phoenix-parquet`."""

    slug = "phoenix-parquet"
    label = "Phoenix spans (Parquet)"
    version = 1
    description = (
        "A data frame of spans that Phoenix wrote as Parquet (columns "
        "context.span_id, attributes.*). Needs `.venv/bin/pip install pyarrow`."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the bytes begin like a Parquet file."""
        return source.head.startswith(MAGIC)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        try:
            parquet = importlib.import_module("pyarrow.parquet")
        except ImportError:
            raise UnreadableTrace(_NOT_INSTALLED) from None
        return demand_a_trace(
            _items(source, parquet), nothing="The table of spans has no rows."
        )


def _items(source: Source, parquet: ModuleType) -> Iterator[Item]:
    yield from source.notes
    taker = PhoenixRows()
    with scratch_file(_IN_MEMORY) as file:
        size = _copied(source, file)
        number = 0
        for batch in _batches(file, parquet):
            for row in batch:
                number += 1
                yield from _taken(taker, row, number)
            yield Progress(size, source.size)
    yield from source.remarks()
    yield from traces_of(taker.finish())


def _copied(source: Source, file: ScratchFile) -> int:
    """Copy the stream to where it can be read from its end; return its size."""
    size = 0
    while piece := source.stream.read(_PIECE):
        size += file.write(piece)
    file.seek(0)
    return size


def _taken(taker: PhoenixRows, row: dict[str, Any], number: int) -> Iterator[Rejected]:
    try:
        taker.take(row)
    except RefusedRecord as refusal:
        name = str(row.get("name") or "")[:120]
        yield Rejected(f"row {number}", refusal.reason, name)


def _batches(file: ScratchFile, parquet: ModuleType) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows in batches; `UnreadableTrace` for damaged files and other tables."""
    arrow = importlib.import_module("pyarrow")
    try:
        table = parquet.ParquetFile(file, buffer_size=_PIECE, pre_buffer=False)
        if not set(table.schema_arrow.names) >= SPAN_COLUMNS:
            raise UnreadableTrace(_NO_SPANS)
        for batch in table.iter_batches(batch_size=_BATCH):
            yield _rows(batch, arrow)
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as problem:
        reason = str(problem).splitlines()[0][:200] if str(problem) else "no reason"
        raise UnreadableTrace(
            f"The Parquet file is damaged or cut off ({reason})."
        ) from None


def _rows(batch: Any, arrow: ModuleType) -> list[dict[str, Any]]:
    """Return the rows of a batch as JSON values; times as nanoseconds."""
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if arrow.types.is_timestamp(column.type):
            column = column.cast(arrow.timestamp("ns", tz=column.type.tz))
            column = column.cast(arrow.int64())
        columns[name] = column.to_pylist()
    return [
        {name: _plain(column[at]) for name, column in columns.items()}
        for at in range(batch.num_rows)
    ]


def _plain(value: Any) -> Any:
    """Return a value of a cell as JSON: bytes and times as texts, NaN as nothing."""
    if isinstance(value, dict):
        return {
            str(key): _plain(item) for key, item in value.items() if item is not None
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, bytes):
        return made_visible(value.decode("utf-8", "replace"))
    if isinstance(value, datetime | date):
        return value.isoformat()
    return made_visible(value) if isinstance(value, str) else _other(value)


def _other(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int) else str(value)
