"""Values so specific that the same one twice is no accident: ids, codes, numbers, dates.

A value is one token with digits, or an e-mail address. Words, file paths, years and
round numbers are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.bodies.canonical import opened

_DEEPEST: Final = 12
_MOST_LEAVES: Final = 200
_LONGEST: Final = 80
_WHOLE: Final = r"[A-Za-z0-9](?:[A-Za-z0-9_.@+:-]{0,200}[A-Za-z0-9])?(?![^\W_])"
_TOKEN: Final = re.compile(r"(?<![^\W_])" + _WHOLE)
_WITH_DIGIT: Final = re.compile(r"(?<![^\W_])(?=[A-Za-z_.+:-]{0,79}[0-9@])" + _WHOLE)
"""Most tokens are words: they are passed over before they are read as a whole."""
_EMAIL: Final = re.compile(
    r"[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,40}(?:\.[A-Za-z0-9-]{2,20}){1,4}"
)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?:T[\d:.+Z-]{2,24})?")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_FEWEST_DIGITS: Final = 3
_DIGITS: Final = re.compile(r"(?:[^0-9]*[0-9]){3}")


def tokens_in(text: str) -> Iterator[str]:
    """Yield the specific values that a text names as whole tokens."""
    for match in _WITH_DIGIT.finditer(text):
        token = match.group()
        if is_specific(token):
            yield token


def is_specific(token: str) -> bool:
    """Whether one token is a value: an id, a code, a number, an e-mail, a date."""
    if not 3 <= len(token) <= _LONGEST:
        return False
    if "@" in token:
        return _EMAIL.fullmatch(token) is not None
    if _DIGITS.match(token) is None or _YEAR.fullmatch(token):
        return False
    if _NUMBER.fullmatch(token):
        return len(token.replace(".", "").strip("0")) >= _FEWEST_DIGITS
    return True


def is_date(token: str) -> bool:
    """Whether a value is a date or a time, which can be said in many other ways."""
    return _DATE.fullmatch(token) is not None


def slots_of(arguments: Any) -> Iterator[tuple[str, str]]:
    """Yield name and value of each argument that is exactly one specific value.

    The name is the innermost one; a leading `#` is no part of a value. At most 200
    values of one call are read.
    """
    left = _MOST_LEAVES
    for name, leaf in _leaves(arguments, "", 0):
        if left <= 0:
            return
        left -= 1
        token = leaf.strip().lstrip("#")
        if token[:_LONGEST] == token and _TOKEN.fullmatch(token) and is_specific(token):
            yield name, token


def _leaves(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    value = opened(value)
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, repr(value)
    elif depth > _DEEPEST:
        return
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item, name, depth + 1)


def is_slip(written: str, told: str) -> bool:
    """Whether one value is another with two neighbours swapped, or one lost or doubled.

    A changed digit is none: the next id of a list differs by one digit too.
    """
    if written == told or min(len(written), len(told)) < 5:
        return False
    if len(written) == len(told):
        return _is_swapped(written, told)
    longer, shorter = sorted((written, told), key=len, reverse=True)
    if len(longer) - len(shorter) != 1:
        return False
    at = next(
        (n for n, (a, b) in enumerate(zip(longer, shorter, strict=False)) if a != b),
        len(shorter),
    )
    return longer[at + 1 :] == shorter[at:] and (
        longer is not written or (at > 0 and longer[at] == longer[at - 1])
    )


def _is_swapped(one: str, other: str) -> bool:
    places = [n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    return (
        len(places) == 2
        and places[1] == places[0] + 1
        and one[places[0]] == other[places[1]]
        and one[places[1]] == other[places[0]]
    )
