"""Cutting the calls of each owner into serial sequences, at boundaries with names."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from apps.engine.sequences.once import once_per_trace
from apps.engine.sequences.owners import (
    INVOCATION,
    PARENT,
    TRACE,
    Scope,
    agent_of,
    order_of,
    owner_in_words,
)
from apps.engine.sequences.recorded import RecordedCall, Removal, recorded_calls
from apps.engine.trace import FinishReason, ModelCall, OrderSource, Trace, Usage


class Boundary(StrEnum):
    """Why a serial sequence begins or ends where it does, in words for a person."""

    INVOCATION_START = "start of the agent invocation"
    INVOCATION_END = "end of the agent invocation"
    PARENT_START = "first call under its parent step"
    PARENT_END = "last call under its parent step"
    TRACE_START = "start of the trace"
    TRACE_END = "end of the trace"
    MODEL = "another model"
    PROVIDER = "another provider"
    CONVERSATION = "another conversation"
    FAILED_ATTEMPT = "a failed attempt without a retry"
    CONTEXT_RESET = "the context was reset"
    OVERLAP = "a call that overlaps in time"
    NO_DURATION = "a call without a duration"


class SerialSequence(msgspec.Struct, frozen=True):
    """The calls of one serial sequence in order, why it begins and why it ends.

    `steps`, `outputs`, `inputs`, `finishes` and `usages` run in parallel; token counts
    are `None` where the file does not give them (`missing` of them have no output
    count). `steps` and the `*_removed` tuples hold `Step.seq`. A `parallel` sequence
    is one call that overlapped another: it has no neighbour in any order. `scope` is
    stable for the same content and counts from 1, like all numbers shown to people.
    """

    scope: str
    owner: str
    invocation: int | None
    agent: str | None
    model: str | None
    provider: str | None
    conversation: str | None
    steps: tuple[int, ...]
    outputs: tuple[int | None, ...]
    inputs: tuple[int | None, ...]
    finishes: tuple[FinishReason, ...]
    usages: tuple[Usage, ...]
    began: Boundary
    ended: Boundary
    order: OrderSource
    parallel: bool = False
    retries_removed: tuple[int, ...] = ()
    failed_removed: tuple[int, ...] = ()
    placeholders_removed: tuple[int, ...] = ()
    duplicates_removed: tuple[int, ...] = ()
    wrappers_removed: tuple[int, ...] = ()

    @property
    def missing(self) -> int:
        """How many of the calls have no output count."""
        return self.outputs.count(None)

    @property
    def removed(self) -> dict[str, list[int]]:
        """The calls left out at this place, by reason; reasons without any are absent."""
        by_reason = {
            "retries_removed": self.retries_removed,
            "failed_removed": self.failed_removed,
            "placeholders_removed": self.placeholders_removed,
            "duplicates_removed": self.duplicates_removed,
            "wrappers_removed": self.wrappers_removed,
        }
        return {reason: list(steps) for reason, steps in by_reason.items() if steps}

    @property
    def cut_words(self) -> str:
        """A sentence where a call without a recorded end cut the sequence, else nothing."""
        if Boundary.NO_DURATION not in {self.began, self.ended}:
            return ""
        return "A call whose end is not recorded cut the sequence here."


@once_per_trace
def serial_sequences(trace: Trace) -> tuple[SerialSequence, ...]:
    """All serial sequences of `trace`; the same steps in any order give the same.

    An agent invocation is the scope of its calls; calls without one share the scope
    of their parent step, else of the trace. Placeholders, repeated lines, wrapper
    spans and attempts that were retried are taken out and listed; a missing count is
    kept as `None` and is no boundary. Never raises.
    """
    found: list[SerialSequence] = []
    for scope, calls in recorded_calls(trace).items():
        order = order_of(trace, [entry.step for entry in calls])
        found.extend(_Cutter(trace, scope, order).cut(calls))
    return tuple(found)


_BOUNDS: Final = {
    INVOCATION: (Boundary.INVOCATION_START, Boundary.INVOCATION_END),
    PARENT: (Boundary.PARENT_START, Boundary.PARENT_END),
    TRACE: (Boundary.TRACE_START, Boundary.TRACE_END),
}


class _Cutter:
    """Cuts the ordered calls of one owner into sequences."""

    def __init__(self, trace: Trace, scope: Scope, order: OrderSource) -> None:
        self._scope = scope
        self._order = order
        self._begin, self._end = _BOUNDS[scope[0]]
        self._agent = agent_of(trace, scope)

    def cut(self, calls: list[RecordedCall]) -> Iterator[SerialSequence]:
        """The sequences of `calls` in order."""
        timed = self._order is OrderSource.TIME
        part = _Part(began=self._begin, timed=timed)
        number = 0
        for entry in calls:
            boundary = part.boundary_before(entry)
            if boundary is not None and part.kept:
                number += 1
                yield self._sequence(part, number, boundary)
                part = _Part(began=boundary, timed=timed)
            elif boundary is not None:
                part.began = boundary
            part.take(entry)
        if part.kept:
            yield self._sequence(part, number + 1, part.closed_by or self._end)

    def _sequence(self, part: _Part, number: int, ended: Boundary) -> SerialSequence:
        owner = owner_in_words(self._scope)
        kept = part.kept
        removed = part.removed
        return SerialSequence(
            scope=f"{owner}, sequence {number}",
            owner=owner,
            invocation=self._scope[1] if self._scope[0] == INVOCATION else None,
            agent=self._agent,
            model=kept[0].call.model,
            provider=part.provider,
            conversation=part.conversation,
            steps=tuple([entry.step.seq for entry in kept]),
            outputs=tuple([_output(entry.usage) for entry in kept]),
            inputs=tuple([entry.usage.input_total for entry in kept]),
            finishes=tuple([entry.finish for entry in kept]),
            usages=tuple([entry.usage for entry in kept]),
            began=part.began,
            ended=ended,
            order=self._order,
            parallel=kept[0].parallel,
            retries_removed=tuple(removed.get(Removal.RETRIED, ())),
            failed_removed=tuple(removed.get(Removal.FAILED, ())),
            placeholders_removed=tuple(removed.get(Removal.PLACEHOLDER, ())),
            duplicates_removed=tuple(removed.get(Removal.DUPLICATE, ())),
            wrappers_removed=tuple(removed.get(Removal.WRAPPER, ())),
        )


def _output(usage: Usage) -> int | None:
    return usage.output_total if usage.is_known else None


class _Part:
    """The calls since the last boundary, and what they have in common so far."""

    def __init__(self, *, began: Boundary, timed: bool) -> None:
        self.began = began
        self.kept: list[RecordedCall] = []
        self.removed: dict[Removal, list[int]] = {}
        self.provider: str | None = None
        self.conversation: str | None = None
        self.closed_by: Boundary | None = None
        self._timed = timed

    def boundary_before(self, entry: RecordedCall) -> Boundary | None:
        """The boundary between what was taken so far and `entry`, if there is one."""
        if entry.removed is not None:
            return None
        if self.closed_by is not None:
            return self.closed_by
        if entry.parallel:
            return Boundary.OVERLAP
        if entry.call.resets_context and self.kept:
            return Boundary.CONTEXT_RESET
        return self._changed(entry.call)

    def _changed(self, call: ModelCall) -> Boundary | None:
        if not self.kept:
            return None
        if call.model != self.kept[0].call.model:
            return Boundary.MODEL
        if _differ(self.provider, call.provider):
            return Boundary.PROVIDER
        if _differ(self.conversation, call.conversation):
            return Boundary.CONVERSATION
        return None

    def take(self, entry: RecordedCall) -> None:
        """Add `entry` as a member or to what was removed."""
        if entry.removed is not None:
            self.removed.setdefault(entry.removed, []).append(entry.step.seq)
            self.closed_by = self.closed_by or self._broken_by(entry)
            return
        self.kept.append(entry)
        self.provider = self.provider or entry.call.provider
        self.conversation = self.conversation or entry.call.conversation
        # After a failure that came first, the next call starts from a clean slate.
        self.closed_by = self._closed_after(entry)

    def _broken_by(self, entry: RecordedCall) -> Boundary | None:
        """What a call that is no member leaves behind between its neighbours."""
        if entry.removed is Removal.FAILED:
            return Boundary.FAILED_ATTEMPT
        model = entry.call.model
        if entry.removed is not Removal.PLACEHOLDER or model is None or not self.kept:
            return None
        return Boundary.MODEL if model != self.kept[0].call.model else None

    def _closed_after(self, entry: RecordedCall) -> Boundary | None:
        if entry.parallel:
            return Boundary.OVERLAP
        start = entry.step.start_ns
        if not self._timed or start is None:
            return None
        is_open = entry.end_ns is None or entry.end_ns <= start
        return Boundary.NO_DURATION if is_open else None


def _differ(known: str | None, new: str | None) -> bool:
    """Whether both are recorded and not the same: silence is no change."""
    return known is not None and new is not None and known != new
