"""What a memory test may need before it starts: each turn sends what came before again.

The bounds are those of other estimates: no tokenizer makes more tokens of a text than
it has bytes, and 64 more for what stands around a message.
"""

from __future__ import annotations

from apps.engine.memory_tests import MemoryTest, PlannedTrial, planned
from apps.engine.replay.estimates import (
    BYTES_PER_TOKEN,
    LIKELY_OUTPUT,
    MOST_AROUND,
    NOTHING,
    Estimate,
    Span,
    TargetSettings,
)
from apps.engine.replay.prices import PriceTable, cost_of_tokens
from apps.engine.replay.run import TargetKind

ASSUMPTIONS = (
    "Each turn is one model call and sends the whole conversation again; tool calls "
    "come on top.",
    f"Likely is a token for {BYTES_PER_TOKEN} bytes and at most {LIKELY_OUTPUT} output "
    "tokens for each answer.",
)


def memory_estimate(
    test: MemoryTest, *, settings: TargetSettings, base: int, prices: PriceTable
) -> Estimate:
    """What a test may need; `base` are the bytes that stand before each conversation.

    Calls and tokens are known of model endpoints alone. Raises `BadDefinition` where
    no filler is left to say.
    """
    trials = planned(test).trials
    calls = given = back = NOTHING
    for trial in trials:
        one = _of_trial(trial, settings, base)
        calls, given, back = calls.plus(one[0]), given.plus(one[1]), back.plus(one[2])
    is_known = settings.kind is TargetKind.OPENAI
    micros = _money(given, back, settings, prices) if is_known else None
    return Estimate(
        groups=len(test.depths),
        runs=len(trials),
        left_out=0,
        calls=calls,
        input_tokens=given if is_known else None,
        output_tokens=back if is_known else None,
        micros=micros,
        currency=prices.currency,
        seconds_at_most=len(trials) * settings.limits.seconds,
        unknown=_unknown(settings, is_known=is_known, has_price=micros is not None),
        assumptions=ASSUMPTIONS if is_known else (),
    )


def most_calls(test: MemoryTest) -> int:
    """How many calls the longest conversation has at least."""
    return max(len(one.turns) + len(one.summaries) for one in planned(test).trials)


def _of_trial(
    trial: PlannedTrial, settings: TargetSettings, base: int
) -> tuple[Span, Span, Span]:
    """Calls, tokens in and tokens out of one conversation."""
    count = len(trial.turns) + len(trial.summaries)
    worst_calls = max(count, settings.limits.model_calls)
    output = settings.limits.output_tokens
    answer = min(LIKELY_OUTPUT, output)
    said = likely = 0
    for place, turn in enumerate(trial.turns):
        said += len(turn.text.encode("utf-8", "replace")) + MOST_AROUND
        likely += (base + said) // BYTES_PER_TOKEN + place * answer
    low = (base + said) // BYTES_PER_TOKEN
    worst = worst_calls * (base + said + MOST_AROUND)
    worst += output * worst_calls * (worst_calls - 1) // 2
    return (
        Span(count, count, worst_calls),
        Span(min(low, likely), likely, max(worst, likely)),
        Span(0, answer * count, output * worst_calls),
    )


def _money(
    given: Span, back: Span, settings: TargetSettings, prices: PriceTable
) -> Span | None:
    price = prices.of(settings.model)
    low = cost_of_tokens(given.low, back.low, price)
    likely = cost_of_tokens(given.likely, back.likely, price)
    worst = cost_of_tokens(given.worst, back.worst, price)
    if low is None or likely is None or worst is None:
        return None
    return Span(low, likely, worst)


def _unknown(
    settings: TargetSettings, *, is_known: bool, has_price: bool
) -> tuple[str, ...]:
    said = []
    if not is_known:
        said.append(
            "How many model calls and tokens an agent of its own needs for a turn is not "
            "known before; counted are the turns."
        )
    elif not has_price:
        said.append(
            f"The price table has no price for {settings.model or 'its model'}."
        )
    said.append("Attempts that are repeated after an error come on top.")
    return tuple(said)
