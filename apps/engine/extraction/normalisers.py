"""What does not count as a difference between two decisions, as the author declared.

Normalisers work on the leaves of a JSON value, on texts that hold JSON too, in the
order of `DecisionNormaliser`. They know nothing of what a value means.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from apps.engine.bodies.canonical import opened
from apps.engine.extraction.dates import is_ambiguous, iso_date
from apps.engine.extraction.spec import DecisionNormaliser

_DEEPEST: Final = 60
_LONGEST: Final = 60
_ROUNDS: Final = 4
_PLAIN: Final = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?")
_THOUSANDS: Final = tuple(
    re.compile(rf"[+-]?[0-9]{{1,3}}(?:{mark}[0-9]{{3}}){{1,12}}(?:\.[0-9]{{1,40}})?")
    for mark in (",", "[ \u00a0\u2009\u202f]", "['\u2019]", "_")
)
_MARKS: Final = re.compile("[, \u00a0\u2009\u202f'\u2019_]")


class Normalised:
    """One value under normalisers; `notes` are sentences about what they left."""

    def __init__(self, normalisers: tuple[DecisionNormaliser, ...]) -> None:
        self._declared = [
            _RULES[one] for one in DecisionNormaliser if one in normalisers
        ]
        self._reads_dates = DecisionNormaliser.DATE in normalisers
        self.notes: list[str] = []

    def value(self, value: Any) -> Any:
        """The value with its leaves normalised; under none it comes back as it is."""
        return self._value(value, 0) if self._declared else value

    def _value(self, value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            return value
        if isinstance(value, str):
            return self._text(value, depth)
        if isinstance(value, dict):
            return {key: self._value(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(item, depth + 1) for item in value]
        return self._leaf(value)

    def _text(self, text: str, depth: int) -> Any:
        held = opened(text)
        if not isinstance(held, str):
            return self._value(held, depth + 1)
        if self._reads_dates and is_ambiguous(text):
            self.notes.append(
                f"“{text.strip()}” is a date with two readings and stays as written."
            )
        found = self._leaf(text)
        again = opened(found)
        # In small letters a text may be JSON that it was not in capitals.
        return found if again is found else self._value(again, depth + 1)

    def _leaf(self, leaf: Any) -> Any:
        # What one rule left may be what an earlier one reads: “#1,000” is an id, and
        # then a number.
        for _ in range(_ROUNDS):
            before = leaf
            for rule in self._declared:
                leaf = rule(leaf)
            if leaf == before and type(leaf) is type(before):
                break
        return leaf


def _white_space(leaf: Any) -> Any:
    return " ".join(leaf.split()) if isinstance(leaf, str) else leaf


def _case(leaf: Any) -> Any:
    return leaf.casefold() if isinstance(leaf, str) else leaf


def _date(leaf: Any) -> Any:
    return (iso_date(leaf) or leaf) if isinstance(leaf, str) else leaf


def _id(leaf: Any) -> Any:
    """Letters and digits only, in small letters; a date or moment stays readable."""
    if not isinstance(leaf, str):
        return leaf
    return "".join(char for char in leaf.casefold() if char.isalnum()) or leaf


def _number(leaf: Any) -> Any:
    """One number for all its writings; a text that is no number stays itself.

    A figure with zeros before it (007) is taken for a code, and `1.234` for a little
    more than one.
    """
    if isinstance(leaf, float):
        return int(leaf) if leaf.is_integer() else leaf
    if not isinstance(leaf, str) or len(leaf) > _LONGEST:
        return leaf
    text = leaf.strip()
    if not _PLAIN.fullmatch(text):
        if not any(form.fullmatch(text) for form in _THOUSANDS):
            return leaf
        text = _MARKS.sub("", text)
    digits = text.lstrip("+-")
    if digits[:1] == "0" and digits[1:2].isdigit():
        return leaf
    return _as_json(Decimal(text), leaf)


def _as_json(number: Decimal, leaf: str) -> Any:
    if number == number.to_integral_value():
        return int(number)
    near = float(number)
    # A number with more digits than JSON numbers keep would be one with its neighbours.
    return near if Decimal(repr(near)) == number else leaf


_RULES: Final = {
    DecisionNormaliser.WHITE_SPACE: _white_space,
    DecisionNormaliser.DATE: _date,
    DecisionNormaliser.NUMBER: _number,
    DecisionNormaliser.ID: _id,
    DecisionNormaliser.CASE: _case,
}
