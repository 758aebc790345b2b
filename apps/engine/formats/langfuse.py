"""Reader of Langfuse: downloads of a trace, pages of its API, and batch exports.

A download holds its observations twice; those inside the trace lack input and output,
so the list beside it is read first. A model call is a GENERATION with no other one
below it. Langfuse counts tokens itself where an SDK sent none: such counts are marked
as its estimate where the file lets one know, and are otherwise taken as reported.
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
from apps.engine.reading.langfuse.rows import (
    PARENT_ID,
    STAGES,
    TRACE_ID,
    bare_trace,
    facts_of_observation,
    facts_of_trace,
    is_observation,
    is_stage,
    is_trace,
    span_of_observation,
)
from apps.engine.reading.platform_rows import Row, demanded, row_id
from apps.engine.reading.recorded import first_of
from apps.engine.reading.rows import header_of, read_table_or_json
from apps.engine.reading.span_marks import mark_agents
from apps.engine.reading.span_traces import traces_of
from apps.engine.reading.spans import Span, SpanStore, TraceFacts
from apps.engine.reading.text_limits import Remarks

_LISTS: Final = ("data", "traces", "observations")
_NEITHER: Final = "This is neither a trace nor an observation of Langfuse."
_TRACE_COLUMNS: Final = (
    frozenset({"id", "timestamp", "sessionId", "bookmarked"}),
    frozenset({"id", "timestamp", "session_id", "user_id", "release"}),
)


class Langfuse:
    """The format `langfuse`."""

    slug = "langfuse"
    label = "Langfuse traces"
    version = 1
    description = (
        "A trace downloaded from Langfuse, traces or observations from its API, and "
        "batch exports of observations or traces as JSON, JSON lines or CSV. Scores "
        "become labels; usage that Langfuse estimated is marked where that is known."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a trace or an observation of Langfuse."""
        header = header_of(source)
        if header is not None:
            return _is_table(frozenset(header.columns))
        return any(_looks_right(value) for value in first_values(source))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trace id; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no trace of Langfuse."
        )


def _is_table(columns: frozenset[str]) -> bool:
    is_of_observations = (
        {"id", "type"} <= columns
        and not columns.isdisjoint(TRACE_ID)
        and not columns.isdisjoint({*PARENT_ID, "input"})
    )
    return is_of_observations or any(needed <= columns for needed in _TRACE_COLUMNS)


def _looks_right(value: Any) -> bool:
    if isinstance(value, list):
        return any(_is_known(item) for item in value[:3])
    return _is_known(value) or _is_page(value) or _begins_download(value)


def _begins_download(value: Any) -> bool:
    """Whether a download begins here whose head ends inside its trace."""
    return isinstance(value, dict) and is_trace(value.get("trace"))


def _is_known(value: Any) -> bool:
    return is_observation(value) or is_trace(value) or _is_download(value)


def _is_download(value: Any) -> bool:
    """Whether a value is what the page of a trace lets one download."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("trace"), dict)
        and isinstance(value.get("observations"), list)
    )


def _is_page(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    rows = [value.get(key) for key in _LISTS]
    return any(
        isinstance(found, list) and any(_is_known(item) for item in found[:3])
        for found in rows
    )


def _items(source: Source) -> Iterator[Item]:
    taker = _Taker()
    yield from read_table_or_json(source, taker)
    taker.finish()
    yield from traces_of(taker.store, _mark)


def _mark(spans: list[Span], remarks: Remarks) -> None:
    stages = sum(is_stage(span) for span in spans)
    if stages:
        remarks.add(STAGES, stages)
    mark_agents(spans, remarks)


class _Taker:
    """Takes traces and observations out of the records, in any order."""

    def __init__(self) -> None:
        self.store = SpanStore()
        self._with_spans: set[str] = set()
        self._told: dict[str, TraceFacts] = {}
        self._bare: dict[str, Row] = {}

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if _is_known(value):
            yield from self._take(value, record.place)
            return
        if not _is_page(value):
            raise RefusedRecord(_NEITHER, "$")
        for key in _LISTS:
            found = value.get(key)
            for index, item in enumerate(found if isinstance(found, list) else []):
                yield from self._try(item, f"{record.place}, $.{key}[{index}]")

    def _try(self, value: Any, place: str) -> Iterator[Item]:
        if not _is_known(value):
            yield Rejected(place, _NEITHER, excerpt(str(value)))
            return
        try:
            yield from self._take(value, place)
        except RefusedRecord as refusal:
            yield refused_part(place, refusal, value)

    def _take(self, value: Row, place: str) -> Iterator[Item]:
        if is_observation(value):
            self._observe(value)
        elif _is_download(value):
            yield from self._take_whole(value["trace"], value["observations"], place)
        else:
            yield from self._take_whole(value, [], place)

    def _take_whole(self, trace: Row, beside: list[Any], place: str) -> Iterator[Item]:
        trace_id = demanded(trace, ("id",), "trace")
        inside = trace.get("observations")
        for path, row in _merged(inside if isinstance(inside, list) else [], beside):
            # Lists of traces hold only the ids of their observations.
            if not isinstance(row, str):
                yield from self._take_inner(row, trace_id, f"{place}, {path}")
        if trace_id in self._with_spans:
            self.store.describe(trace_id, facts_of_trace(trace))
        else:
            self._bare.setdefault(trace_id, trace)

    def _take_inner(self, row: Any, trace_id: str, place: str) -> Iterator[Item]:
        if isinstance(row, dict) and first_of(row, TRACE_ID) is None:
            row = {**row, TRACE_ID[0]: trace_id}
        if not is_observation(row):
            reason = "This is no observation of Langfuse."
            yield Rejected(place, reason, excerpt(str(row)))
            return
        try:
            self._observe(row)
        except RefusedRecord as refusal:
            yield refused_part(place, refusal, row)

    def _observe(self, row: Row) -> None:
        span = span_of_observation(row)
        self.store.add(span)
        if span.trace_id not in self._with_spans:
            self._with_spans.add(span.trace_id)
            self._told[span.trace_id] = facts_of_observation(row, span.trace_id)

    def finish(self) -> None:
        """Add the traces without observations, and describe what no trace did."""
        for trace_id, trace in self._bare.items():
            if trace_id in self._with_spans:
                self.store.describe(trace_id, facts_of_trace(trace))
            else:
                span, facts = bare_trace(trace)
                self.store.describe(trace_id, facts)
                self.store.add(span)
        for trace_id, facts in self._told.items():
            self.store.describe(trace_id, facts)


def _merged(inside: list[Any], beside: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each observation once: what stands beside the trace goes before the rest."""
    fuller = {row_id(row.get("id")): row for row in beside if isinstance(row, dict)}
    seen = set()
    for index, row in enumerate(inside):
        known = row_id(row.get("id")) if isinstance(row, dict) else None
        if known is not None and known in fuller:
            seen.add(known)
            told = {
                key: item for key, item in fuller[known].items() if item is not None
            }
            yield f"$.trace.observations[{index}]", {**row, **told}
        else:
            yield f"$.trace.observations[{index}]", row
    for index, row in enumerate(beside):
        if not isinstance(row, dict) or row_id(row.get("id")) not in seen:
            yield f"$.observations[{index}]", row
