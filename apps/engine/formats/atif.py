"""Reader of ATIF trajectories (Agent Trajectory Interchange Format), versions 1.x.

Harbor, Terminal-Bench and others write them. The file says what the agent did, not
whether it solved the task: that is in the result of the trial beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.atif.traces import is_trajectory, trace_of_trajectory
from apps.engine.reading.json_gate import (
    Record,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record

_NOTHING: Final = "The file holds no trajectory."


class Atif:
    """The format `atif`."""

    slug = "atif"
    label = "ATIF trajectory"
    version = 1
    description = (
        "A trajectory in the Agent Trajectory Interchange Format (schema_version "
        "ATIF-v1.x), as Harbor and Terminal-Bench write it. Steps that are one model "
        "call are joined."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first record names a version of ATIF."""
        return is_trajectory(first_record(source))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each trajectory; `UnreadableTrace` when there is none."""
        return demand_a_trace(read_each(source, _traces, unroll=True), nothing=_NOTHING)


def _traces(record: Record) -> Iterator[Item]:
    value: Any = record.value
    yield trace_of_trajectory(value, number=record.number)
