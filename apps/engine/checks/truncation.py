"""Truncation: model calls that stopped because a length limit was reached.

Counts recorded finish reasons. It does not say that anything was lost: some limits
are set low on purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from apps.engine.check import (
    Answer,
    Basis,
    Judgement,
    Level,
    Parameter,
    Screening,
    hash_of_inputs,
    percent,
)
from apps.engine.rules import Rule
from apps.engine.sequence_answers import evidence_of_agent, no_model_calls
from apps.engine.sequences import AgentCalls, RecordedCall, agent_calls
from apps.engine.trace import FinishReason, Trace

_NOT_MODELLED: Final = (
    "Limits that are set low on purpose, such as one token for a yes or a no.",
    "Answers that were continued in a later call.",
    "What the missing part would have said.",
)
_MOST_LENGTHS: Final = 20


@dataclass(frozen=True)
class Truncation(Rule):
    """Counts the model calls of one agent invocation that a length limit cut.

    One answer for each agent invocation: the limit is set for an agent, and whether
    its last answer is whole is a question about that invocation. A last call that was
    cut is a review signal by itself. Where the agent went on, `min_cut` (1 to 1,000)
    cut calls are; fewer are shown as telemetry. Raises `ValueError` outside the range.
    """

    min_cut: int = 2

    slug = "truncation"
    label = "Truncation"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.FACT
    needs_bodies = False
    limits = (
        Parameter(
            "min_cut", "Cut calls where the last one is whole", 1, 1_000, unit="calls"
        ),
    )
    observes = (
        "Why each completed model call of one agent invocation stopped, where the file "
        "says so: how many stopped at a length limit, and whether the last one did. "
        "Retried and failed attempts are left out."
    )
    null_model = (
        "None: that a call stopped at its length limit is a recorded fact, not a "
        "statistic. Calls without a finish reason are counted, never guessed."
    )
    next_step = (
        "Read the end of each cut call: does a sentence, a tool call or an answer "
        "break off? Then see whether the agent noticed. If the limit is too low for "
        "the task, raise it where the agent is configured."
    )

    @property
    def material_when(self) -> str:
        """When cut calls are queued, and when they are only shown."""
        calls = "call was" if self.min_cut == 1 else "calls were"
        return (
            "The last model call of an agent invocation was cut, so its answer may be "
            f"incomplete; or at least {self.min_cut:,} {calls} cut anywhere. Fewer, in "
            "the middle of a run that went on, are shown on the trace and not queued."
        )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer for each owner of completed model calls, or that none is."""
        owners = [(one, one.completed) for one in agent_calls(trace)]
        if not any(calls for _, calls in owners):
            yield no_model_calls(trace, self.slug, "none could reach a limit")
        for owner, calls in owners:
            if calls:
                yield self._screening(owner, calls)

    def _screening(self, owner: AgentCalls, calls: list[RecordedCall]) -> Screening:
        finishes = [entry.finish for entry in calls]
        cut = [e for e in calls if e.finish is FinishReason.LENGTH]
        inputs = hash_of_inputs(
            self.slug,
            owner.scope,
            owner.order,
            finishes,
            [str(entry.usage.output_total) for entry in cut],
        )
        known = len(calls) - finishes.count(FinishReason.UNKNOWN)
        facts: dict[str, Any] = {"cut": len(cut), "finish_known": known}
        if not cut:
            said = _nothing_cut(len(calls), known)
            return said.with_evidence(evidence_of_agent(owner, facts=facts), inputs)
        ended_cut = finishes[-1] is FinishReason.LENGTH
        said = self._judged(len(cut), known, len(calls), ended_cut=ended_cut)
        facts |= {
            "last_call_cut": ended_cut,
            "finish_reasons": dict(Counter(finish.value for finish in finishes)),
            "cut_at_output_tokens": _lengths(cut),
        }
        evidence = evidence_of_agent(
            owner,
            steps=tuple([entry.step.seq for entry in cut]),
            length=len(calls),
            model=_common_model(cut),
            effect=len(cut) / known,
            not_modelled=_NOT_MODELLED,
            facts=facts,
        )
        return said.with_evidence(evidence, inputs)

    def _judged(self, cut: int, known: int, n: int, *, ended_cut: bool) -> Judgement:
        share = (
            f"{cut} of {known} model {_calls(known)} with a known finish reason "
            f"({percent(cut / known)}) stopped at a length limit"
        )
        unknown = n - known
        says = "call records" if unknown == 1 else "calls record"
        rest = f" {unknown} further {says} none." if unknown else ""
        if ended_cut:
            return Judgement(
                Answer.SIGNAL,
                "last_call_cut",
                f"The last model call was cut ({cut} of {known} cut)",
                f"The last model call stopped at a length limit, so its answer may be "
                f"incomplete. {share}.{rest} A prompt to look closer, not by itself a finding.",
                Level.REVIEW_SIGNAL,
            )
        is_queued = cut >= self.min_cut
        return Judgement(
            Answer.SIGNAL,
            "calls_cut" if is_queued else "few_calls_cut",
            f"{cut} of {known} model {_calls(known)} cut at a length limit",
            f"{share}, not the last one.{rest} A prompt to look closer, not by itself a finding."
            if is_queued
            else f"{share}, and the agent went on after it.{rest} Fewer than "
            f"{self.min_cut:,} are telemetry and not queued.",
            Level.REVIEW_SIGNAL if is_queued else Level.TELEMETRY,
        )


def _calls(count: int) -> str:
    return "call" if count == 1 else "calls"


def _nothing_cut(n: int, known: int) -> Judgement:
    calls = f"{n} model {_calls(n)}"
    if not known:
        return Judgement(
            Answer.NOT_APPLICABLE,
            "no_finish_reasons",
            f"No finish reason on {calls}",
            f"None of {calls} records why it stopped, so a limit that was "
            "reached would not show.",
        )
    return Judgement(
        Answer.QUIET,
        "none_cut",
        f"None of {known} model {_calls(known)} cut at a length limit",
        f"1 of {calls} records why it stopped, and that is no length limit."
        if known == 1
        else f"{known} of {calls} record why they stopped, and none of them stopped at "
        "a length limit.",
    )


def _lengths(cut: list[RecordedCall]) -> dict[str, int]:
    """How often a call was cut at which output length, the most frequent first."""
    lengths = Counter(
        str(entry.usage.output_total)
        for entry in cut
        if entry.usage.output_total is not None
    )
    return dict(lengths.most_common(_MOST_LENGTHS))


def _common_model(cut: list[RecordedCall]) -> str | None:
    models = {entry.call.model for entry in cut}
    return models.pop() if len(models) == 1 else None
