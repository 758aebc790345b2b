"""Latency shift: the calls of a trace took longer than those of a baseline set.

It does not say why: a busy provider, a longer prompt and a slower machine look alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import msgspec

from apps.engine.check import (
    MAX_CHANCE,
    Answer,
    Basis,
    Chance,
    Evidence,
    Judgement,
    Level,
    Parameter,
    Screening,
    check_limits,
    hash_of_inputs,
    percent,
)
from apps.engine.nulls import LatencyBaseline, latency_shift
from apps.engine.nulls import LatencyShift as Shift
from apps.engine.sequences.calls import durations_by_name
from apps.engine.trace import Trace

_MODEL: Final = "this trace is exchangeable with the traces of the baseline"
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
    "A trace of the baseline itself is compared with a set that holds it too.",
)


@dataclass(frozen=True)
class LatencyShift:
    """Compares how long calls took with a baseline set, name by name.

    `slower_at` is the least ratio of the durations to the baseline's medians that
    counts (above 1, at most 100). `baseline` is `None` until a project names one;
    `baseline_key` changes whenever it does.
    """

    slower_at: float = 1.5
    max_chance: float = 0.05
    baseline: LatencyBaseline | None = None
    baseline_name: str = ""
    baseline_key: str = ""
    slug: str = field(default="latency-shift", init=False)
    label: str = field(default="Latency shift", init=False)
    version: int = field(default=1, init=False)
    level: Level = field(default=Level.REVIEW_SIGNAL, init=False)
    basis: Basis = field(default=Basis.STATISTIC, init=False)
    needs_bodies: bool = field(default=False, init=False)
    observes: str = field(
        default="How long the model and tool calls of a trace took, each beside the "
        "calls of the same model or tool in the traces of the project's baseline set.",
        init=False,
    )
    null_model: str = field(
        default="If the trace were one more of the baseline, its mean rank could be "
        "any among theirs: the chance is the share of traces that rank at least as "
        "high, doubled because both directions are looked at. It cannot be smaller "
        "than 2 / (traces + 1), so a small baseline never gives a signal.",
        init=False,
    )
    next_step: str = field(
        default="Look at the slowest calls and their token counts, then compare the "
        "two sets side by side. Slower is not worse: confirm only with a second "
        "measure, such as time-outs or an outcome.",
        init=False,
    )

    def __post_init__(self) -> None:
        check_limits(self)

    @property
    def material_when(self) -> str:
        """Made from the parameters."""
        return (
            f"The median call takes at least {self.slower_at:g} times the baseline's "
            "median of its name, and at most "
            f"{percent(self.max_chance)} of traces would rank as far out. Fewer calls "
            "or a faster trace are facts, never signals."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The ratio, the largest chance, and which baseline (its key, or nothing)."""
        return {
            "slower_at": self.slower_at,
            "max_chance": self.max_chance,
            "baseline": self.baseline_key,
        }

    @property
    def limits(self) -> tuple[Parameter, ...]:
        """What may be set by hand; the baseline is chosen among the trace sets."""
        return (
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

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer about the whole trace."""
        durations = durations_by_name(trace)
        inputs = hash_of_inputs("latency-shift", durations)
        calls = sum(map(len, durations.values()))
        evidence = Evidence(scope="trace", length=calls)
        said = self._not_applicable(calls)
        if said is not None or self.baseline is None:
            yield (said or _no_baseline()).with_evidence(evidence, inputs)
            return
        shift = latency_shift(self.baseline, durations, seed=int(inputs[:16], 16))
        if shift is None or shift.by_trace is None:
            yield _nothing_alike(durations).with_evidence(evidence, inputs)
            return
        measured = self._measured(evidence, shift, shift.by_trace)
        yield self._judged(shift, shift.by_trace).with_evidence(measured, inputs)

    def _not_applicable(self, calls: int) -> Judgement | None:
        if self.baseline is None:
            return _no_baseline()
        if not calls:
            return Judgement(
                Answer.NOT_APPLICABLE,
                "no_durations",
                "No durations recorded",
                "No call of the trace has a recorded start and end.",
            )
        traces = len(self.baseline.scores)
        if 2 / (traces + 1) > self.max_chance:
            words = f"{traces} {'trace' if traces == 1 else 'traces'}"
            return Judgement(
                Answer.NOT_APPLICABLE,
                "baseline_too_small",
                f"The baseline has {words} with durations: too few",
                f"With {words} no chance can be below "
                f"{percent(2 / (traces + 1))}, and a signal asks for at most "
                f"{percent(self.max_chance)}.",
            )
        return None

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
            f"{shape}. A prompt to look closer, not a finding.",
            Level.REVIEW_SIGNAL,
        )

    def _measured(self, evidence: Evidence, shift: Shift, chance: float) -> Evidence:
        traces = shift.traces
        return msgspec.structs.replace(
            evidence,
            length=shift.calls,
            ratio=shift.ratio,
            effect=None if shift.ratio is None else shift.ratio - 1,
            effect_bound=self.slower_at - 1,
            chance=_chance(chance, traces),
            chance_of_signal=_most_often(self.max_chance, traces),
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


def _most_often(max_chance: float, traces: int) -> float:
    """How often chance gives a rank this far out on the slow side, at most."""
    ranks = int(Fraction(str(max_chance)) * (traces + 1) / 2)
    return ranks / (traces + 1)


def _chance(value: float, traces: int) -> Chance:
    return Chance(
        value=value,
        model=_MODEL,
        assumptions=_ASSUMPTIONS,
        method=f"rank among {traces:,} traces of the baseline, both directions; near to "
        "exact, as each of them is ranked among the others and this one among all",
        floor=2 / (traces + 1),
    )


def _no_baseline() -> Judgement:
    return Judgement(
        Answer.NOT_APPLICABLE,
        "no_baseline",
        "No baseline set is named",
        "The project names no trace set as its baseline, so there is nothing to "
        "compare the durations with.",
    )


def _nothing_alike(durations: dict[str, tuple[float, ...]]) -> Judgement:
    names = ", ".join(list(durations)[:3])
    return Judgement(
        Answer.NOT_APPLICABLE,
        "nothing_alike",
        "The baseline has no calls like these",
        f"None of what was called here ({names}) was called often enough in the "
        "baseline.",
    )
