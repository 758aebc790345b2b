"""Rules with one answer for each owner of calls, or one that says that there is none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from apps.engine.bodies import ToolLane, tool_lanes
from apps.engine.bodies.calls import Absent, calls_absent
from apps.engine.check import (
    Answer,
    Evidence,
    Judgement,
    Screening,
    hash_of_inputs,
)
from apps.engine.rules.rule import Rule
from apps.engine.sequence_answers import no_model_calls, no_tool_calls, parallel_calls
from apps.engine.sequences import (
    SerialSequence,
    ToolSequence,
    serial_sequences,
    tool_sequences,
)
from apps.engine.trace import Trace


def nothing_read(said: Judgement, *inputs: object) -> Screening:
    """An answer about a trace that holds nothing to read; `inputs` says what was seen."""
    return said.with_evidence(
        Evidence(scope="trace", length=0), hash_of_inputs(*inputs)
    )


def nothing_to_compare(absent: Absent, slug: str) -> Screening:
    """The answer about a trace without tool calls that can be compared."""
    said = Judgement(Answer.NOT_APPLICABLE, absent.code, absent.headline, absent.reason)
    return nothing_read(said, slug)


@dataclass(frozen=True)
class ToolRule(Rule, ABC):
    """A rule over the tool calls of one owner, of which it reads no bodies.

    `without_calls` ends the sentence about a trace that holds no tool call.
    """

    slug: ClassVar[str]
    without_calls: ClassVar[str]

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer for each owner of tool calls, or one that there are none."""
        owners = tool_sequences(trace)
        if not owners:
            yield no_tool_calls(self.slug, self.without_calls)
        for tools in owners:
            yield self.screening(tools)

    @abstractmethod
    def screening(self, tools: ToolSequence) -> Screening:
        """The answer about the calls of one owner."""


@dataclass(frozen=True)
class LaneRule(Rule, ABC):
    """A rule over the tool calls of one owner, with their arguments and results."""

    slug: ClassVar[str]

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer for each owner of tool calls, or one that there are none."""
        absent = calls_absent(trace)
        if absent is not None:
            yield nothing_to_compare(absent, self.slug)
            return
        for lane in tool_lanes(trace):
            hashed = hash_of_inputs(self.slug, lane.scope, lane.fingerprint)
            yield self.screening(lane, hashed)

    @abstractmethod
    def screening(self, lane: ToolLane, hashed: str) -> Screening:
        """The answer about the calls of one owner; `hashed` names what was read."""


@dataclass(frozen=True)
class SequenceRule(Rule, ABC):
    """A rule over serial sequences of model calls.

    `without_calls` ends the sentence about a trace that holds no model call.
    """

    slug: ClassVar[str]
    without_calls: ClassVar[str]

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer for each serial sequence, or one that there is none.

        Calls of one owner that overlapped others have no order and share one answer.
        """
        sequences = serial_sequences(trace)
        if not sequences:
            yield no_model_calls(trace, self.slug, self.without_calls)
        yield from self.serial_answers(sequences)
        parallel = [one for one in sequences if one.parallel]
        for _, group in groupby(parallel, key=lambda one: one.owner):
            calls = list(group)
            yield parallel_calls(self.slug, calls, sum(map(self.is_known, calls)))

    @abstractmethod
    def serial_answers(
        self, sequences: Sequence[SerialSequence]
    ) -> Iterator[Screening]:
        """One answer for each of the `sequences` of a trace that is not parallel."""

    @abstractmethod
    def is_known(self, call: SerialSequence) -> bool:
        """Whether what the rule reads is recorded on a single call."""
