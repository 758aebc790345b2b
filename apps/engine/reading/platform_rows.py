"""Spans out of the rows of tracing platforms, which have fields instead of attributes.

A platform's row is a span with a kind of its own; what it means is decided by the
reader of that platform and written into `Facts`. Ids are kept as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.json_values import embedded
from apps.engine.reading.json_words import visible
from apps.engine.reading.recorded import first_of
from apps.engine.reading.spans import STATUS_ERROR, STATUS_OK, Facts, Span
from apps.engine.reading.text_limits import IDENTIFIER
from apps.engine.reading.token_counts import Counts

Row = dict[str, Any]

_TRIALS: Final = ("trial", "trial_index", "trial_number", "repetition", "epoch")
_TASKS: Final = ("task", "task_id", "task_name", "test_case_id", "example_id")


class Placed(msgspec.Struct, kw_only=True):
    """Where a row stands in its trace, in the words of its platform.

    `failed` is None where the row does not say how it ended.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: Any = None
    start: Any = None
    end: Any = None
    failed: bool | None = None
    message: Any = None
    attributes: dict[str, Any] = {}


def span_of_row(placed: Placed, facts: Facts) -> Span:
    """Return the span of a row; times of all kinds become nanoseconds."""
    status = {None: 0, False: STATUS_OK, True: STATUS_ERROR}[placed.failed]
    name, message = placed.name, placed.message
    return Span(
        trace_id=placed.trace_id,
        span_id=placed.span_id,
        parent_id=placed.parent_id,
        name=name if isinstance(name, str) else "",
        start_ns=any_time_ns(placed.start),
        end_ns=any_time_ns(placed.end),
        unit=None,
        status=status,
        status_message=message if isinstance(message, str) else "",
        attributes=placed.attributes,
        events=[],
        resource={},
        scope="",
        facts=facts,
    )


def row_id(value: Any) -> str | None:
    """Return an id as it is, cut at the limit of ids; `None` for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**40 else ""
    if not isinstance(value, str) or not value.strip():
        return None
    return visible(value[:IDENTIFIER])


def demanded(row: Any, keys: tuple[str, ...], what: str) -> str:
    """Return the id at one of `keys`; raise `RefusedRecord` where there is none."""
    found = row_id(first_of(row, keys)) if isinstance(row, dict) else None
    if found is None:
        raise RefusedRecord(f"The {what} has no {keys[0]}.", f"$.{keys[0]}")
    return found


def opened(value: Any) -> Any:
    """Return what a text of JSON holds, through as many layers as there are, up to 4."""
    for _ in range(4):
        inner = embedded(value)
        if inner is value and _is_quoted(value):
            inner = _unquoted(value)
        if inner is value:
            return value
        value = inner
    return value


def _is_quoted(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) > 1
        and value.startswith('"')
        and value.endswith('"')
    )


def _unquoted(value: str) -> Any:
    try:
        inner = msgspec.json.decode(value.encode("utf-8", "replace"))
    except (msgspec.DecodeError, ValueError):
        return value
    return visible(inner) if isinstance(inner, str) else value


def opened_object(value: Any) -> dict[str, Any]:
    """Return an object, opened where it is a text of JSON; anything else is empty."""
    inner = opened(value)
    return inner if isinstance(inner, dict) else {}


def opened_list(value: Any) -> list[Any]:
    """Return a list, opened where it is a text of JSON; anything else is empty."""
    inner = opened(value)
    return inner if isinstance(inner, list) else []


def rows_in(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield path and value of each element of the lists at `keys` of an object."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, list):
            for index, item in enumerate(found):
                yield f"$.{key}[{index}]", item


def reported(counts: Counts) -> Counts | None:
    """Return the counts where at least one is recorded, else `None`."""
    known = (
        counts.input_total, counts.output_total, counts.total, counts.input_cached,
        counts.input_cache_write, counts.output_reasoning,
    )  # fmt: skip
    return None if all(count is None for count in known) else counts


def task_in(metadata: Row) -> Any:
    """Return the task that metadata of a trace names by convention."""
    found = first_of(metadata, _TASKS)
    return found if isinstance(found, str | int) else None


def trial_in(metadata: Row) -> Any:
    """Return the number of the repeat that metadata of a trace names by convention."""
    return first_of(metadata, _TRIALS)


def kept(row: Row, read: frozenset[str]) -> dict[str, Any] | None:
    """Return what a row says beside the fields in `read`, without what is empty."""
    left = {
        key: item
        for key, item in row.items()
        if key not in read and item is not None and item not in ("", [], {})
    }
    return left or None


def trace_wide(metadata: Row, session: Any) -> Row:
    """Return what a row says of its whole trace, under the names of attributes."""
    told = {
        "session.id": session,
        "metadata.task": task_in(metadata),
        "metadata.trial": trial_in(metadata),
    }
    return {key: value for key, value in told.items() if value is not None}
