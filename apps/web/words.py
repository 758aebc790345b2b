"""Numbers and probabilities as pages write them: the words of reports, an em dash for None."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from apps.engine.extraction import DecisionState
from apps.reports import words
from apps.reports.document import ChancePart

NOT_RECORDED = "—"
WITHOUT_DECISION: Final = {
    DecisionState.MISSING: "no decision found",
    DecisionState.FAILED: "the run failed before it decided",
    DecisionState.NOT_COMPARED: "prose, not compared",
    DecisionState.NO_BODIES: "no texts kept",
}
"""Why nothing was decided, by the state that is stored."""


def number_in_words(value: float | None) -> str:
    """`12 345` with thin spaces, `0.347` with up to three digits, `—` for None."""
    return NOT_RECORDED if value is None else words.number(value)


def percent_in_words(value: float | None) -> str:
    """A share of 1 in percent: `38 %`, `0.83 %`, `0.0014 %`, `—` for None."""
    return NOT_RECORDED if value is None else words.percent(value)


def floor_in_words(value: float) -> str:
    """The smallest probability attainable: never 0, at the least a very small number."""
    return words.percent(value or 1e-300)


def expected_in_words(value: float) -> str:
    """How many signals chance alone would give: `about 0.35`, `less than 0.01`."""
    return words.expected(value)


def chance_in_words(chance: dict[str, Any] | None) -> str:
    """`1 of 720 (0.14 %)`, `1.8 % ± 0.3 % (simulated)`, or that there is none."""
    return words.chance(msgspec.convert(chance, ChancePart) if chance else None)
