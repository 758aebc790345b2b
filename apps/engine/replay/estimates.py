"""What a batch may cost before it starts: runs, calls, tokens and money, as ranges.

The worst is a bound that no run can pass while its limits are kept; the likely figure
is a guess by stated assumptions. What is not known stays unknown and is never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from apps.engine.consistency import counted
from apps.engine.replay.case import Case
from apps.engine.replay.prices import PriceTable, cost_of_tokens, in_words
from apps.engine.replay.regimes import applicable
from apps.engine.replay.run import Limits, Regime, TargetKind

BYTES_PER_TOKEN: Final = 4
"""What is taken for likely; languages other than English need more tokens."""

LIKELY_OUTPUT: Final = 300
"""Output tokens of a call that are taken for likely, where the limit allows them."""

MOST_AROUND: Final = 64
"""Tokens that are allowed for around each message and each definition of a tool."""

ASSUMPTIONS: Final = (
    "No tokenizer makes more tokens of a text than it has bytes, and 64 more for what "
    "stands around each message and tool: that is the worst.",
    f"Likely is a token for {BYTES_PER_TOKEN} bytes, {LIKELY_OUTPUT} output tokens for "
    "each model call, and one model call more than the recorded tool calls.",
)

_MODEL_CALLS_ARE_OURS: Final = frozenset({TargetKind.OPENAI})


class TargetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What of a target matters for its cost. `declared` are the declared wordings."""

    kind: TargetKind
    model: str = ""
    limits: Limits = Limits()
    declared: tuple[str, ...] = ()


class Span(msgspec.Struct, frozen=True):
    """A range: the least, what is likely and the worst."""

    low: int
    likely: int
    worst: int

    def times(self, number: int) -> Span:
        """The range of so many of the same."""
        return Span(self.low * number, self.likely * number, self.worst * number)

    def plus(self, other: Span) -> Span:
        """The range of both together."""
        return Span(
            self.low + other.low, self.likely + other.likely, self.worst + other.worst
        )


NOTHING: Final = Span(0, 0, 0)


class Tokens(msgspec.Struct, frozen=True):
    """Tokens that go in and come out."""

    input: int
    output: int


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch may need. `None` is not known.

    `micros` are millionths of `currency`; `left_out` counts the groups whose
    paraphrase does not apply, `unknown` are sentences on what nobody can know before.
    """

    groups: int
    runs: int
    left_out: int
    calls: Span | None
    input_tokens: Span | None
    output_tokens: Span | None
    micros: Span | None
    currency: str
    seconds_at_most: float
    unknown: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The whole estimate in one line for people."""
        calls = (
            "an unknown number of model calls"
            if self.calls is None
            else f"{self.calls.low:,} to {self.calls.worst:,} model calls "
            f"(likely {self.calls.likely:,})"
        )
        money = (
            "cost not known"
            if self.micros is None
            else f"likely {in_words(self.micros.likely, self.currency)}, at most "
            f"{in_words(self.micros.worst, self.currency)}"
        )
        return f"{counted(self.runs, 'run')}, {calls}, {money}."


def estimate(
    cases: Sequence[Case],
    *,
    repeats: int,
    regimes: Sequence[Regime],
    settings: TargetSettings,
    prices: PriceTable,
) -> Estimate:
    """What `repeats` runs of each case in each regime that applies may need.

    Attempts that are repeated after an error come on top and are said to be unknown.
    Raises `ValueError` for fewer than 1 repeat.
    """
    if repeats < 1:
        raise ValueError("A case is run at least once.")
    groups = left_out = 0
    calls = given = back = NOTHING
    for case in cases:
        taken, skipped = applicable(case, regimes, declared=settings.declared)
        groups += len(taken)
        left_out += len(skipped)
        number = len(taken) * repeats
        one = _of_run(case, settings.limits)
        calls = calls.plus(one[0].times(number))
        given = given.plus(one[1].times(number))
        back = back.plus(one[2].times(number))
    is_known = settings.kind in _MODEL_CALLS_ARE_OURS
    if settings.kind is TargetKind.RECORDED:
        groups, calls, given, back, is_known = 0, NOTHING, NOTHING, NOTHING, True
    price = prices.of(settings.model)
    micros = _money(given, back, prices, settings) if is_known else None
    runs = groups * repeats
    return Estimate(
        groups=groups,
        runs=runs,
        left_out=left_out,
        calls=calls if is_known else None,
        input_tokens=given if is_known else None,
        output_tokens=back if is_known else None,
        micros=micros,
        currency=prices.currency,
        seconds_at_most=runs * settings.limits.seconds,
        unknown=_unknown(settings, has_price=price is not None),
        assumptions=ASSUMPTIONS if is_known and runs else (),
    )


