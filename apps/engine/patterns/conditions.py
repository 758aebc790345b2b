"""One condition on one feature, and how it reads.

A condition says which runs are meant, never why they ended as they did.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

_LONGEST: Final = 60
_LABELS: Final = {
    "calls": "number of tool calls",
    "errors": "number of failed calls",
    "fork": "branch",
    "input_length": "input length in characters",
    "invocations": "number of invocations",
    "model_calls": "number of model calls",
    "models": "models",
    "retries": "number of retries",
    "script": "script of the input",
    "tools": "tools",
    "turn": "number of user messages before",
    "user_messages": "number of user messages",
}


class Kind(StrEnum):
    """How a condition compares."""

    RANGE = "range"
    IS = "is"
    HOLDS = "holds"
    KNOWN = "known"


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of a feature. A value that is not recorded never meets it.

    RANGE: `low` <= value < `high`, each open where `None`; `is_whole` says that every
    recorded value is a whole number. IS: equal to `value`. HOLDS: the set has `value`
    as a member. KNOWN: any value is recorded.
    """

    feature: str
    kind: Kind
    value: str | bool | None = None
    low: float | None = None
    high: float | None = None
    is_whole: bool = False

    @property
    def words(self) -> str:
        """The condition for a sentence: `input confidence is 0.4 to under 0.5`."""
        name = feature_words(self.feature)
        if self.kind is Kind.RANGE:
            return f"{name} is {_range_words(self)}"
        if self.kind is Kind.KNOWN:
            return f"{name} is known"
        if self.kind is Kind.HOLDS:
            return f"{name} include {_quoted(str(self.value))}"
        if isinstance(self.value, bool):
            return f"{name} is {'true' if self.value else 'false'}"
        return f"{name} is {_quoted(str(self.value))}"

    @property
    def wordiness(self) -> tuple[int, int, str]:
        """How much there is to read: digits of the bounds, bounds, the words."""
        bounds = [bound for bound in (self.low, self.high) if bound is not None]
        digits = sum([len(number_words(bound).strip("-0.,")) for bound in bounds])
        return digits, len(bounds), self.words


def feature_words(feature: str) -> str:
    """The name of a feature for a sentence; `input.a.b` is `input a b`."""
    if feature.startswith("input."):
        feature = feature.replace(".", " ")
    return _LABELS.get(feature, _cut(feature))


def number_words(value: float) -> str:
    """A number with as many digits as it has, and no more than 12."""
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:.12g}"


def _range_words(one: Condition) -> str:
    low, high = one.low, one.high
    if one.is_whole:
        return _whole_words(low, high)
    if high is None:
        return f"{number_words(low or 0.0)} or more"
    if low is None:
        return f"under {number_words(high)}"
    return f"{number_words(low)} to under {number_words(high)}"


def _whole_words(low: float | None, high: float | None) -> str:
    """A range of whole numbers, with its last one instead of the first beyond."""
    if high is None:
        return f"{number_words(low or 0.0)} or more"
    last = high - 1
    if low is None:
        return f"at most {number_words(last)}"
    if last <= low:
        return number_words(low)
    return f"{number_words(low)} to {number_words(last)}"


def _quoted(text: str) -> str:
    return f"“{_cut(text)}”"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
