"""Estimates and prices: ranges that hold, and what is unknown stays unknown."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.replay.case import Case, RecordedCall, ToolOffer
from apps.engine.replay.estimates import (
    Span,
    TargetSettings,
    estimate,
    worst_case,
)
from apps.engine.replay.prices import (
    NO_PRICES,
    BadPrices,
    PriceTable,
    cost_of,
    cost_of_tokens,
    decoded_prices,
    in_words,
)
from apps.engine.replay.run import Limits, Regime, RegimeKind, TargetKind
from apps.engine.trace import Usage, UsageState

TABLE = decoded_prices(
    {
        "currency": "EUR",
        "prices": [
            {"model": "small-*", "input": 0.15, "output": "0.6"},
            {"model": "small-2*", "input": 1, "output": 4, "cached_input": 0.25,
             "source": "price list", "as_of": "2026-11-01"},
            {"model": "*", "input": 10, "output": 30},
        ],
    }
)  # fmt: skip
CASE = Case(
    agent="billing",
    input="I was charged twice",
    messages=({"role": "user", "content": "I was charged twice"},),
    tools=(ToolOffer(name="get_order", parameters={"type": "object"}),),
    calls=(RecordedCall(tool="get_order", arguments={"id": 7}, result="paid" * 50),)
    * 2,
)
LIMITS = Limits(model_calls=5, tool_calls=10, output_tokens=100, seconds=60)
MODEL = TargetSettings(kind=TargetKind.OPENAI, model="small-1", limits=LIMITS)
ZERO = Regime()
POLITE = Regime(kind=RegimeKind.PARAPHRASE, paraphrase="polite")
KEYS = Regime(kind=RegimeKind.PARAPHRASE, paraphrase="json-keys")


def of(cases=(CASE,), **changed):
    fields = {"repeats": 5, "regimes": [ZERO], "settings": MODEL, "prices": TABLE}
    return estimate(cases, **(fields | changed))


def test_the_closest_price_counts_and_none_is_none():
    assert TABLE.of("small-1").output == Decimal("0.6")
    assert TABLE.of("small-2-mini").source == "price list"
    assert TABLE.of("large").input == 10
    assert TABLE.of(" ") is None
    assert NO_PRICES.of("small-1") is None


def reported(**counts):
    return Usage(state=UsageState.REPORTED, **counts)


@pytest.mark.parametrize(
    ("usage", "model", "micros"),
    [
        (reported(input_total=1_000_000, output_total=0), "small-1", 150_000),
        (reported(input_total=1, output_total=0), "small-1", 1),
        (reported(input_total=0, output_total=0), "small-1", 0),
        (reported(input_total=100, output_total=10, input_cached=40), "small-2", 110),
        (reported(input_total=100, output_total=10, input_cached=400), "small-2", 140),
        (reported(input_total=100, output_total=10, total=160), "small-2", 340),
        (reported(input_total=100), "small-2", None),
        (reported(input_total=100, output_total=-1), "small-2", None),
        (Usage(), "small-2", None),
        (Usage(state=UsageState.ZERO_SUSPECT, input_total=0, output_total=0),
         "small-2", None),
    ],
)  # fmt: skip
def test_a_call_costs_what_was_reported_and_else_nothing_is_known(usage, model, micros):
    assert cost_of(usage, TABLE.of(model)) == micros


def test_without_a_price_nothing_costs_nothing():
    assert cost_of(reported(input_total=1, output_total=1), None) is None
    assert cost_of_tokens(10, 10, None) is None
    assert in_words(None, "EUR") == "not known"
    assert in_words(9_999, "EUR") == "less than 0.01 EUR"
    assert in_words(0, "EUR") == "0.00 EUR"
    assert in_words(1_234_567_890, "EUR") == "1,234.57 EUR"


@pytest.mark.parametrize(
    ("value", "field", "sentence"),
    [
        ({"prices": [{"model": "m", "input": 1}]}, "prices[0]", "`output`"),
        ({"prices": [{"model": "m", "input": -1, "output": 1}]}, "prices[0].input",
         "between 0 and"),
        ({"prices": [{"model": "m", "input": "NaN", "output": 1}]}, "prices[0].input",
         "between 0 and"),
        ({"prices": [{"model": " ", "input": 1, "output": 1}]}, "prices[0].model",
         "Name the model."),
        ({"prices": [{"model": "m", "input": "x", "output": 1}]}, "prices[0].input",
         "Invalid decimal"),
        ({"currency": ""}, "currency", "Name the currency"),
        ({"price": []}, "", "unknown field `price`"),
    ],
)  # fmt: skip
def test_a_bad_table_is_refused_with_its_field(value, field, sentence):
    with pytest.raises(BadPrices) as refusal:
        decoded_prices(value)
    assert refusal.value.field == field
    assert sentence in str(refusal.value)


def test_a_batch_is_counted_before_it_starts():
    found = of(regimes=[ZERO, POLITE, KEYS])
    assert (found.groups, found.runs, found.left_out) == (2, 10, 1)
    assert found.calls == Span(10, 30, 50)
    assert found.seconds_at_most == 600
    assert found.output_tokens == Span(0, 3_000, 5_000)
    assert found.micros.likely == cost_of_tokens(
        found.input_tokens.likely, 3_000, TABLE.of("small-1")
    )
    assert found.currency == "EUR"
    assert found.unknown == ("Attempts that are repeated after an error come on top.",)
    assert found.sentence == (
        "10 runs, 10 to 50 model calls (likely 30), likely less than 0.01 EUR, at most "
        f"{in_words(found.micros.worst, 'EUR')}."
    )


def test_what_nobody_can_know_is_unknown_and_not_zero():
    unpriced = of(prices=PriceTable(currency="EUR"))
    assert unpriced.micros is None
    assert unpriced.calls == Span(5, 15, 25)
    assert unpriced.unknown[0] == "The price table has no price for small-1."
    assert unpriced.sentence.endswith("cost not known.")
    unnamed = of(settings=TargetSettings(kind=TargetKind.OPENAI))
    assert unnamed.micros is None
    assert unnamed.unknown[0] == "No model is named, so the cost is not known."
    for kind in (TargetKind.HTTP, TargetKind.CALLABLE, TargetKind.COMMAND):
        found = of(settings=msgspec.structs.replace(MODEL, kind=kind))
        assert (found.calls, found.micros, found.runs) == (None, None, 5)
        assert "is not known before it runs" in found.unknown[0]
    recorded = of(settings=msgspec.structs.replace(MODEL, kind=TargetKind.RECORDED))
    assert (recorded.runs, recorded.micros) == (0, Span(0, 0, 0))
    with pytest.raises(ValueError, match="at least once"):
        of(repeats=0)


contents = st.text(max_size=40)


@settings(max_examples=60)
@given(
    st.lists(contents, max_size=3),
    st.lists(contents, max_size=4),
    st.integers(1, 6),
    st.integers(1, 50),
)
def test_no_run_within_its_limits_passes_the_worst_case(words, results, calls, output):
    """A run that does the most in each turn, with a token for each byte."""
    limits = Limits(model_calls=calls, tool_calls=5, output_tokens=output)
    case = Case(
        agent="a",
        input="x",
        messages=tuple({"role": "user", "content": text} for text in words),
        calls=tuple(RecordedCall(tool="t", result=text) for text in results),
    )
    messages = list(case.messages) or [{"role": "user", "content": "x"}]
    longest = max(results, key=lambda text: len(text.encode()), default="")
    spent = 0
    for number in range(calls):
        spent += len(msgspec.json.encode(messages))
        messages.append({"role": "assistant", "content": "y" * output})
        if number == 0:
            messages += [{"role": "tool", "content": longest}] * limits.tool_calls
    worst = worst_case(case, limits)
    assert spent <= worst.input
    assert worst.output == calls * output
    found = estimate(
        [case], repeats=1, regimes=[ZERO], prices=TABLE,
        settings=TargetSettings(kind=TargetKind.OPENAI, model="m", limits=limits),
    )  # fmt: skip
    for span in (found.calls, found.input_tokens, found.output_tokens, found.micros):
        assert 0 <= span.low <= span.likely <= span.worst