def worst_case(case: Case, limits: Limits) -> Tokens:
    """The most tokens that all model calls of one run can need within its limits.

    Each call sends what came before again: all earlier outputs, and the answers to all
    tool calls, each as long as the longest that is recorded.
    """
    first = _first_request(case)
    calls, output = limits.model_calls, limits.output_tokens
    if calls < 1:
        return Tokens(0, 0)
    longest = max([_bytes_of(_answer(call)) for call in case.calls], default=0)
    answers = limits.tool_calls * (longest + MOST_AROUND)
    told = (output + MOST_AROUND) * calls * (calls - 1) // 2
    repeated = told + answers * (calls - 1)
    return Tokens(first * calls + repeated, output * calls)


def _of_run(case: Case, limits: Limits) -> tuple[Span, Span, Span]:
    """Calls, tokens in and tokens out of one run."""
    likely = max(1, min(limits.model_calls, len(case.calls) + 1))
    worst = worst_case(case, limits)
    first = _first_request(case) // BYTES_PER_TOKEN
    output = min(LIKELY_OUTPUT, limits.output_tokens)
    answers = sum(_bytes_of(_answer(call)) for call in case.calls) // BYTES_PER_TOKEN
    repeated = output * likely * (likely - 1) // 2 + answers * likely // 2
    given = min(worst.input, first * likely + repeated)
    return (
        Span(1, likely, max(1, limits.model_calls)),
        Span(min(first, given), given, worst.input),
        Span(0, min(output * likely, worst.output), worst.output),
    )


def _first_request(case: Case) -> int:
    """The bytes of the first request, with what is allowed for around its parts."""
    said = list(case.messages) or [{"role": "user", "content": case.input}]
    tools = msgspec.to_builtins(case.tools)
    parts = len(said) + len(case.tools) + 1
    return _bytes_of(said) + _bytes_of(tools) + MOST_AROUND * parts


def _answer(call: Any) -> Any:
    return call.result if call.result is not None else call.error


def _bytes_of(value: Any) -> int:
    """The bytes of a JSON value as UTF-8, with its quotes and names."""
    if value is None or value == "":
        return 0
    try:
        return len(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return len(repr(value).encode("utf-8", "replace"))


def _money(
    given: Span, back: Span, prices: PriceTable, settings: TargetSettings
) -> Span | None:
    if settings.kind is TargetKind.RECORDED:
        return NOTHING
    price = prices.of(settings.model)
    low = cost_of_tokens(given.low, back.low, price)
    likely = cost_of_tokens(given.likely, back.likely, price)
    worst = cost_of_tokens(given.worst, back.worst, price)
    if low is None or likely is None or worst is None:
        return None
    return Span(low, likely, worst)


def _unknown(settings: TargetSettings, *, has_price: bool) -> tuple[str, ...]:
    if settings.kind is TargetKind.RECORDED:
        return ()
    said = []
    if settings.kind not in _MODEL_CALLS_ARE_OURS:
        said.append(
            "Which models this target asks, and how often, is not known before it runs."
        )
    elif not settings.model:
        said.append("No model is named, so the cost is not known.")
    elif not has_price:
        said.append(f"The price table has no price for {settings.model}.")
    said.append("Attempts that are repeated after an error come on top.")
    return tuple(said)
