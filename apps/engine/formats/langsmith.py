"""Reader of LangSmith runs: lines, lists, pages of the API, and what SDKs send.

A batch {"post": [...], "patch": [...]} holds runs that began and what was added when
they ended; both are joined by id. An error is repeated on every run above the one
that failed: their status stays, and a note counts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Rejected, Source
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    refused_part,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.json_words import excerpt
from apps.engine.reading.langsmith_runs import (
    INTERRUPTED,
    facts_of_root,
    segments,
    span_of_run,
)
from apps.engine.reading.platform_rows import (
    Row,
    demanded,
    opened_object,
    row_id,
    rows_in,
)
from apps.engine.reading.rows import header_of, read_table_or_json
from apps.engine.reading.span_marks import mark_agents
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import STATUS_ERROR, Span, SpanStore
from apps.engine.reading.text_limits import Remarks

_LISTS: Final = ("runs", "data")
_BATCH: Final = ("post", "patch")
_NO_RUN: Final = "This is no run of LangSmith: it has no run_type and no dotted_order."
_PASSED_ON: Final = (
    "Runs that only repeat the error of a run below them: {n}. They are shown as "
    "failed, as recorded; the failure is that of the deepest one."
)
_STEERED: Final = (
    "Runs that LangGraph ended by an exception to hand over or to ask a person, not "
    "read as failures: {n}."
)


class LangSmith:
    """The format `langsmith`."""

    slug = "langsmith"
    label = "LangSmith runs"
    version = 1
    description = (
        "Runs exported from LangSmith as JSON lines, a list or pages of its API, and "
        "batches as its SDK sends them. Agents come from LangGraph's metadata, usage "
        "from the run, its metadata or its outputs."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a run or a batch of runs."""
        header = header_of(source)
        if header is not None:
            return {"id", "run_type", "trace_id"} <= set(header.columns)
        return any(_looks_right(value) for value in first_values(source))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no run of LangSmith."
        )


def _looks_right(value: Any) -> bool:
    if isinstance(value, list):
        return any(_is_run(item) for item in value[:3])
    if _is_run(value):
        return True
    return isinstance(value, dict) and any(
        _is_run(item) for _, item in rows_in(value, (*_LISTS, *_BATCH))
    )


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or row_id(value.get("id")) is None:
        return False
    if isinstance(value.get("dotted_order"), str):
        return True
    return isinstance(value.get("run_type"), str) and any(
        key in value for key in ("trace_id", "parent_run_id", "inputs", "start_time")
    )


def _items(source: Source) -> Iterator[Item]:
    taker = _Taker()
    yield from read_table_or_json(source, taker)
    yield from taker.finish()
    yield from traces_of(taker.store, _mark)


def _mark(spans: list[Span], remarks: Remarks) -> None:
    failed = {
        span.span_id: span.status_message
        for span in spans
        if span.status == STATUS_ERROR
    }
    passed_on = {
        span.parent_id
        for span in spans
        if span.span_id in failed
        and failed.get(span.parent_id or "") == span.status_message
    }
    if passed_on:
        remarks.add(_PASSED_ON, len(passed_on))
    steered = sum(
        INTERRUPTED in (span.facts.attributes or {}) for span in spans if span.facts
    )
    if steered:
        remarks.add(_STEERED, steered)
    mark_agents(spans, remarks)


class _Taker:
    """Takes runs out of the records; those of batches wait for what completes them."""

    def __init__(self) -> None:
        self.store = SpanStore()
        self._trace_of: dict[str, str] = {}
        self._waiting: dict[str, tuple[Row, str]] = {}

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if _is_run(value):
            yield from self._try(value, record.place)
            return
        pages = list(rows_in(value, _LISTS)) if isinstance(value, dict) else []
        batch = list(rows_in(value, _BATCH)) if isinstance(value, dict) else []
        if not pages and not batch:
            raise RefusedRecord(_NO_RUN, "$")
        for path, item in pages:
            yield from self._try(item, f"{record.place}, {path}")
        for path, item in batch:
            yield from self._wait(item, f"{record.place}, {path}")

    def _try(self, value: Any, place: str) -> Iterator[Item]:
        """Take a run with all that are nested in it."""
        waiting: list[tuple[Any, str, Row | None]] = [(value, place, None)]
        while waiting:
            run, here, above = waiting.pop()
            try:
                self._take(run, above)
            except RefusedRecord as refusal:
                yield refused_part(here, refusal, run)
                continue
            inner = run.get("child_runs")
            if isinstance(inner, list):
                waiting += [
                    (child, f"{here}.child_runs[{index}]", run)
                    for index, child in enumerate(inner)
                ]

    def _take(self, run: Any, above: Row | None) -> None:
        if not _is_run(run):
            raise RefusedRecord(_NO_RUN, "$")
        run_id = demanded(run, ("id",), "run")
        if above is not None and not run.get("parent_run_id"):
            run = {**run, "parent_run_id": above.get("id")}
        trace_id = self._trace_id(run, run_id)
        self._trace_of[run_id] = trace_id
        span = span_of_run(run, trace_id, run_id)
        if span.parent_id is None:
            self.store.describe(trace_id, facts_of_root(run, trace_id))
        self.store.add(span)

    def _trace_id(self, run: Row, run_id: str) -> str:
        told = row_id(run.get("trace_id"))
        if told is not None:
            return told
        path = segments(run)
        if path:
            return path[0][1]
        parent = row_id(run.get("parent_run_id"))
        return run_id if parent is None else self._trace_of.get(parent, parent)

    def _wait(self, value: Any, place: str) -> Iterator[Item]:
        run_id = row_id(value.get("id")) if isinstance(value, dict) else None
        if run_id is None:
            yield Rejected(place, "The run has no id.", excerpt(str(value)))
            return
        known, first = self._waiting.get(run_id, ({}, place))
        self._waiting[run_id] = (_joined(known, value), first)

    def finish(self) -> Iterator[Item]:
        """Take the runs of batches, now that all that was said of them is joined."""
        for run, place in self._waiting.values():
            yield from self._try(run, place)
        self._waiting.clear()


def _joined(known: Row, more: Row) -> Row:
    """Return a run with what was told of it before and after; null adds nothing."""
    told = {key: item for key, item in more.items() if item not in (None, {}, [], "")}
    joined = {**known, **told} if known else dict(more)
    one, other = opened_object(known.get("extra")), opened_object(more.get("extra"))
    if one and other:
        inner = {
            **opened_object(one.get("metadata")),
            **opened_object(other.get("metadata")),
        }
        joined["extra"] = {**one, **other, "metadata": inner}
    return joined
