"""Error-rate shift: more tool calls of a trace failed than those of a baseline set.

It does not say that the agent erred: a tool that is down fails for everybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from apps.engine.check import (
    MAX_CHANCE,
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Parameter,
    Screening,
    hash_of_inputs,
    percent,
)
from apps.engine.nulls import ErrorBaseline, error_shift
from apps.engine.nulls import ErrorShift as Shift
from apps.engine.rules import OF_ITSELF, ShiftRule
from apps.engine.sequences.calls import failures_by_name, says_how_tools_ended
from apps.engine.trace import StepKind, StepStatus, ToolCall, Trace

_ASSUMPTIONS: Final = (
    "The trace could as well have been one of the baseline: same tools in the same "
    "state, same kind of task. Nothing is assumed about calls within a trace."
)
_NOT_MODELLED: Final = (
    "Harder tasks fail more often: compare traces of the same tasks side by side.",
    "Failures that a tool reports as a normal result are not seen.",
    "A call without a recorded status counts as one without a recorded failure.",
    "The expected count is an upper bound: it takes every rank that is rare enough, "
    "however few calls failed.",
    OF_ITSELF,
)


@dataclass(frozen=True)
class ErrorRateShift(ShiftRule[ErrorBaseline]):
    """Compares how many tool calls failed with a baseline set, tool by tool.

    `fewest_failures` (1 to 1,000) must have failed.
    """

    fewest_failures: int = 2

    slug = "error-rate-shift"
    label = "Error-rate shift"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.STATISTIC
    needs_bodies = False
    directions = 1
    compared, scored, alike = "failures", "tool calls", "tools"
    limits = (
        Parameter("fewest_failures", "Fewest failed calls", 1, 1_000, unit="calls"),
        MAX_CHANCE,
    )
    observes = (
        "How many tool calls of a trace failed, beside what the rates of the same "
        "tools in the project's baseline set let expect."
    )
    null_model = (
        "If the trace were one more of the baseline, its failures beyond what is "
        "expected could rank anywhere among theirs: the chance is the share of traces "
        "that exceed by as much. It cannot be smaller than 1 / (traces + 1), so a "
        "small baseline never gives a signal."
    )
    next_step = (
        "Read the failed calls and their errors. Is the tool down for everybody, or "
        "did this agent call it wrongly? Compare the two sets side by side before you "
        "confirm."
    )

    @property
    def material_when(self) -> str:
        """Made from the parameters."""
        calls = "call" if self.fewest_failures == 1 else "calls"
        return (
            f"At least {self.fewest_failures} compared {calls} failed, more than the "
            f"baseline lets expect, and at most {percent(self.max_chance)} of traces "
            "would exceed it by as much. Fewer failures than expected are never a "
            "signal."
        )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer about the whole trace."""
        failures = failures_by_name(trace)
        is_told = says_how_tools_ended(trace)
        inputs = hash_of_inputs("error-rate-shift", failures, is_told)
        calls = sum(made for _, made in failures.values())
        evidence = Evidence(scope="trace", length=calls)
        said = self._not_applicable(calls, is_told=is_told)
        shift = None
        if said is None and self.baseline is not None:
            shift = error_shift(self.baseline, failures)
        if shift is None or shift.by_trace is None:
            said = said or self.nothing_alike(failures, "the tools")
            yield said.with_evidence(evidence, inputs)
            return
        chance = shift.by_trace
        failed = _failed_steps(trace, set(shift.without))
        measured = self._measured(evidence, shift, chance, failed)
        yield self._judged(shift, chance).with_evidence(measured, inputs)

    def _not_applicable(self, calls: int, *, is_told: bool) -> Judgement | None:
        if self.baseline is None:
            return self.no_baseline()
        if not calls:
            return Judgement(
                Answer.NOT_APPLICABLE,
                "no_tool_calls",
                "No finished tool calls recorded",
                "The trace holds no finished tool call, so nothing can have failed.",
            )
        if not is_told and not any(k for k, _ in self.baseline.counts.values()):
            return Judgement(
                Answer.NOT_APPLICABLE,
                "no_statuses",
                "Nothing says how tool calls ended",
                "Neither the trace nor the baseline records a tool call as failed or "
                "successful: unknown is not success.",
            )
        return self.too_small(self.baseline)

    def _judged(self, shift: Shift, chance: float) -> Judgement:
        shape = (
            f"{shift.failed} of {shift.calls} compared tool "
            f"{'call' if shift.calls == 1 else 'calls'} failed; the rates of "
            f"the baseline “{self.baseline_name}” let expect {shift.expected:.1f}"
        )
        if shift.failed <= shift.expected or shift.failed < self.fewest_failures:
            return Judgement(
                Answer.QUIET,
                "not_more_failures",
                f"{shift.failed} of {shift.calls} tool calls failed",
                f"{shape}: "
                + (
                    "not more than that."
                    if shift.failed <= shift.expected
                    else f"fewer than the {self.fewest_failures} failures asked for."
                ),
            )
        rare = f"The chance that a trace of the baseline exceeds it by as much is {percent(chance)}"
        if chance > self.max_chance:
            return Judgement(
                Answer.QUIET,
                "not_rare",
                f"{shift.failed} of {shift.calls} tool calls failed, as elsewhere",
                f"{shape}. {rare}: above {percent(self.max_chance)}.",
            )
        return Judgement(
            Answer.SIGNAL,
            "more_failures",
            f"{shift.failed} of {shift.calls} tool calls failed, "
            f"{shift.expected:.1f} expected",
            f"{shape}. {rare}. A prompt to look closer, not by itself a finding.",
            Level.REVIEW_SIGNAL,
        )

    def _measured(
        self, evidence: Evidence, shift: Shift, chance: float, steps: tuple[int, ...]
    ) -> Evidence:
        return msgspec.structs.replace(
            evidence,
            length=shift.calls,
            effect=(shift.failed - shift.expected) / shift.calls,
            chance=self.chance(
                chance,
                shift.traces,
                assumptions=_ASSUMPTIONS,
                method="; near to exact, as each of them is set against the others and "
                "this one against all",
            ),
            chance_of_signal=self.most_often(shift.traces),
            steps=steps,
            not_modelled=_NOT_MODELLED,
            facts={
                "baseline": self.baseline_name,
                "expected": shift.expected,
                "chance_by_call": {"p": shift.p, "method": shift.method},
                "tools": [
                    {"name": tool.name, "failed": tool.failed, "calls": tool.calls}
                    for tool in shift.tools[:20]
                    if tool.failed
                ],
                "without_baseline": list(shift.without[:20]),
            },
        )


def _failed_steps(trace: Trace, without: set[str]) -> tuple[int, ...]:
    """The failed calls of tools that were compared, as `failures_by_name` names them."""
    return tuple(
        sorted(
            step.seq
            for step in trace.steps
            if step.kind is StepKind.TOOL_CALL
            and step.status is StepStatus.ERROR
            and isinstance(step.call, ToolCall)
            and f"tool {step.call.name}" not in without
        )
    )
