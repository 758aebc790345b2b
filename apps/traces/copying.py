"""Writing traces by COPY: their rows, invocations, steps and body chunks.

Ids are drawn from the sequence first, so that everything of a batch goes in by COPY;
Django's bulk_create costs ten times as much per row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from django.db import connection
from psycopg.types.json import Jsonb, set_json_dumps

from apps.engine.format import Opened
from apps.engine.trace import Trace as EngineTrace
from apps.engine.traits import traits_of
from apps.traces.codec import (
    INVOCATION_COLUMNS,
    STEP_COLUMNS,
    Counts,
    body_chunks,
    invocation_row,
    step_row,
)
from apps.traces.models import Upload

Columns = Sequence[tuple[str, str]]

_CHUNK_COLUMNS = (("trace_id", "int8"), ("first_seq", "int4"), ("data", "bytea"))
_TRACE_COLUMNS = (
    ("id", "int8"),
    ("project_id", "int8"),
    ("upload_id", "int8"),
    ("ordinal", "int4"),
    ("native_id", "text"),
    ("content_hash", "text"),
    ("name", "text"),
    ("format", "text"),
    ("session", "text"),
    ("task_id", "int8"),
    ("trial", "int4"),
    ("is_task_set", "bool"),
    ("input_hash", "text"),
    ("start_ns", "int8"),
    ("end_ns", "int8"),
    ("order", "text"),
    ("outcome", "text"),
    ("outcome_score", "float8"),
    ("outcome_out_of", "float8"),
    ("outcome_label", "text"),
    ("outcome_source", "text"),
    ("step_count", "int4"),
    ("model_call_count", "int4"),
    ("tool_call_count", "int4"),
    ("usage_known", "int4"),
    ("error_count", "int4"),
    ("signal_count", "int4"),
    ("models_seen", "text[]"),
    ("agents_seen", "text[]"),
    ("metadata", "jsonb"),
    ("labels", "jsonb"),
    ("notes", "jsonb"),
    ("traits", "text[]"),
    ("is_replay", "bool"),
)


class NewTrace(msgspec.Struct, frozen=True):
    """A trace that is about to be written: its place, hash, counts and reader.

    `input_hash` is that of the root input, by which its trials are found.
    """

    ordinal: int
    content_hash: str
    trace: EngineTrace
    counts: Counts
    reader: Opened
    input_hash: str | None = None
    is_replay: bool = False


class StoredTrace(msgspec.Struct, frozen=True):
    """A trace that was written, with its id."""

    trace_id: int
    content_hash: str
    trace: EngineTrace


def copy_rows(table: str, columns: Columns, rows: Iterator[tuple[Any, ...]]) -> None:
    """COPY `rows` into `table`; each row has a value for each column, in order.

    Raises Django's database errors, like every other statement.
    """
    names = ", ".join(f'"{name}"' for name, _ in columns)
    statement = f"COPY {table} ({names}) FROM STDIN (FORMAT BINARY)"
    with connection.cursor() as cursor, connection.wrap_database_errors:
        set_json_dumps(msgspec.json.encode, cursor.cursor)
        with cursor.copy(statement) as copy:
            copy.set_types([kind for _, kind in columns])
            for row in rows:
                copy.write_row(row)


def _new_ids(count: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('traces_trace', 'id')) "
            "FROM generate_series(1, %s)",
            [count],
        )
        return [row[0] for row in cursor.fetchall()]


def _trace_row(
    trace_id: int, new: NewTrace, upload: Upload, task_ids: Mapping[str, int]
) -> tuple[Any, ...]:
    trace, outcome, counts = new.trace, new.trace.outcome, new.counts
    return (
        trace_id,
        upload.project_id,
        upload.pk,
        new.ordinal,
        trace.native_id,
        new.content_hash,
        trace.name[:300],
        new.reader.format,
        (trace.session or "")[:200],
        task_ids.get(trace.task) if trace.task else None,
        trace.trial,
        False,
        new.input_hash,
        trace.start_ns,
        trace.end_ns,
        trace.order.value,
        outcome.kind.value,
        outcome.score,
        outcome.out_of,
        (outcome.label or "")[:200],
        (outcome.source or "")[:200],
        counts.steps,
        counts.model_calls,
        counts.tool_calls,
        counts.usage_known,
        counts.errors,
        0,
        list(counts.models),
        list(counts.agents),
        Jsonb(trace.metadata),
        Jsonb(trace.labels),
        Jsonb(trace.notes),
        list(traits_of(trace)),
        new.is_replay,
    )


def copy_traces(
    *, upload: Upload, new: Sequence[NewTrace], task_ids: Mapping[str, int]
) -> list[StoredTrace]:
    """Write traces with everything in them, inside the caller's transaction."""
    stored = [
        StoredTrace(trace_id, item.content_hash, item.trace)
        for trace_id, item in zip(_new_ids(len(new)), new, strict=True)
    ]
    copy_rows(
        "traces_trace",
        _TRACE_COLUMNS,
        (
            _trace_row(s.trace_id, item, upload, task_ids)
            for s, item in zip(stored, new, strict=True)
        ),
    )
    _copy_content(stored)
    return stored


def copy_over(
    *,
    trace_id: int,
    upload: Upload,
    new: NewTrace,
    task_ids: Mapping[str, int],
    kept: Collection[str],
) -> StoredTrace:
    """Write a trace over another one, whose row it takes but for the columns `kept`.

    Runs inside the caller's transaction, which holds the row. What points at the trace
    goes on doing so; what was said of the old content is the caller's to replace.
    """
    row = zip(_TRACE_COLUMNS, _trace_row(trace_id, new, upload, task_ids), strict=True)
    values = {name: value for (name, _), value in row if name not in kept}
    values["scored_as"] = ""
    # Never deleted and inserted: whoever waits for the row would find none.
    changes = ", ".join(f'"{name}" = %s' for name in values)
    with connection.cursor() as cursor:
        set_json_dumps(msgspec.json.encode, cursor.cursor)
        for table in ("agentinvocation", "step", "bodychunk"):
            cursor.execute(
                f"DELETE FROM traces_{table} WHERE trace_id = %s",  # noqa: S608
                [trace_id],
            )
        cursor.execute(
            f"UPDATE traces_trace SET {changes} WHERE id = %s",  # noqa: S608
            [*values.values(), trace_id],
        )
    stored = StoredTrace(trace_id, new.content_hash, new.trace)
    _copy_content([stored])
    return stored


def _copy_content(stored: Sequence[StoredTrace]) -> None:
    copy_rows(
        "traces_agentinvocation",
        INVOCATION_COLUMNS,
        (invocation_row(s.trace_id, i) for s in stored for i in s.trace.invocations),
    )
    copy_rows(
        "traces_step",
        STEP_COLUMNS,
        (step_row(s.trace_id, step) for s in stored for step in s.trace.steps),
    )
    copy_rows(
        "traces_bodychunk",
        _CHUNK_COLUMNS,
        (
            (s.trace_id, first, data)
            for s in stored
            for first, data in body_chunks(s.trace.steps)
        ),
    )
