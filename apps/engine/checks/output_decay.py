"""Output-length decay: every output of a serial sequence no longer than the last.

The rule looks at the whole sequence, never at the best part of it. It does not say
that the agent got worse: an agent that converges writes less too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
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
    Series,
    chance_as_float,
    exact_chance,
    hash_of_inputs,
    odds,
    percent,
)
from apps.engine.nulls import (
    any_falling_run,
    falling_order,
    falling_order_floor,
    mann_kendall,
    never_rises,
    sensitivity,
)
from apps.engine.rules import SequenceRule
from apps.engine.sequence_answers import evidence_of_sequence, not_applicable
from apps.engine.sequences import SerialSequence
from apps.engine.trace import FinishReason, OrderSource

_NULL_MODEL: Final = "all orders of these output lengths are equally likely"
_ASSUMPTIONS: Final = (
    "Exchangeability: the same lengths could have come in any order. Serial calls "
    "share context, so this is a reference and not a false-alarm rate."
)
_METHOD: Final = "exact: product of t! over n!, t being how often each length occurs"
_NOT_MODELLED: Final = (
    "Calls that depend on one another: see the chance under autoregression.",
    "A task that simply comes to its end: an agent that converges writes less.",
    "Response caps, narrower late prompts, and how a provider counts tokens.",
)
_TIES: Final = "Equal lengths are counted as no rise; they make the fall less rare."
_CAPPED: Final = "Some calls stopped at a length limit, so their outputs were cut."
_REASONING: Final = (
    "Reasoning tokens are recorded; some providers count them as output, some beside."
)
_FILE_ORDER: Final = (
    "The order is that of the file: nothing proves that no two calls overlapped."
)
_LONGEST_ODDS: Final = 10
_HOLE: Final = "A hole is never guessed over, and the rest is not searched."
_ZERO: Final = "A zero is a suspect for missing usage, never a short output."


@dataclass(frozen=True)
class OutputDecay(SequenceRule):
    """Looks for outputs that only ever shrink and end materially shorter.

    `min_calls` (5 to 1,000), `last_percent` (the last output is at most this share of
    the first, 1 to 99) and `max_chance` (a signal is queued only up to this chance,
    above 0 and at most 1). Raises `ValueError` outside these ranges.
    """

    min_calls: int = 5
    last_percent: int = 60
    max_chance: float = 0.05

    slug = "output-decay"
    label = "Output-length decay"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.STATISTIC
    needs_bodies = False
    without_calls = "nothing can be said about outputs"
    limits = (
        Parameter("min_calls", "Fewest calls", 5, 1_000, unit="calls"),
        Parameter("last_percent", "Last of the first output", 1, 99, unit="%"),
        MAX_CHANCE,
    )
    observes = (
        "The output lengths (tokens) of one serial sequence, in order: model calls of "
        "one agent invocation with the same model, provider and conversation, none "
        "overlapping another, retried attempts left out."
    )
    null_model = (
        "If these lengths could have come in any order, a sequence that never rises "
        "has probability (product of t!) / n!, t being how often each length occurs: 1 "
        "of 120 for five different ones. Serial calls are not independent, so the "
        "chance under autoregression stands beside it."
    )
    next_step = (
        "Read the late calls: finish reasons, prompts, tool results. Did the agent "
        "finish early, hit a limit, or lose the task? Confirm only with what you saw "
        "there or with a second measure of task quality."
    )

    @property
    def material_when(self) -> str:
        """The size of the effect, and from which chance on it is queued."""
        return (
            f"The sequence has at least {self.min_calls:,} calls and its last output is "
            f"at most {self.last_percent} % of the first. This is the size of the "
            "effect; it adds nothing to the probability and is never multiplied with "
            "it. A signal is queued only if chance alone gives the order in at most "
            f"{percent(self.max_chance)} of cases; a shape that ties explain stays "
            "telemetry."
        )

    def is_known(self, call: SerialSequence) -> bool:
        """Whether the output length of a single call is recorded."""
        return call.outputs[0] is not None

    def serial_answers(
        self, sequences: Sequence[SerialSequence]
    ) -> Iterator[Screening]:
        """One answer about the outputs of each serial sequence."""
        return (self._screening(one) for one in sequences if not one.parallel)

    def _screening(self, sequence: SerialSequence) -> Screening:
        outputs = sequence.outputs
        known = [length for length in outputs if length is not None]
        inputs = _hash(sequence)
        said = self._not_applicable(sequence)
        if said is not None:
            return said.with_evidence(_evidence(sequence, len(known)), inputs)
        probability = falling_order(known)
        evidence = self._measured(sequence, known, probability)
        said = self._judged(known, probability)
        if said.answer is Answer.SIGNAL:
            evidence = msgspec.structs.replace(
                evidence, facts=evidence.facts | _facts_of_signal(known)
            )
        return said.with_evidence(evidence, inputs)

    def _not_applicable(self, sequence: SerialSequence) -> Judgement | None:
        n, missing = len(sequence.outputs), sequence.missing
        zeros = sequence.outputs.count(0)
        if n < self.min_calls:
            calls = "call" if n == 1 else "calls"
            headline = f"{n} serial {calls}, needs {self.min_calls}"
            return not_applicable(
                "too_short", headline, _why_short(sequence, self.min_calls)
            )
        if missing:
            headline = f"Usage missing on {missing} of {n} calls"
            return not_applicable("usage_missing", headline, _HOLE)
        if zeros:
            headline = f"Output length recorded as zero on {zeros} of {n} calls"
            return not_applicable("zero_outputs", headline, _ZERO)
        return None

    def _judged(self, known: list[int], probability: Fraction) -> Judgement:
        n, first, last = len(known), known[0], known[-1]
        kept = percent(last / first)
        if not never_rises(known):
            return Judgement(
                Answer.QUIET,
                "not_falling",
                f"Outputs rise at least once over {n} serial calls",
                f"At least one of {n} outputs is longer than the one before it.",
            )
        if not self._is_material(first, last):
            return Judgement(
                Answer.QUIET,
                "not_material",
                f"Outputs never rise over {n} serial calls, {kept} kept",
                f"No output is longer than the one before, but the last ({last}) keeps "
                f"{kept} of the first ({first}): above the bound of "
                f"{self.last_percent} %.",
            )
        is_rare = probability <= Fraction(str(self.max_chance))
        shape = (
            f"None of {n} outputs is longer than the one before, and the last "
            f"({last}) keeps {kept} of the first ({first}). Chance alone gives such an "
            f"order in {odds(probability)}"
        )
        consequence = (
            ". A prompt to look closer, not by itself a finding."
            if is_rare
            else f": above {percent(self.max_chance)}, so this is telemetry and not "
            "queued. The shape is there, the evidence is not."
        )
        return Judgement(
            Answer.SIGNAL,
            "decay" if is_rare else "decay_by_ties",
            f"Output fell from {first} to {last} tokens over {n} serial calls "
            f"({kept} kept)",
            shape + consequence,
            Level.REVIEW_SIGNAL if is_rare else Level.TELEMETRY,
        )

    def _is_material(self, first: int, last: int) -> bool:
        # Whole numbers only: exactly 60 % is inside the bound.
        return last * 100 <= first * self.last_percent

    def _measured(
        self, sequence: SerialSequence, known: list[int], probability: Fraction
    ) -> Evidence:
        n, first, last = len(known), known[0], known[-1]
        chance = _chance(probability, n) if never_rises(known) else None
        fires = self._is_material(max(known), min(known))
        return msgspec.structs.replace(
            _evidence(sequence, n),
            first=first,
            last=last,
            ratio=last / first,
            effect=1 - last / first,
            effect_bound=1 - self.last_percent / 100,
            chance=chance,
            chance_of_signal=chance_as_float(probability) if fires else 0.0,
            series=_series(sequence, threshold=first * self.last_percent / 100),
            not_modelled=_not_modelled(sequence),
            facts=_facts(sequence, known),
        )


def _why_short(sequence: SerialSequence, needed: int) -> str:
    """How often so few different lengths fall, or what cut the sequence short."""
    n = len(sequence.outputs)
    if sequence.cut_words or not 2 <= n <= _LONGEST_ODDS:
        return sequence.cut_words
    share = f"Of {n} different lengths 1 of {math.factorial(n):,} orders falls"
    return f"{share}; the rule asks for {needed} calls."


def _chance(probability: Fraction, n: int) -> Chance:
    return exact_chance(
        probability,
        model=_NULL_MODEL,
        assumptions=_ASSUMPTIONS,
        method=_METHOD,
        floor=falling_order_floor(n),
    )


def _hash(sequence: SerialSequence) -> str:
    return hash_of_inputs(
        "output-decay",
        sequence.scope,
        (sequence.agent, sequence.model, sequence.provider),
        (sequence.began, sequence.ended, sequence.order),
        sequence.steps,
        [str(length) for length in sequence.outputs],
    )


def _evidence(sequence: SerialSequence, known: int) -> Evidence:
    """What every answer about a sequence carries, applicable or not."""
    series = _series(sequence, threshold=None) if known else None
    return evidence_of_sequence(
        sequence, known=known, series=series, facts=sequence.removed
    )


def _series(sequence: SerialSequence, *, threshold: float | None) -> Series:
    return Series(
        unit="output tokens",
        steps=sequence.steps,
        values=sequence.outputs,
        labels=tuple([finish.value for finish in sequence.finishes]),
        threshold=threshold,
    )


def _facts(sequence: SerialSequence, known: list[int]) -> dict[str, Any]:
    trend = mann_kendall(known)
    finishes = Counter(finish.value for finish in sequence.finishes)
    facts = sequence.removed | {
        "finish_reasons": dict(finishes),
        "mann_kendall": {"s": trend.s, "p": trend.p, "method": trend.method},
    }
    inputs = [count for count in sequence.inputs if count is not None]
    if inputs:
        # Context piles up in a serial loop: shown, never a second piece of evidence.
        facts["inputs"] = {
            "known": len(inputs),
            "first": inputs[0],
            "last": inputs[-1],
            "never_fall": all(a <= b for a, b in pairwise(inputs)),
        }
    return facts


def _facts_of_signal(known: list[int]) -> dict[str, Any]:
    n = len(known)
    facts: dict[str, Any] = {
        "searched": "The whole sequence was judged; no part of it was searched for."
    }
    searching = any_falling_run(n) if n > 5 else None
    if searching is not None:
        facts["chance_of_any_falling_run_of_5"] = searching
    by_phi = sensitivity(n)
    if by_phi:
        facts["chance_under_autoregression"] = by_phi
    return facts


def _not_modelled(sequence: SerialSequence) -> tuple[str, ...]:
    conditions = (
        (len(set(sequence.outputs)) < len(sequence.outputs), _TIES),
        (FinishReason.LENGTH in sequence.finishes, _CAPPED),
        (any(u.output_reasoning is not None for u in sequence.usages), _REASONING),
        (sequence.order is OrderSource.FILE, _FILE_ORDER),
    )
    return _NOT_MODELLED + tuple(text for holds, text in conditions if holds)
