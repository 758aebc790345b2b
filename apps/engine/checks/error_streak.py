"""Error streak: tool calls of one owner that failed one after another.

Counts what is recorded as failed. It does not say that the agent erred: a test run
that fails on purpose is recorded as a failed call too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from apps.engine.check import (
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Parameter,
    Screening,
    chance_as_float,
    hash_of_inputs,
    percent,
)
from apps.engine.nulls.streaks import streak_chance
from apps.engine.rules import ToolRule
from apps.engine.sequence_answers import evidence_of_tools
from apps.engine.sequences import ToolSequence, outermost_calls
from apps.engine.trace import Step, StepStatus, ToolCall

_NOT_MODELLED: Final = (
    "One cause for many failures: a service that is down fails every call.",
    "Calls that are meant to fail: a test run or a search without a hit.",
    "Calls that ran at the same time: they stand in the order in which they started.",
)
_METHOD: Final = (
    "counted: the share of all orders of these calls in which as many failures stand in "
    "a row; a call without a status counts as one that did not fail"
)
_MOST_NAMES: Final = 3


class _Failures(msgspec.Struct, frozen=True):
    """How the calls of one owner ended: `streaks` are (start, length), in order."""

    tools: ToolSequence
    calls: tuple[Step, ...]
    failed: int
    known: int
    streaks: tuple[tuple[int, int], ...]

    @property
    def longest(self) -> tuple[int, int]:
        """The longest streak, the first of them if several are as long."""
        return max(self.streaks, key=lambda streak: streak[1], default=(0, 0))


@dataclass(frozen=True)
class ErrorStreak(ToolRule):
    """Looks for failed tool calls in a row within one agent invocation.

    `min_failures` (2 to 100) is the shortest row that is a signal. Raises `ValueError`
    outside this range.
    """

    min_failures: int = 3

    slug = "error-streak"
    label = "Error streak"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.FACT
    needs_bodies = False
    without_calls = "no call could fail"
    limits = (Parameter("min_failures", "Failures in a row", 2, 100, unit="calls"),)
    observes = (
        "The recorded status of the tool calls of one agent invocation, in order. A "
        "call without a status is neither a success nor a failure: it ends a row, and "
        "the answer says how many calls have one."
    )
    null_model = (
        "None: a recorded failure is a fact, and failures in a row are counted. How "
        "often the same failures in random order would stand in such a row is shown as "
        "clustering. It decides nothing: where every call fails it is 100 %, and still "
        "worth a look."
    )
    next_step = (
        "Read the failed calls and what the agent did after each one: did it change "
        "anything, or send the same again? Tell a tool that was down from an agent "
        "that misuses it, and look at what it then told the user."
    )

    @property
    def material_when(self) -> str:
        """The shortest row that is a signal."""
        return (
            f"At least {self.min_failures} tool calls of one agent invocation failed "
            "one after another, with no call in between that succeeded or has no status."
        )

    def screening(self, tools: ToolSequence) -> Screening:
        """The answer about the tool calls of one owner."""
        found = _failures(tools)
        said = self._judged(found)
        read = [(_name(step), step.status) for step in found.calls]
        inputs = hash_of_inputs(self.slug, tools.scope, tools.order, read)
        if said.answer is Answer.SIGNAL:
            return said.with_evidence(self._evidence(found), inputs)
        facts = {"failed": found.failed, "statuses_known": found.known}
        evidence = evidence_of_tools(tools, length=len(found.calls), facts=facts)
        return said.with_evidence(evidence, inputs)

    def _judged(self, found: _Failures) -> Judgement:
        n, needed = len(found.calls), self.min_failures
        calls = f"{n} tool {'call' if n == 1 else 'calls'}"
        if n < needed:
            text = f"{calls}, needs {needed}"
            return Judgement(
                Answer.NOT_APPLICABLE,
                "too_few_tool_calls",
                text,
                f"{text}: fewer calls cannot hold {needed} failures in a row.",
            )
        if not found.known:
            return Judgement(
                Answer.NOT_APPLICABLE,
                "no_status",
                f"No status on {calls}",
                f"None of {calls} records how it ended. That is not the same as "
                "success, so nothing can be said about failures.",
            )
        start, length = found.longest
        if length >= needed:
            return _streak(found, start, length)
        known = f"{found.known} of {calls} {_told(found.known)}."
        return Judgement(
            Answer.QUIET,
            "short_streaks" if found.failed else "no_failures",
            f"{found.failed} of {n} tool calls failed, never {needed} in a row",
            f"{found.failed} of {calls} failed; the longest row of failures is "
            f"{length}. {known}"
            if found.failed
            else f"No tool call is recorded as failed. {known}",
        )

    def _evidence(self, found: _Failures) -> Evidence:
        start, length = found.longest
        members = found.calls[start : start + length]
        causes = Counter(step.error_type for step in members if step.error_type)
        return evidence_of_tools(
            found.tools,
            length=len(found.calls),
            steps=tuple([step.seq for step in members]),
            effect=float(length),
            effect_bound=float(self.min_failures),
            not_modelled=_NOT_MODELLED,
            facts={
                "failed": found.failed,
                "statuses_known": found.known,
                "streak": length,
                "streaks": sum(1 for _, k in found.streaks if k >= self.min_failures),
                "calls_after": len(found.calls) - start - length,
                "tools": dict(Counter(_name(step) for step in members)),
                "error_types": dict(causes),
                "clustering": _clustering(found),
            },
        )


def _failures(tools: ToolSequence) -> _Failures:
    calls = outermost_calls(tools)
    failed = known = length = 0
    streaks: list[tuple[int, int]] = []
    for at, step in enumerate(calls):
        if step.status is StepStatus.ERROR:
            failed += 1
            known += 1
            length += 1
            continue
        known += step.status is StepStatus.OK
        if length:
            streaks.append((at - length, length))
            length = 0
    if length:
        streaks.append((len(calls) - length, length))
    return _Failures(tools, calls, failed, known, tuple(streaks))


def _name(step: Step) -> str:
    return step.call.name if isinstance(step.call, ToolCall) else ""


def _told(known: int) -> str:
    return "records how it ended" if known == 1 else "record how they ended"


def _streak(found: _Failures, start: int, length: int) -> Judgement:
    n = len(found.calls)
    after = n - start - length
    members = found.calls[start : start + length]
    names = Counter(_name(step) for step in members).most_common(_MOST_NAMES)
    parts = ", ".join(f"{name}: {count}" for name, count in names)
    then = (
        "No tool was called after them."
        if after == 0
        else f"{after} {'call' if after == 1 else 'calls'} came after them."
    )
    return Judgement(
        Answer.SIGNAL,
        "streak",
        f"{length} of {n} tool calls failed in a row",
        f"{length} tool calls failed one after another ({parts}). {then} {found.known} "
        f"of {n} calls {_told(found.known)}; {found.failed} failed. A prompt to look "
        "closer, not by itself a finding.",
        Level.REVIEW_SIGNAL,
    )


def _clustering(found: _Failures) -> dict[str, Any]:
    """How often the same failures in random order stand in a row as long: context."""
    chance = chance_as_float(
        streak_chance(len(found.calls), found.failed, found.longest[1])
    )
    return {"p": chance, "share": percent(chance), "method": _METHOD}
