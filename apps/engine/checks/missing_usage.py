"""How many model calls of a trace have no usable output count, and why.

It does not say that anything went wrong in the run: it says what other checks could
not see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apps.engine.check import (
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Screening,
    Series,
    hash_of_inputs,
    percent,
)
from apps.engine.rules import Rule
from apps.engine.sequences import RecordedCall, recorded_calls
from apps.engine.trace import Trace, UsageState

_STATES: Final = {
    UsageState.MISSING: "nothing recorded",
    UsageState.ZERO_SUSPECT: "zeros that mean missing",
    UsageState.VENDOR_ESTIMATE: "estimated by the vendor, not reported by the model",
    UsageState.AGGREGATE_ONLY: "only a sum over several calls recorded",
    UsageState.PARTIAL: "recorded without an output count",
    UsageState.REPORTED: "recorded without an output count",
}


@dataclass(frozen=True)
class MissingUsage(Rule):
    """Counts model calls without a reported output length: k of n, by reason.

    Calls are those that sequences are made of: without placeholders, repeated lines,
    wrapper spans and failed attempts.
    """

    slug = "missing-usage"
    label = "Missing usage"
    version = 1
    level = Level.TELEMETRY
    basis = Basis.FACT
    needs_bodies = False
    observes = (
        "Which model calls of the trace report how many tokens they wrote, and what "
        "the others recorded instead."
    )
    null_model = (
        "None: a count that is not recorded is a fact about the recording, not a "
        "statistic."
    )
    material_when = (
        "At least one model call has no usable output count. Then checks on output "
        "length cannot answer for its sequence, and say so."
    )
    next_step = (
        "Nothing is queued. If a whole source reports nothing, switch usage on where "
        "the trace is made (streaming clients often need an option for it) and upload "
        "again."
    )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer about the whole trace."""
        recorded = [e for owned in recorded_calls(trace).values() for e in owned]
        recorded.sort(key=lambda entry: entry.step.seq)
        removed = Counter(e.removed.value for e in recorded if e.removed is not None)
        yield _answer([e for e in recorded if e.removed is None], removed)


def _answer(calls: list[RecordedCall], removed: Counter[str]) -> Screening:
    reasons = Counter(
        _STATES[entry.usage.state] for entry in calls if not entry.usage.is_known
    )
    missing, n = reasons.total(), len(calls)
    inputs = hash_of_inputs(
        "missing-usage",
        [(entry.step.seq, entry.usage.state, entry.usage.is_known) for entry in calls],
        sorted(removed.items()),
    )
    facts = {"reasons": dict(reasons)} if reasons else {}
    evidence = Evidence(
        scope="trace",
        length=n,
        usage_known=n - missing,
        usage_missing=missing,
        effect=missing / n if n else None,
        steps=tuple([e.step.seq for e in calls if not e.usage.is_known]),
        series=_series(calls) if 0 < missing < n else None,
        facts=facts | ({"removed": dict(removed)} if removed else {}),
    )
    said = _in_words(n, reasons, removed)
    return said.with_evidence(evidence, inputs)


def _in_words(n: int, reasons: Counter[str], removed: Counter[str]) -> Judgement:
    """What is said about `n` calls, of which those in `reasons` give no output count.

    Lists count every recorded call; where some were left out, the words say so.
    """
    missing, rest = reasons.total(), _left_out(removed)
    calls = "completed model call" if removed else "model call"
    counted = f"{n} {calls}{'' if n == 1 else 's'}"
    if n == 0 and removed:
        return Judgement(
            Answer.NOT_APPLICABLE,
            "no_completed_calls",
            "No completed model calls recorded",
            f"The trace holds no completed model call.{rest}",
        )
    if n == 0:
        return Judgement(
            Answer.NOT_APPLICABLE,
            "no_model_calls",
            "No model calls recorded",
            "The trace holds no model call, so there is no usage to report or to miss.",
        )
    if missing == 0:
        return Judgement(
            Answer.QUIET,
            "usage_complete",
            f"Output length reported on {n} of {counted}",
            f"Every {calls} reports how many tokens it wrote.{rest}",
        )
    parts = ", ".join(f"{count}: {why}" for why, count in reasons.most_common())
    has = "has" if missing == 1 else "have"
    return Judgement(
        Answer.SIGNAL,
        "usage_missing",
        f"Output length missing on {missing} of {counted}",
        f"{missing} of {counted} ({percent(missing / n)}) {has} no usable "
        f"output count ({parts}). Missing is not zero: no check counts them as short.{rest}",
    )


def _left_out(removed: Counter[str]) -> str:
    """How many records are no completed calls, by reason; nothing where none is."""
    if not removed:
        return ""
    parts = ", ".join(f"{count} {why}" for why, count in removed.most_common())
    records = "record is" if removed.total() == 1 else "records are"
    return f" {removed.total()} further {records} not counted here ({parts})."


def _series(calls: list[RecordedCall]) -> Series:
    return Series(
        unit="output tokens",
        steps=tuple([entry.step.seq for entry in calls]),
        values=tuple(
            [e.usage.output_total if e.usage.is_known else None for e in calls]
        ),
        labels=tuple([entry.usage.state.value for entry in calls]),
    )
