"""Who owns a step, and what the order of an owner's steps rests on."""

from __future__ import annotations

from typing import Final, TypeAlias

from apps.engine.trace import OrderSource, Step, Trace

Scope: TypeAlias = tuple[int, int]
"""What owns a step: its rank (invocation, parent, trace) and its number there."""

INVOCATION: Final = 0
PARENT: Final = 1
TRACE: Final = 2


def order_of(trace: Trace, steps: list[Step]) -> OrderSource:
    """What the order of `steps` rests on: time only if every one of them has a start.

    One missing start makes the whole owner fall back to the order of the file.
    """
    if trace.order is OrderSource.FILE:
        return OrderSource.FILE
    if any(step.start_ns is None for step in steps):
        return OrderSource.FILE
    return OrderSource.TIME


def owner_in_words(scope: Scope) -> str:
    """`invocation 2`, `step 7` or `trace`: stable, and counted from 1."""
    rank, number = scope
    if rank == TRACE:
        return "trace"
    return f"{'invocation' if rank == INVOCATION else 'step'} {number + 1}"


def agent_of(trace: Trace, scope: Scope) -> str | None:
    """The name of the agent that owns `scope`, where one is recorded."""
    rank, number = scope
    if rank != INVOCATION or not 0 <= number < len(trace.invocations):
        return None
    return trace.invocations[number].agent


def start_and_seq(step: Step) -> tuple[int, int]:
    """The sorting key of an order by time; the place in the trace settles ties."""
    return (step.start_ns or 0, step.seq)
