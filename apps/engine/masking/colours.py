"""The colours of a verdict and of an outcome, each with a word and a symbol.

A colour is never shown alone: pages take the label and the symbol from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec


class Colour(StrEnum):
    """What is said of an agent; never shown without its word and symbol."""

    RED = "red"
    UNSTABLE = "unstable"
    UNKNOWN = "unknown"
    GREEN = "green"


class ColourWords(msgspec.Struct, frozen=True):
    """How a colour reads without colour: a word, the name of a symbol, its meaning."""

    label: str
    symbol: str
    meaning: str


COLOURS: Final = (Colour.RED, Colour.UNSTABLE, Colour.UNKNOWN, Colour.GREEN)
"""The colours from worst to best."""

WORDS: Final[dict[Colour, ColourWords]] = {
    Colour.RED: ColourWords(
        "red",
        "circle-x",
        "A contract broke, a finding exists, or a planted fact was lost or contradicted.",
    ),
    Colour.UNSTABLE: ColourWords(
        "unstable",
        "triangle-alert",
        "Nothing broke, but trials of at least one task do not agree.",
    ),
    Colour.UNKNOWN: ColourWords(
        "unknown",
        "circle-help",
        "Nothing that could be judged was exercised; this is not green.",
    ),
    Colour.GREEN: ColourWords(
        "green",
        "circle-check",
        "At least one contract applied and held, none broke, and nothing is unstable.",
    ),
}


class OutcomeColour(StrEnum):
    """The end-to-end verdict of a trace, or of all known trials of a task."""

    GREEN = "green"
    RED = "red"
    MIXED = "mixed"
    UNKNOWN = "unknown"


OUTCOME_WORDS: Final[dict[OutcomeColour, ColourWords]] = {
    OutcomeColour.GREEN: ColourWords(
        "passed", "circle-check", "Passed end to end; of a task: every known trial."
    ),
    OutcomeColour.RED: ColourWords(
        "failed", "circle-x", "Failed end to end; of a task: every known trial."
    ),
    OutcomeColour.MIXED: ColourWords(
        "mixed", "git-branch", "Some trials of the task passed and some failed."
    ),
    OutcomeColour.UNKNOWN: ColourWords(
        "outcome unknown", "circle-help", "No outcome was recorded, or only a score."
    ),
}


def worst(colours: Iterable[Colour]) -> Colour:
    """The worst of the colours; unknown for none, for nothing is not green."""
    return min(colours, key=COLOURS.index, default=Colour.UNKNOWN)
