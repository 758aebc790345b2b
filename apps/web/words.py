"""Numbers and probabilities in words, the same on every page."""

from __future__ import annotations

from typing import Any

THIN = "\u202f"
NOT_RECORDED = "—"


def number_in_words(value: float | None) -> str:
    """`12 345` with thin spaces, `0.347` with up to three digits, `—` for None."""
    if value is None:
        return NOT_RECORDED
    if float(value).is_integer():
        return f"{int(value):,}".replace(",", THIN)
    return f"{value:.3f}".rstrip("0").rstrip(".")


def percent_in_words(value: float | None) -> str:
    """A share of 1 in percent: `38 %`, `0.83 %`, `0.0014 %`, `—` for None."""
    if value is None:
        return NOT_RECORDED
    share = value * 100
    if share == 0 or share >= 10:
        text = f"{share:.0f}" if share == int(share) else f"{share:.1f}"
    elif share >= 0.01:
        text = f"{share:.2f}".rstrip("0").rstrip(".")
    else:
        text = f"{share:.1g}" if share >= 0.0001 else "less than 0.0001"
    return f"{text}{THIN}%"


def expected_in_words(value: float) -> str:
    """An expected count: one decimal, or two significant digits below 1."""
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _term(text: str) -> str:
    return number_in_words(int(text)) if len(text) <= 15 else f"about {float(text):.2e}"


def chance_in_words(chance: dict[str, Any] | None) -> str:
    """`1 of 720 (0.14 %)`, `1.8 % ± 0.3 % (simulated)`, or that there is none."""
    if not chance:
        return "no null model"
    share = percent_in_words(chance["value"])
    numerator, denominator = chance.get("numerator"), chance.get("denominator")
    if numerator is not None and denominator is not None:
        return f"{_term(str(numerator))} of {_term(str(denominator))} ({share})"
    error = chance.get("standard_error")
    if error:
        return f"{share} ± {percent_in_words(error)} (simulated)"
    return share
