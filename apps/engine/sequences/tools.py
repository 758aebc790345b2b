"""The tool calls of each owner in order. Their names are read, never their content."""

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
from apps.engine.trace import OrderSource, Step, StepKind, ToolCall, Trace


class ToolSequence(msgspec.Struct, frozen=True):
    """The tool calls of one agent invocation, or of what no invocation owns.

    `names`, `steps` (their `seq`) and `calls` run in parallel. Tools that ran at the same time are here too,
    in the order in which they started: what is read of them is their mix, not a trend.
    """

    scope: str
    invocation: int | None
    agent: str | None
    order: OrderSource
    names: tuple[str, ...]
    steps: tuple[int, ...]
    calls: tuple[Step, ...]


@once_per_trace
def tool_sequences(trace: Trace) -> tuple[ToolSequence, ...]:
    """The tool calls of `trace` by owner, each in order; invocations before the rest.

    Steps in any order give the same answer. Never raises.
    """
    scopes: dict[Scope, list[Step]] = {}
    for step in trace.steps:
        if step.kind is StepKind.TOOL_CALL and isinstance(step.call, ToolCall):
            scopes.setdefault(_tool_owner(step), []).append(step)
    result = []
    for scope, steps in sorted(scopes.items()):
        order = order_of(trace, steps)
        steps.sort(key=start_and_seq if order is OrderSource.TIME else _seq)
        result.append(
            ToolSequence(
                scope=owner_in_words(scope),
                invocation=scope[1] if scope[0] == INVOCATION else None,
                agent=agent_of(trace, scope),
                order=order,
                names=tuple(
                    [s.call.name for s in steps if isinstance(s.call, ToolCall)]
                ),
                steps=tuple([s.seq for s in steps]),
                calls=tuple(steps),
            )
        )
    return tuple(result)


def outermost_calls(tools: ToolSequence) -> tuple[Step, ...]:
    """The calls without those that lie directly in a call of the same tool.

    Where two instruments record one call, its span stands inside another of its name.
    """
    names = dict(zip(tools.steps, tools.names, strict=True))
    inner = [
        at
        for at, (step, name) in enumerate(zip(tools.calls, tools.names, strict=True))
        if step.parent is not None and names.get(step.parent) == name
    ]
    if not inner:
        return tools.calls
    left_out = set(inner)
    return tuple([s for at, s in enumerate(tools.calls) if at not in left_out])


def _tool_owner(step: Step) -> Scope:
    # A tool call's parent is often the model call that asked for it, so the parent
    # would cut a trace without agents into pieces of one turn each.
    return (TRACE, 0) if step.invocation is None else (INVOCATION, step.invocation)


def _seq(step: Step) -> int:
    return step.seq


@once_per_trace
def steps_in_order(trace: Trace) -> tuple[Step, ...]:
    """The steps of `trace` by their place in it, however they are held."""
    return tuple(sorted(trace.steps, key=_seq))
