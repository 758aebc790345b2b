"""The price table of this site: a YAML file that the operator names in the settings.

    currency: USD
    prices:
      - {model: "gpt-4o*", input: 2.50, output: 10, source: price list, as_of: 2026-01-01}

Without a file no cost is known, which is never 0.
"""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import yaml
from django.conf import settings

from apps.engine.replay.prices import (
    NO_PRICES,
    BadPrices,
    Price,
    PriceTable,
    decoded_prices,
)

LARGEST: Final = 1024**2


def price_table() -> PriceTable:
    """The prices of the file that `REPLAY_PRICES` names; none where it names no file.

    Raises `BadPrices` with a sentence for a file that cannot be used. Read anew each
    time, so that a changed price counts at once.
    """
    if not settings.REPLAY_PRICES:
        return NO_PRICES
    return table_in(_text_of(Path(settings.REPLAY_PRICES)))


def known_prices() -> tuple[PriceTable, str]:
    """The prices and "", or no prices and the sentence that says why there are none."""
    try:
        table = price_table()
    except BadPrices as error:
        return (
            NO_PRICES,
            f"The price file (EVALSITE_REPLAY_PRICES) is not used: {error}",
        )
    if table.prices:
        return table, ""
    return table, (
        "No prices are known, so money is not estimated and cannot be capped. The "
        "operator names a price file in EVALSITE_REPLAY_PRICES."
    )


def table_in(text: str) -> PriceTable:
    """The table in a YAML text; raises `BadPrices` with a sentence."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        what = getattr(error, "problem", None) or "it cannot be read"
        raise BadPrices(f"It is no YAML{where}: {what}.") from None
    except (ValueError, RecursionError):
        raise BadPrices("It holds a value that cannot be read.") from None
    if not isinstance(value, dict):
        raise BadPrices("It holds no table with “currency” and “prices”.")
    return decoded_prices(_without_dates(value))


def price_of(table: PriceTable, model: str) -> dict[str, str] | None:
    """The price of a model as it is frozen with a plan; `None` where not known."""
    found: Price | None = table.of(model)
    if found is None:
        return None
    return {"input": str(found.input), "output": str(found.output)}


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        why = (error.strerror or "it cannot be read").lower()
        raise BadPrices(f"{path.name} cannot be read ({why}).") from None
    if len(content) > LARGEST:
        raise BadPrices(f"{path.name} is larger than 1 MiB.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadPrices(f"{path.name} is not UTF-8 text.") from None


def _without_dates(value: Any) -> Any:
    """YAML reads an unquoted day as a date; the table keeps it as it is written."""
    if isinstance(value, dict):
        return {str(key): _without_dates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_dates(item) for item in value]
    return value.isoformat() if isinstance(value, date | datetime) else value
