"""Input growth: the input of a serial sequence only grows, and ends much larger.

Nearly structural: in a loop the context piles up. It says how large the context got
and where it was reset, and is never a second piece of evidence for anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    Series,
    hash_of_inputs,
)
from apps.engine.rules import SequenceRule
from apps.engine.sequence_answers import evidence_of_sequence, not_applicable
from apps.engine.sequences import Boundary, SerialSequence
from apps.engine.trace import Usage, UsageState

_TRUSTED: Final = frozenset({UsageState.REPORTED, UsageState.PARTIAL})
_NOT_MODELLED: Final = (
    "That a loop repeats its whole history: growth is what it does by itself.",
    "Cached input, which some providers count inside the input and some beside it.",
)


@dataclass(frozen=True)
class InputGrowth(SequenceRule):
    """Looks for inputs that never fall over a serial sequence and end much larger.

    `min_calls` (2 to 1,000) and `growth` (the last input is at least this many times
    the first, above 1 to 1,000). Raises `ValueError` outside these ranges.
    """

    min_calls: int = 5
    growth: float = 3.0

    slug = "input-growth"
    label = "Input growth"
    version = 1
    level = Level.TELEMETRY
    basis = Basis.FACT
    needs_bodies = False
    without_calls = "nothing can be said about inputs"
    limits = (
        Parameter("min_calls", "Fewest calls", 2, 1_000, unit="calls"),
        Parameter(
            "growth",
            "Last input in multiples of the first",
            1,
            1_000,
            is_whole=False,
            above_low=True,
        ),
    )
    observes = (
        "The input lengths (tokens) of the calls of one serial sequence, in order, and "
        "how often the context of the same owner was reset."
    )
    null_model = (
        "None: growth is nearly structural. A serial loop sends its history again with "
        "every call, so no chance is given, and it is never second evidence for "
        "another signal."
    )
    next_step = (
        "Nothing is queued. Where cost or a context limit matters, see what fills the "
        "input (tool results, old turns) and whether a reset lost anything that a "
        "later answer needed."
    )

    @property
    def material_when(self) -> str:
        """The factor of growth, and the fewest calls."""
        return (
            f"At least {self.min_calls:,} serial calls of which no input is smaller "
            f"than the one before, and the last is at least {self.growth:g} times the "
            "first."
        )

    def is_known(self, call: SerialSequence) -> bool:
        """Whether the input length of a single call is recorded."""
        return _inputs(call)[0] is not None

    def serial_answers(
        self, sequences: Sequence[SerialSequence]
    ) -> Iterator[Screening]:
        """One answer about the inputs of each serial sequence."""
        resets = Counter(
            one.owner for one in sequences if one.began is Boundary.CONTEXT_RESET
        )
        for sequence in sequences:
            if not sequence.parallel:
                yield self._screening(sequence, resets[sequence.owner])

    def _screening(self, sequence: SerialSequence, resets: int) -> Screening:
        inputs = _inputs(sequence)
        known = [count for count in inputs if count is not None]
        said = self._judged(inputs, known)
        facts: dict[str, Any] = {"context_resets": resets}
        series = None
        if said.answer is not Answer.NOT_APPLICABLE:
            series = Series(
                unit="input tokens",
                steps=sequence.steps,
                values=inputs,
                threshold=known[0] * self.growth,
            )
        evidence = evidence_of_sequence(
            sequence, known=len(known), series=series, facts=facts
        )
        if said.answer is not Answer.NOT_APPLICABLE:
            evidence = self._measured(evidence, known)
        read = hash_of_inputs(
            self.slug,
            sequence.scope,
            (sequence.began, sequence.ended, sequence.order),
            resets,
            [str(count) for count in inputs],
        )
        return said.with_evidence(evidence, read)

    def _judged(self, inputs: tuple[int | None, ...], known: list[int]) -> Judgement:
        n, missing = len(inputs), len(inputs) - len(known)
        if n < self.min_calls:
            calls = "call" if n == 1 else "calls"
            text = f"{n} serial {calls}, needs {self.min_calls:,}"
            return not_applicable("too_short", text, "So few calls hardly grow.")
        if missing:
            text = f"Input length missing on {missing} of {n} calls"
            return not_applicable(
                "usage_missing", text, "A hole is never guessed over."
            )
        if 0 in known:
            text = f"Input length recorded as zero on {known.count(0)} of {n} calls"
            return not_applicable(
                "zero_inputs", text, "A zero is a suspect for missing usage."
            )
        first, last = known[0], known[-1]
        moved = f"from {first:,} to {last:,} tokens over {n} serial calls"
        if any(later < earlier for earlier, later in pairwise(known)):
            return Judgement(
                Answer.QUIET,
                "input_falls",
                f"Input went {moved}, with a fall",
                f"The input went {moved} and is smaller than before at least once.",
            )
        if last < first * self.growth:
            return Judgement(
                Answer.QUIET,
                "little_growth",
                f"Input went {moved}",
                f"The input went {moved}: {last / first:.3g} times, below the bound of "
                f"{self.growth:g}.",
            )
        return Judgement(
            Answer.SIGNAL,
            "growth",
            f"Input grew {moved}",
            f"The input never fell and grew {last / first:.3g} times, {moved}. This is "
            "nearly structural in a serial loop: telemetry, and never second evidence.",
        )

    def _measured(self, evidence: Evidence, known: list[int]) -> Evidence:
        return msgspec.structs.replace(
            evidence,
            first=known[0],
            last=known[-1],
            ratio=known[-1] / known[0],
            effect=known[-1] / known[0],
            effect_bound=self.growth,
            not_modelled=_NOT_MODELLED,
        )


def _inputs(sequence: SerialSequence) -> tuple[int | None, ...]:
    return tuple([_input(usage) for usage in sequence.usages])


def _input(usage: Usage) -> int | None:
    """The input count that the model reported; an estimate or a sum is none."""
    if usage.state not in _TRUSTED or usage.input_total is None:
        return None
    return usage.input_total if usage.input_total >= 0 else None
