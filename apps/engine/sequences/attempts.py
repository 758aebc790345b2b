"""One call tried again and again: the attempts of model calls and of tool calls.

Only what the structure shows to be the same call is an attempt of it. That a model
asks for the same tool once more is its decision and another call.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

import msgspec

from apps.engine.sequences.agents import agent_calls
from apps.engine.sequences.owners import INVOCATION, start_and_seq
from apps.engine.sequences.recorded import RecordedCall, Removal, recorded_calls
from apps.engine.sequences.tools import ToolSequence, outermost_calls, tool_sequences
from apps.engine.trace import (
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
)

_NOT_ATTEMPTS: Final = frozenset(
    {Removal.PLACEHOLDER, Removal.DUPLICATE, Removal.WRAPPER}
)


class Attempts(msgspec.Struct, frozen=True):
    """The attempts of one call in order: at least 2 steps of one kind and owner."""

    invocation: int | None
    steps: tuple[Step, ...]

    @property
    def succeeded(self) -> bool:
        """Whether the last attempt is not recorded as failed."""
        return self.steps[-1].status is not StepStatus.ERROR

    @property
    def is_tool(self) -> bool:
        """Whether a tool was called, not a model."""
        return self.steps[0].kind is StepKind.TOOL_CALL


def attempts_of(trace: Trace) -> Iterator[Attempts]:
    """Every call of `trace` that was attempted more than once, owner by owner.

    A model call is attempted again where a later one says so (`retry_of`) or where the
    next one of its owner follows a failure with the same model. A tool call is where
    the next one of its owner has the same name, the one before failed and was over,
    no model was asked in between, and no different call ids tell them apart.
    Steps in any order give the same answer. Never raises.
    """
    for (rank, number), calls in recorded_calls(trace).items():
        if any(entry.removed is Removal.RETRIED for entry in calls):
            owner = number if rank == INVOCATION else None
            for chain in _chains(calls):
                yield Attempts(owner, tuple([entry.step for entry in chain]))
    for tools in tool_sequences(trace):
        if any(step.status is StepStatus.ERROR for step in tools.calls):
            yield from _runs(trace, tools, outermost_calls(tools))


def _chains(calls: list[RecordedCall]) -> list[list[RecordedCall]]:
    """The attempts of each model call, only of those that have several."""
    attempts = [entry for entry in calls if entry.removed not in _NOT_ATTEMPTS]
    linked = {entry.call.retry_of for entry in attempts}
    found: list[list[RecordedCall]] = []
    chain_of: dict[int, list[RecordedCall]] = {}
    following: list[RecordedCall] | None = None
    for entry in attempts:
        if entry.call.retry_of is None:
            chain = following
        else:
            chain = chain_of.get(entry.call.retry_of)
        if chain is None:
            chain = []
            found.append(chain)
        chain.append(entry)
        chain_of[entry.step.seq] = chain
        # A failure that a later call names as retried is not continued by the next.
        is_followed = entry.removed is Removal.RETRIED and entry.step.seq not in linked
        following = chain if is_followed else None
    return [chain for chain in found if len(chain) > 1]


def _runs(
    trace: Trace, tools: ToolSequence, calls: tuple[Step, ...]
) -> Iterator[Attempts]:
    is_timed = tools.order is OrderSource.TIME
    run: list[Step] = []
    asked: list[tuple[int, int]] | None = None
    for step in calls:
        if run and _may_be_again(run[-1], step, is_timed=is_timed):
            if asked is None:
                asked = _model_calls(trace, tools.invocation, is_timed=is_timed)
            one = _place(run[-1], is_timed=is_timed)
            other = _place(step, is_timed=is_timed)
            if bisect_right(asked, one) == bisect_left(asked, other):
                run.append(step)
                continue
        if len(run) > 1:
            yield Attempts(tools.invocation, tuple(run))
        run = [step]
    if len(run) > 1:
        yield Attempts(tools.invocation, tuple(run))


def _may_be_again(failed: Step, later: Step, *, is_timed: bool) -> bool:
    """Whether `later` may be the failed call once more: all but the model in between."""
    one, other = failed.call, later.call
    if failed.status is not StepStatus.ERROR:
        return False
    if not isinstance(one, ToolCall) or not isinstance(other, ToolCall):
        return False
    if one.name != other.name or _differ(one.call_id, other.call_id):
        return False
    if not is_timed:
        return True
    start = later.start_ns
    return failed.end_ns is not None and start is not None and start >= failed.end_ns


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _model_calls(
    trace: Trace, invocation: int | None, *, is_timed: bool
) -> list[tuple[int, int]]:
    """Where the model calls of an owner stand in the order of its tool calls."""
    return sorted(
        _place(entry.step, is_timed=is_timed)
        for owner in agent_calls(trace)
        if owner.invocation == invocation
        for entry in owner.calls
    )


def _place(step: Step, *, is_timed: bool) -> tuple[int, int]:
    return start_and_seq(step) if is_timed else (0, step.seq)
