"""Model calls as they were recorded: repeats folded, wrappers and retries marked."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from apps.engine.sequences.once import once_per_trace
from apps.engine.sequences.owners import (
    INVOCATION,
    PARENT,
    TRACE,
    Scope,
    order_of,
    start_and_seq,
)
from apps.engine.trace import (
    FinishReason,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    Trace,
    Usage,
)


class Removal(StrEnum):
    """Why a recorded model call is no member of any sequence."""

    PLACEHOLDER = "placeholder"
    DUPLICATE = "duplicate"
    WRAPPER = "wrapper"
    RETRIED = "retried"
    FAILED = "failed"


class RecordedCall(msgspec.Struct):
    """A model call as it was recorded, with why it was left out, if it was.

    Repeated lines of one response are already one call here: the largest counts that
    any of them gave, the latest end and finish reason.
    """

    step: Step
    call: ModelCall
    usage: Usage
    end_ns: int | None
    finish: FinishReason
    removed: Removal | None = None
    parallel: bool = False


@once_per_trace
def recorded_calls(trace: Trace) -> dict[Scope, list[RecordedCall]]:
    """Every model call of `trace` by owner, in order, with what was removed and why.

    Owners come in the order invocations, parents, trace. Takes time in proportion to
    the number of steps (plus sorting).
    """
    scopes: dict[Scope, list[RecordedCall]] = {}
    for step in trace.steps:
        call = step.call
        if step.kind is StepKind.MODEL_CALL and isinstance(call, ModelCall):
            entry = RecordedCall(step, call, call.usage, step.end_ns, call.finish)
            scopes.setdefault(_owner(step), []).append(entry)
    if not scopes:
        return {}
    wrappers = _wrappers(trace)
    for calls in scopes.values():
        timed = order_of(trace, [entry.step for entry in calls]) is OrderSource.TIME
        calls.sort(key=_by_time if timed else _by_place)
        _remove_repeats(calls, wrappers)
        _remove_attempts(calls, timed=timed)
        if timed:
            _mark_parallel([entry for entry in calls if entry.removed is None])
    return dict(sorted(scopes.items()))


def _owner(step: Step) -> Scope:
    if step.invocation is not None:
        return (INVOCATION, step.invocation)
    if step.parent is not None:
        return (PARENT, step.parent)
    return (TRACE, 0)


def _by_place(entry: RecordedCall) -> int:
    return entry.step.seq


def _by_time(entry: RecordedCall) -> tuple[int, int]:
    return start_and_seq(entry.step)


def _wrappers(trace: Trace) -> set[int]:
    """The model calls that enclose another model call: they repeat its usage."""
    steps = {step.seq: step for step in trace.steps}
    above: dict[int, int | None] = {}
    found: set[int] = set()
    for step in trace.steps:
        if step.kind is StepKind.MODEL_CALL and step.parent is not None:
            enclosing = _enclosing_call(step, steps, above)
            if enclosing is not None:
                found.add(enclosing)
    return found


_OPAQUE: Final = frozenset({StepKind.TOOL_CALL, StepKind.AGENT, StepKind.HANDOFF})


def _enclosing_call(
    step: Step, steps: dict[int, Step], above: dict[int, int | None]
) -> int | None:
    """The nearest model call around `step`, not through a tool, agent or handoff.

    `above` remembers every step passed on the way, so that deep nesting is climbed
    once; it also ends a climb in a circle of parents.
    """
    path: list[int] = []
    current, nearest = step.parent, None
    while current is not None:
        if current in above:
            nearest = above[current]
            break
        parent = steps.get(current)
        if parent is None or parent.kind in _OPAQUE:
            break
        if parent.kind is StepKind.MODEL_CALL:
            nearest = current
            break
        above[current] = None
        path.append(current)
        current = parent.parent
    above.update(dict.fromkeys(path, nearest))
    if nearest is None or nearest == step.seq:
        return None
    return nearest if steps[nearest].invocation == step.invocation else None


def _remove_repeats(calls: list[RecordedCall], wrappers: set[int]) -> None:
    """Mark placeholders and wrappers, and fold repeated lines of one response."""
    first: dict[str, RecordedCall] = {}
    for entry in calls:
        response = entry.call.response_id
        if entry.call.is_placeholder:
            entry.removed = Removal.PLACEHOLDER
        elif entry.step.seq in wrappers:
            entry.removed = Removal.WRAPPER
        elif response is not None and response in first:
            entry.removed = Removal.DUPLICATE
            _fold(first[response], entry)
        elif response is not None:
            first[response] = entry


def _fold(kept: RecordedCall, repeat: RecordedCall) -> None:
    kept.usage = _larger(kept.usage, repeat.usage)
    if repeat.end_ns is not None:
        is_later = kept.end_ns is None or repeat.end_ns > kept.end_ns
        kept.end_ns = repeat.end_ns if is_later else kept.end_ns
    if repeat.finish is not FinishReason.UNKNOWN:
        kept.finish = repeat.finish


def _larger(one: Usage, other: Usage) -> Usage:
    """The usage with the larger output count, a known one before an unknown one."""

    def rank(usage: Usage) -> tuple[bool, int, int]:
        return (usage.is_known, usage.output_total or 0, usage.input_total or 0)

    return other if rank(other) > rank(one) else one


def _remove_attempts(calls: list[RecordedCall], *, timed: bool) -> None:
    """Mark attempts that a later call retried, and failures that none did."""
    kept = [entry for entry in calls if entry.removed is None]
    if not kept:
        return
    retried = {entry.call.retry_of for entry in kept}
    for entry, following in zip(kept, [*kept[1:], None], strict=True):
        if entry.step.seq in retried:
            entry.removed = Removal.RETRIED
        elif entry.step.status is StepStatus.ERROR:
            again = following is not None and _retries(following, entry, timed=timed)
            entry.removed = Removal.RETRIED if again else Removal.FAILED


def _retries(later: RecordedCall, failed: RecordedCall, *, timed: bool) -> bool:
    """Whether `later` is the next attempt of `failed`: same model, not at once."""
    one, other = failed.call.model, later.call.model
    if one is not None and other is not None and one != other:
        return False
    if not timed or failed.end_ns is None:
        return True
    return (later.step.start_ns or 0) >= failed.end_ns


def _mark_parallel(kept: list[RecordedCall]) -> None:
    """Mark each call that overlaps another one; `kept` is sorted by start."""
    reach: int | None = None
    farthest: RecordedCall | None = None
    for entry in kept:
        start = entry.step.start_ns or 0
        if reach is not None and farthest is not None and start < reach:
            entry.parallel = True
            farthest.parallel = True
        if entry.end_ns is not None and (reach is None or entry.end_ns > reach):
            reach, farthest = entry.end_ns, entry
