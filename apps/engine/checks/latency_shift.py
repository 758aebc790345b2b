"""Latency shift: the calls of a trace took longer than those of a baseline set.

It does not say why: a busy provider, a longer prompt and a slower machine look alike.
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
from apps.engine.nulls import LatencyBaseline, latency_shift
from apps.engine.nulls import LatencyShift as Shift
from apps.engine.rules import OF_ITSELF, ShiftRule
from apps.engine.sequences.calls import durations_by_name
from apps.engine.trace import Trace

_ASSUMPTIONS: Final = (
    "The trace could as well have been one of the baseline: same load, same time of "
    "day, same kind of task. Nothing is assumed about calls within a trace."
)
_NOT_MODELLED: Final = (
    "Longer prompts and outputs take longer: see the token counts of both sets.",
    "When it ran: providers are slower at some hours.",
    "Calls whose duration is not recorded are left out.",
    "The expected count is an upper bound: it takes every rank that is rare enough, "
    "whatever the ratio.",
    OF_ITSELF,
)


@dataclass(frozen=True)
class LatencyShift(ShiftRule[LatencyBaseline]):
    """Compares how long calls took with a baseline set, name by name.

    `slower_at` is the least ratio of the durations to the baseline's medians that
    counts (above 1, at most 100).
    """

    slower_at: float = 1.5

    slug = "latency-shift"
    label = "Latency shift"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.STATISTIC
    needs_bodies = False
    directions = 2
    compared = scored = "durations"
    alike = "calls"
    limits = (
        Parameter(
            "slower_at",
            "Times the baseline's median",
            1,
            100,
            is_whole=False,
            above_low=True,
        ),
        MAX_CHANCE,
    )
    observes = (
        "How long the model and tool calls of a trace took, each beside the calls of "
        "the same model or tool in the traces of the project's baseline set."
    )
    null_model = (
        "If the trace were one more of the baseline, its mean rank could be any among "
        "theirs: the chance is the share of traces that rank at least as high, doubled "
        "because both directions are looked at. It cannot be smaller than 2 / (traces "
        "+ 1), so a small baseline never gives a signal."
    )
    next_step = (
        "Look at the slowest calls and their token counts, then compare the two sets "
        "side by side. Slower is not worse: confirm only with a second measure, such "
        "as time-outs or an outcome."
    )

    @property
    def material_when(self) -> str:
        """Made from the parameters."""
        return (
            f"The median call takes at least {self.slower_at:g} times the baseline's "
            "median of its name, and at most "
            f"{percent(self.max_chance)} of traces would rank as far out. Fewer calls "
            "or a faster trace are facts, never signals."
        )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer about the whole trace."""
        durations = durations_by_name(trace)
        inputs = hash_of_inputs("latency-shift", _in_milliseconds(durations))
        calls = sum(map(len, durations.values()))
        evidence = Evidence(scope="trace", length=calls)
        said = self._not_applicable(calls)
        shift = None
        if said is None and self.baseline is not None:
            shift = latency_shift(self.baseline, durations, seed=int(inputs[:16], 16))
        if shift is None or shift.by_trace is None:
            said = said or self.nothing_alike(durations, "what was")
            yield said.with_evidence(evidence, inputs)
            return
        measured = self._measured(evidence, shift, shift.by_trace)
        yield self._judged(shift, shift.by_trace).with_evidence(measured, inputs)

    def _not_applicable(self, calls: int) -> Judgement | None:
        if self.baseline is None:
            return self.no_baseline()
        if not calls:
            return Judgement(
                Answer.NOT_APPLICABLE,
                "no_durations",
                "No durations recorded",
                "No call of the trace has a recorded start and end.",
            )
        return self.too_small(self.baseline)

    def _judged(self, shift: Shift, chance: float) -> Judgement:
        times = "" if shift.ratio is None else f"{shift.ratio:.2f} times"
        beside = f"beside the baseline “{self.baseline_name}”"
        calls = f"{shift.calls} compared {'call' if shift.calls == 1 else 'calls'}"
        if shift.percentile <= 0.5 or not shift.ranks_high or shift.ratio is None:
            most = "most calls" if shift.percentile <= 0.5 else "most traces"
            return Judgement(
                Answer.QUIET,
                "not_slower",
                f"Calls not slower than those of the baseline ({shift.calls} compared)",
                f"The mean rank of {calls} is {percent(shift.percentile)} {beside}: not "
                f"slower than {most}.",
            )
        shape = (
            f"The median of {calls} took {times} the baseline's "
            f"median {beside}; the chance that a trace of the baseline ranks as far "
            f"out is {percent(chance)}"
        )
        if shift.ratio < self.slower_at:
            return Judgement(
                Answer.QUIET,
                "not_material",
                f"Calls took {times} as long as in the baseline",
                f"{shape}. Below the bound of {self.slower_at:g} times.",
            )
        if chance > self.max_chance:
            return Judgement(
                Answer.QUIET,
                "not_rare",
                f"Calls took {times} as long, as other traces of the baseline do",
                f"{shape}: above {percent(self.max_chance)}.",
            )
        return Judgement(
            Answer.SIGNAL,
            "slower",
            f"Calls took {times} as long as in the baseline",
            f"{shape}. A prompt to look closer, not by itself a finding.",
            Level.REVIEW_SIGNAL,
        )

    def _measured(self, evidence: Evidence, shift: Shift, chance: float) -> Evidence:
        return msgspec.structs.replace(
            evidence,
            length=shift.calls,
            ratio=shift.ratio,
            effect=None if shift.ratio is None else shift.ratio - 1,
            effect_bound=self.slower_at - 1,
            chance=self.chance(
                chance,
                shift.traces,
                assumptions=_ASSUMPTIONS,
                method=", both directions; near to exact, as each of them is ranked "
                "among the others and this one among all",
            ),
            chance_of_signal=self.most_often(shift.traces),
            not_modelled=_NOT_MODELLED,
            facts={
                "baseline": self.baseline_name,
                "percentile": shift.percentile,
                "chance_by_call": {
                    "p": shift.p,
                    "standard_error": shift.standard_error,
                    "method": shift.method,
                },
                "without_baseline": list(shift.without[:20]),
            },
        )


def _in_milliseconds(
    durations: dict[str, tuple[float, ...]],
) -> dict[str, list[int]]:
    """Encodings of one run keep nanoseconds or microseconds: they are the same run."""
    return {name: [round(1_000 * one) for one in durations[name]] for name in durations}
