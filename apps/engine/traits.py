"""What is recorded about how a trace went: names by which traces can be grouped.

A trait is read from the recording and says nothing about quality: a trace whose last
model call stopped by itself has "converged", whatever it answered.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from apps.engine.sequences import RecordedCall, Removal, recorded_calls
from apps.engine.sequences.owners import INVOCATION, Scope
from apps.engine.trace import (
    FinishReason,
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    Trace,
)


class Trait(StrEnum):
    """One recorded property of a whole trace."""

    CAPPED = "capped"
    CONTENT_FILTERED = "content_filtered"
    CONTEXT_RESET = "context_reset"
    CONVERGED = "converged"
    FAILED_CALLS = "failed_calls"
    FILE_ORDER = "file_order"
    MODEL_SWITCHED = "model_switched"
    MULTI_AGENT = "multi_agent"
    NO_MODEL_CALLS = "no_model_calls"
    NO_TOOL_CALLS = "no_tool_calls"
    PARALLEL_CALLS = "parallel_calls"
    RETRIED = "retried"
    TOOL_ERRORS = "tool_errors"
    UNFINISHED = "unfinished"
    USAGE_COMPLETE = "usage_complete"
    USAGE_MISSING = "usage_missing"


TRAIT_WORDS: Final[dict[Trait, str]] = {
    Trait.CAPPED: "A model call was cut off at its length limit",
    Trait.CONTENT_FILTERED: "A model call was stopped by a content filter",
    Trait.CONTEXT_RESET: "The context was reset",
    Trait.CONVERGED: "The last model call stopped by itself",
    Trait.FAILED_CALLS: "A model call failed and was not retried",
    Trait.FILE_ORDER: "The order of the steps is that of the file",
    Trait.MODEL_SWITCHED: "An agent used more than one model",
    Trait.MULTI_AGENT: "More than one agent",
    Trait.NO_MODEL_CALLS: "No model call is recorded",
    Trait.NO_TOOL_CALLS: "No tool call is recorded",
    Trait.PARALLEL_CALLS: "Model calls overlap in time",
    Trait.RETRIED: "A model call was retried",
    Trait.TOOL_ERRORS: "A tool call ended with an error",
    Trait.UNFINISHED: "A step has no recorded end",
    Trait.USAGE_COMPLETE: "Every model call has its token usage",
    Trait.USAGE_MISSING: "A model call has no token usage",
}


def traits_of(trace: Trace) -> tuple[str, ...]:
    """The traits of `trace`, sorted by name; the same steps in any order the same.

    Repeated lines of one response are one call, and placeholders, wrappers and
    attempts that failed are no calls here. Takes time in proportion to the steps.
    """
    found: set[str] = set()
    if trace.order is OrderSource.FILE:
        found.add(Trait.FILE_ORDER)
    if len({one.agent for one in trace.invocations}) > 1:
        found.add(Trait.MULTI_AGENT)
    _add_of_tools(found, trace.steps)
    _add_of_calls(found, trace)
    return tuple(sorted(map(str, found)))


def _add_of_tools(found: set[str], steps: tuple[Step, ...]) -> None:
    has_tools = False
    for step in steps:
        if step.kind is StepKind.TOOL_CALL:
            has_tools = True
            if step.status is StepStatus.ERROR:
                found.add(Trait.TOOL_ERRORS)
        if step.status is StepStatus.UNFINISHED:
            found.add(Trait.UNFINISHED)
    if not has_tools:
        found.add(Trait.NO_TOOL_CALLS)


_REMOVALS: Final = {
    Removal.RETRIED: Trait.RETRIED,
    Removal.FAILED: Trait.FAILED_CALLS,
}
_FINISHES: Final = {
    FinishReason.LENGTH: Trait.CAPPED,
    FinishReason.CONTENT_FILTER: Trait.CONTENT_FILTERED,
}


def _add_of_calls(found: set[str], trace: Trace) -> None:
    recorded = recorded_calls(trace)
    removed = {entry.removed for calls in recorded.values() for entry in calls}
    found.update(trait for why, trait in _REMOVALS.items() if why in removed)
    kept = {
        scope: members
        for scope, calls in recorded.items()
        if (members := [entry for entry in calls if entry.removed is None])
    }
    if not kept:
        found.add(Trait.NO_MODEL_CALLS)
        return
    for calls in kept.values():
        _add_of_owner(found, calls)
    if Trait.USAGE_MISSING not in found:
        found.add(Trait.USAGE_COMPLETE)
    if _last_of_root(trace, kept).finish is FinishReason.STOP:
        found.add(Trait.CONVERGED)


def _add_of_owner(found: set[str], calls: list[RecordedCall]) -> None:
    models, finishes = set(), set()
    for entry in calls:
        models.add(entry.call.model)
        if not entry.usage.is_known:
            found.add(Trait.USAGE_MISSING)
        finishes.add(entry.finish)
        if entry.call.resets_context:
            found.add(Trait.CONTEXT_RESET)
        if entry.parallel:
            found.add(Trait.PARALLEL_CALLS)
    found.update(trait for finish, trait in _FINISHES.items() if finish in finishes)
    if len(models - {None}) > 1:
        found.add(Trait.MODEL_SWITCHED)


def _last_of_root(trace: Trace, kept: dict[Scope, list[RecordedCall]]) -> RecordedCall:
    """The last call that no other agent asked for; of all calls where there is none."""
    last = [calls[-1] for scope, calls in kept.items() if _is_root(trace, scope)]
    if not last:
        last = [calls[-1] for calls in kept.values()]
    if trace.order is OrderSource.FILE or any(
        entry.step.start_ns is None for entry in last
    ):
        return max(last, key=lambda entry: entry.step.seq)
    return max(last, key=lambda entry: (entry.step.start_ns or 0, entry.step.seq))


def _is_root(trace: Trace, scope: Scope) -> bool:
    rank, number = scope
    if rank != INVOCATION or not 0 <= number < len(trace.invocations):
        return True
    return trace.invocations[number].parent is None
