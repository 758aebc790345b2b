"""What tokens cost, by a table that the operator gives: none is built in.

Money is counted in whole millionths of the currency of the table. A model without a
price has no known cost, which is never 0.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Final

import msgspec

from apps.engine.bodies.patterns import BadPattern, names, valid_text
from apps.engine.trace import Usage, UsageState

MOST_PRICES: Final = 1_000
MICROS: Final = 1_000_000
_DEAREST: Final = 1_000_000


class BadPrices(ValueError):
    """A table that is not used: `field` names the place, the message says why."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a million tokens cost of the models that a pattern names.

    `model` takes `*`, `?` and alternatives after `|`. `cached_input` is for input that
    a provider had in its cache; `None`: like other input. `source` and `as_of` say where
    the price was read and when.
    """

    model: str
    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    source: str = ""
    as_of: str = ""


class PriceTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices in one currency."""

    currency: str = "USD"
    prices: tuple[Price, ...] = ()

    def of(self, model: str) -> Price | None:
        """The price of a model; the pattern with the most plain characters counts.

        The first of equals; `None` where no pattern names the model.
        """
        wanted = valid_text(model.strip())
        if not wanted:
            return None
        found = [
            one for one in self.prices if names(one.model).fullmatch(wanted) is not None
        ]
        return max(found, key=_closeness, default=None)


NO_PRICES: Final = PriceTable()


def decoded_prices(value: Any) -> PriceTable:
    """The table in a JSON value; raises `BadPrices` with field and sentence."""
    try:
        table = msgspec.convert(value, PriceTable)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        field = place.strip("`.")
        where = f" in “{field}”" if field else ""
        raise BadPrices(f"{what.rstrip('.')}{where}.", field=field) from None
    if not table.currency.strip() or len(table.currency) > 8:
        raise BadPrices("Name the currency, such as USD.", field="currency")
    if len(table.prices) > MOST_PRICES:
        raise BadPrices(f"A table may hold {MOST_PRICES:,} prices.", field="prices")
    for number, one in enumerate(table.prices):
        _refuse(one, f"prices[{number}]")
    return table


def _refuse(one: Price, field: str) -> None:
    try:
        names(one.model)
    except BadPattern as error:
        raise BadPrices(str(error), field=f"{field}.model") from None
    if not one.model.strip():
        raise BadPrices("Name the model.", field=f"{field}.model")
    for name in ("input", "output", "cached_input"):
        amount = getattr(one, name)
        if amount is not None and not (amount.is_finite() and 0 <= amount <= _DEAREST):
            raise BadPrices(
                f"A price lies between 0 and {_DEAREST:,} for a million tokens.",
                field=f"{field}.{name}",
            )


def cost_of(usage: Usage, price: Price | None) -> int | None:
    """Millionths of the currency that a call cost, rounded up; `None` where not known.

    Known is what the provider reported with both counts. Where the reported total is
    larger than input and output, the rest is taken for output (some providers count
    reasoning beside it), so that the figure is rather too high than too low. Cached
    input is taken for a part of the input where it is no larger.
    """
    is_reported = usage.state in {UsageState.REPORTED, UsageState.PARTIAL}
    given, back = usage.input_total, usage.output_total
    if price is None or not is_reported or given is None or back is None:
        return None
    if min(given, back) < 0:
        return None
    beside = max(0, (usage.total or 0) - given - back)
    cached = usage.input_cached or 0
    if price.cached_input is None or not 0 <= cached <= given:
        cached = 0
    return _micros(
        (given - cached) * price.input
        + cached * (price.cached_input or Decimal(0))
        + (back + beside) * price.output
    )


def cost_of_tokens(given: int, back: int, price: Price | None) -> int | None:
    """Millionths of the currency for so many tokens, rounded up; `None` without price."""
    if price is None:
        return None
    return _micros(given * price.input + back * price.output)


def in_words(micros: int | None, currency: str) -> str:
    """Money for people: `0.42 USD`, `less than 0.01 USD`, or that it is not known."""
    if micros is None:
        return "not known"
    if 0 < micros < MICROS // 100:
        return f"less than 0.01 {currency}"
    return f"{micros / MICROS:,.2f} {currency}"


def _micros(amount: Decimal) -> int:
    # A price for a million tokens in units is one for a token in millionths.
    return math.ceil(amount)


def _closeness(one: Price) -> int:
    return sum(char not in "*?|" for char in one.model)
