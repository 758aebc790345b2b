"""The recorded model calls of each agent invocation, and of what none owns."""

from __future__ import annotations

import msgspec

from apps.engine.sequences.once import once_per_trace
from apps.engine.sequences.owners import (
    INVOCATION,
    TRACE,
    Scope,
    agent_of,
    order_of,
    owner_in_words,
    start_and_seq,
)
from apps.engine.sequences.recorded import RecordedCall, recorded_calls
from apps.engine.trace import OrderSource, Trace


class AgentCalls(msgspec.Struct, frozen=True):
    """The model calls of one agent invocation in order, or of what no invocation owns.

    `calls` holds every recorded one, also those that no sequence holds (`removed` says
    why). Calls that only share a parent step are not kept apart here.
    """

    scope: str
    invocation: int | None
    agent: str | None
    order: OrderSource
    calls: tuple[RecordedCall, ...]

    @property
    def completed(self) -> list[RecordedCall]:
        """The calls that were not left out."""
        return [entry for entry in self.calls if entry.removed is None]


@once_per_trace
def agent_calls(trace: Trace) -> tuple[AgentCalls, ...]:
    """The model calls of `trace` by owner, each in order; invocations before the rest.

    Steps in any order give the same answer. Never raises.
    """
    owners: dict[Scope, list[RecordedCall]] = {}
    for scope, calls in recorded_calls(trace).items():
        owner = scope if scope[0] == INVOCATION else (TRACE, 0)
        owners.setdefault(owner, []).extend(calls)
    return tuple([_ordered(trace, scope, calls) for scope, calls in owners.items()])


def _ordered(trace: Trace, scope: Scope, calls: list[RecordedCall]) -> AgentCalls:
    order = order_of(trace, [entry.step for entry in calls])
    if scope[0] == TRACE:
        # Calls of several parents were put one behind the other.
        calls.sort(key=_by_time if order is OrderSource.TIME else _by_place)
    return AgentCalls(
        scope=owner_in_words(scope),
        invocation=scope[1] if scope[0] == INVOCATION else None,
        agent=agent_of(trace, scope),
        order=order,
        calls=tuple(calls),
    )


def _by_time(entry: RecordedCall) -> tuple[int, int]:
    return start_and_seq(entry.step)


def _by_place(entry: RecordedCall) -> int:
    return entry.step.seq
