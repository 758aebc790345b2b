"""The whole content of many stored traces, in a few statements.

One by one each trace takes four statements; for many small ones that is most of the time
that checks of stored traces need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec
from django.db.models import Subquery, Sum
from django.db.models.functions import Coalesce, Length

from apps.engine.trace import Trace as EngineTrace
from apps.traces.codec import (
    INVOCATION_COLUMNS,
    STEP_COLUMNS,
    StoredBody,
    bodies_of,
    invocation_of,
    step_of,
)
from apps.traces.models import AgentInvocation, BodyChunk, Step, Trace
from apps.traces.queries import made_of

MOST_STEPS: Final = 1_000
"""Of so many steps together the rows are held at once; a larger trace comes alone."""

_STEP_FIELDS: Final = tuple(name for name, _ in STEP_COLUMNS)
_INVOCATION_FIELDS: Final = tuple(name for name, _ in INVOCATION_COLUMNS)


class StoredContent(msgspec.Struct, frozen=True):
    """A trace and its rows as they are stored: steps, chunks of bodies, invocations."""

    trace: Trace
    steps: list[dict[str, Any]]
    chunks: list[tuple[int, bytes]]
    invocations: list[dict[str, Any]]

    def decoded(self) -> EngineTrace:
        """The trace as the engine knows it; raises what the codec raises of bad rows."""
        bodies: dict[int, StoredBody] = {}
        for first_seq, data in self.chunks:
            bodies.update(bodies_of(first_seq, data))
        steps = tuple(step_of(row, bodies.get(row["seq"])) for row in self.steps)
        return made_of(self.trace, steps, tuple(map(invocation_of, self.invocations)))


def stored_contents(traces: Sequence[Trace]) -> Iterator[StoredContent]:
    """The content of each trace, in their order; three statements for 1,000 steps."""
    for group in _groups(traces):
        ids = [trace.pk for trace in group]
        steps = _by_trace(Step, "seq", _STEP_FIELDS, ids)
        invocations = _by_trace(AgentInvocation, "number", _INVOCATION_FIELDS, ids)
        chunks = _by_trace(BodyChunk, "first_seq", ("first_seq", "data"), ids)
        for trace in group:
            yield StoredContent(
                trace=trace,
                steps=steps.pop(trace.pk, []),
                chunks=[
                    (row["first_seq"], bytes(row["data"]))
                    for row in chunks.pop(trace.pk, [])
                ],
                invocations=invocations.pop(trace.pk, []),
            )


def packed_sizes(trace_ids: Collection[int]) -> dict[int, int]:
    """The bytes of the packed texts of each trace, 0 for none. One query."""
    chunks = BodyChunk.objects.filter(trace_id__in=trace_ids).order_by()
    rows = chunks.values("trace_id").annotate(size=Sum(Length("data")))
    return dict.fromkeys(trace_ids, 0) | {row["trace_id"]: row["size"] for row in rows}


def packed_size(trace_id: int) -> Coalesce:
    """The bytes of the packed texts of one trace, as a part of another query."""
    chunks = BodyChunk.objects.filter(trace_id=trace_id).order_by()
    sums = chunks.values("trace_id").annotate(size=Sum(Length("data"))).values("size")
    return Coalesce(Subquery(sums), 0)


def _groups(traces: Sequence[Trace]) -> Iterator[list[Trace]]:
    taken: list[Trace] = []
    steps = 0
    for trace in traces:
        if taken and steps + trace.step_count > MOST_STEPS:
            yield taken
            taken, steps = [], 0
        taken.append(trace)
        steps += trace.step_count
    if taken:
        yield taken


def _by_trace(
    model: Any, order: str, fields: Sequence[str], ids: list[int]
) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    rows = model.objects.filter(trace_id__in=ids).order_by("trace_id", order)
    names = dict.fromkeys(("trace_id", *fields))
    for row in rows.values(*names):
        found[row["trace_id"]].append(row)
    return found
