"""What a check is and the three answers it may give.

An answer is evidence about a shape in a trace. It is never a verdict: a statistic
and what it means are two fields, and only a person or a second measure turns a
signal into a finding.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final, Protocol

import msgspec

from apps.engine.trace import Trace


class Answer(StrEnum):
    """The three answers of a check."""

    SIGNAL = "signal"
    QUIET = "quiet"
    NOT_APPLICABLE = "not_applicable"


class Level(StrEnum):
    """What may happen with a signal. A check never makes a finding."""

    TELEMETRY = "telemetry"
    REVIEW_SIGNAL = "review_signal"


class Basis(StrEnum):
    """What a signal rests on: a null model that it defies, or a recorded fact.

    A fact has no chance and no expected number: nothing is shuffled to find it.
    """

    STATISTIC = "statistic"
    FACT = "fact"


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a check, and the values it may take.

    A number lies between `low` and `high`, both included unless `above_low` says that
    it must be larger than `low`; `is_whole` admits whole numbers only. With `names` it
    is a list of at most `high` names instead.
    """

    name: str
    label: str
    low: float = 0
    high: float = 0
    unit: str = ""
    is_whole: bool = True
    above_low: bool = False
    names: bool = False

    def refusal(self, value: object) -> str:
        """Why `value` may not be taken, as a sentence; nothing when it may."""
        return self._names_refusal(value) if self.names else self._number_refusal(value)

    def _number_refusal(self, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"“{self.label}” must be a number."
        if isinstance(value, float) and not math.isfinite(value):
            return f"“{self.label}” must be a finite number."
        if self.is_whole and value != int(value):
            return f"“{self.label}” must be a whole number."
        is_low = value <= self.low if self.above_low else value < self.low
        if is_low or not value <= self.high:
            least = (
                f"above {self.low:,g}" if self.above_low else f"at least {self.low:,g}"
            )
            return f"“{self.label}” must be {least} and at most {self.high:,g}."
        return ""

    def _names_refusal(self, value: object) -> str:
        if not isinstance(value, tuple | list) or not all(
            isinstance(one, str) and one for one in value
        ):
            return f"“{self.label}” must be a list of names."
        if len(value) > self.high:
            return f"“{self.label}” may hold at most {self.high:,g} names."
        return ""


MAX_CHANCE: Final = Parameter(
    "max_chance",
    "Largest chance of a queued signal",
    0,
    1,
    is_whole=False,
    above_low=True,
)
"""Of every check with a null model: above this chance a signal is telemetry."""


class Chance(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often the null model alone gives a shape at least as extreme.

    `value` is the probability; `numerator` and `denominator` give it exactly where an
    exact fraction exists (as integers of any size). `floor` is the smallest
    probability attainable at this length. `standard_error` is set for Monte Carlo.
    """

    value: float
    model: str
    assumptions: str
    method: str
    numerator: int | None = None
    denominator: int | None = None
    floor: float | None = None
    standard_error: float | None = None


_SMALLEST: Final = sys.float_info.min
_LARGEST_TERM: Final = 10**300
_LONGEST_ODDS: Final = 10**6


def chance_as_float(probability: Fraction) -> float:
    """A probability as a float, which is 0 only if the probability is.

    One below the smallest float of full precision (2.2e-308) is given as that: an upper
    bound, where rounding to 0 would say that it cannot happen.
    """
    return max(float(probability), _SMALLEST) if probability else 0.0


def exact_chance(
    probability: Fraction, *, model: str, assumptions: str, method: str, floor: Fraction
) -> Chance:
    """An exact probability with its fraction, which is left out beyond 300 digits."""
    is_readable = probability.denominator < _LARGEST_TERM
    return Chance(
        value=chance_as_float(probability),
        model=model,
        assumptions=assumptions,
        method=method,
        numerator=probability.numerator if is_readable else None,
        denominator=probability.denominator if is_readable else None,
        floor=chance_as_float(floor),
    )


class Series(msgspec.Struct, frozen=True, omit_defaults=True):
    """The ordered values that the evidence shows; `None` is a value not recorded.

    `steps` holds the `seq` of each value, `labels` a word for each (a tool name, a
    state), `unit` what the values count.
    """

    unit: str
    steps: tuple[int, ...]
    values: tuple[float | None, ...]
    labels: tuple[str | None, ...] = ()
    threshold: float | None = None


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything a reviewer needs to judge one answer, and to recompute it.

    `began` and `ended` name the boundaries of the sequence. `first`, `last` and
    `ratio` are in `series.unit`. `facts` holds the check's own further figures as
    JSON values. `not_modelled` lists what the null model leaves out. `chance` is the
    tail probability of the shape that was observed; `chance_of_signal` is how often
    the null model alone makes the check fire on these very values (set on every
    applicable answer of a check with a null model, so that expected counts can be
    summed over everything that was screened); where that depends on more than the null
    model it is an upper bound, which `not_modelled` then says. Firing is any signal,
    also one that is too likely to be queued.
    """

    scope: str
    invocation: int | None = None
    agent: str | None = None
    model: str | None = None
    provider: str | None = None
    began: str | None = None
    ended: str | None = None
    order: str | None = None
    length: int | None = None
    first: float | None = None
    last: float | None = None
    ratio: float | None = None
    effect: float | None = None
    effect_bound: float | None = None
    usage_known: int | None = None
    usage_missing: int | None = None
    chance: Chance | None = None
    chance_of_signal: float | None = None
    series: Series | None = None
    steps: tuple[int, ...] = ()
    not_modelled: tuple[str, ...] = ()
    facts: dict[str, Any] = {}


class Screening(msgspec.Struct, frozen=True):
    """One check's answer about one scope of a trace.

    `scope` in the evidence identifies the unit inside the trace ("trace",
    "invocation 2", "invocation 2, sequence 1") and is stable for the same content.
    `headline` is one sentence for lists; `reason` says why the answer is what it is;
    `reason_code` groups the reasons of quiet and not-applicable answers.
    """

    answer: Answer
    level: Level
    headline: str
    reason: str
    reason_code: str
    evidence: Evidence
    input_hash: str


class Judgement(msgspec.Struct, frozen=True):
    """What a check says in words, before its evidence is put beside it."""

    answer: Answer
    reason_code: str
    headline: str
    reason: str
    level: Level = Level.TELEMETRY

    def with_evidence(self, evidence: Evidence, input_hash: str) -> Screening:
        """The finished answer."""
        return Screening(
            answer=self.answer,
            level=self.level,
            headline=self.headline,
            reason=self.reason,
            reason_code=self.reason_code,
            evidence=evidence,
            input_hash=input_hash,
        )


def hash_of_inputs(*inputs: object) -> str:
    """The SHA-256 (hex) of what a check read: same inputs, same 64 characters."""
    return hashlib.sha256(msgspec.json.encode(inputs)).hexdigest()


TINY: Final = "less than 0.0001 %"
NEARLY_ALL: Final = "more than 99.9 %"


def percent(share: float) -> str:
    """A share of 1 as a percentage for a sentence: `82.4 %`, `0.83 %`, `60 %`.

    Never rounded to `0 %` or `100 %`: these are said of nothing and of all only.
    """
    value = share * 100
    if value == 0 or value >= 10:
        text = f"{value:.1f}".removesuffix(".0")
        return NEARLY_ALL if text == "100" and share < 1 else f"{text} %"
    if value < 0.0001:
        return TINY
    digits = 2 - math.ceil(math.log10(value))
    text = f"{round(value, digits):.{max(digits, 0)}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def _spaced(number: int) -> str:
    """Digits in threes, with the thin spaces that pages use."""
    return f"{number:,}".replace(",", "\u202f")


def odds(probability: Fraction) -> str:
    """A probability for a sentence: `1 of 720 (0.14 %)`, or its percentage alone."""
    # A positive probability below the smallest float is tiny, never 0 %.
    is_tiny = probability > 0 and float(probability) == 0
    share = TINY if is_tiny else percent(float(probability))
    if probability.denominator > _LONGEST_ODDS:
        return share
    return f"{_spaced(probability.numerator)} of {_spaced(probability.denominator)} ({share})"


class Check(Protocol):
    """A deterministic rule over a trace.

    The four texts answer: what is observed, why is the shape unusual, what makes it
    material, what happens after it fires. `basis` says whether there is a null model.
    `needs_bodies` is true only for a check that reads text. `parameters` is what `run`
    depends on besides the trace, and `limits` what each of them may be.
    """

    @property
    def slug(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def level(self) -> Level: ...
    @property
    def basis(self) -> Basis: ...
    @property
    def observes(self) -> str: ...
    @property
    def null_model(self) -> str: ...
    @property
    def material_when(self) -> str: ...
    @property
    def next_step(self) -> str: ...
    @property
    def needs_bodies(self) -> bool: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def limits(self) -> tuple[Parameter, ...]: ...

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield at least one answer about `trace`; the same trace, the same answers."""
        ...


def configured(check: Check, values: Mapping[str, Any]) -> Check:
    """`check` with other parameters; those that are not named keep their value.

    Raises `ValueError` with a sentence for a parameter that the check does not have or
    a value that it may not take.
    """
    known = {limit.name: limit for limit in check.limits}
    for name in values:
        if name not in known:
            raise ValueError(f"“{check.label}” has no parameter “{name}”.")
    if not values:
        return check
    taken = {name: _as_taken(known[name], value) for name, value in values.items()}
    changed: Check = dataclasses.replace(check, **taken)  # type: ignore[type-var]
    return changed


def _as_taken(limit: Parameter, value: Any) -> Any:
    """The value in the type that the check holds, once it is known to be allowed."""
    if refusal := limit.refusal(value):
        raise ValueError(refusal)
    if limit.names:
        return tuple(value)
    return int(value) if limit.is_whole else float(value)
