"""Where a text names a value: whole, under a declared normaliser, affirmed or denied.

It reads English negation next to the value and nothing of what a sentence means.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from apps.engine.bodies.scripts import is_unspaced


class Normaliser(StrEnum):
    """What does not count as a difference between two writings of a value."""

    EXACT = "exact"
    CASE = "case"
    SPACE = "space"
    NUMBER = "number"
    ID = "id"


class Mention(msgspec.Struct, frozen=True):
    """One place where a text names a value, as it is written there."""

    text: str
    start: int
    is_denied: bool


_SEPARATORS: Final = "[\\s\\-_./#:\u2010-\u2015]{0,3}"
_MARKS: Final = ".,'_\u00a0\u202f\u2009 "
_NUMBER: Final = re.compile("[+-]?\\d{1,40}(?:[.,'_\u00a0\u202f\u2009]\\d{1,40}){0,12}")
_SPACED: Final = re.compile(
    "[+-]?(?<![\\d.,])\\d{1,3}(?: \\d{3}){1,12}(?!\\d)(?:[.,]\\d{1,40})?"
)
_MARK: Final = re.compile(f"[{_MARKS}]")
_DENIED_BEFORE: Final = re.compile(
    r"(?:\b(?:not(?! (?:only|just|merely)\b)|never|nor|neither|cannot|no longer|instead of|rather than|other than)"
    r"|n['\u2019]t)(?:\s+[\w'\u2019]+){0,2}?\s*[\"\u201c'(\[#$]{0,3}\s?\Z",
    re.IGNORECASE,
)
_DENIED_AFTER: Final = re.compile(
    r"[\"\u201d')\]]{0,2}\s+(?:(?:is|was)\s+(?:not|wrong|incorrect|outdated|invalid|"
    r"no longer)\b|(?:is|was)n['\u2019]t\b)",
    re.IGNORECASE,
)
_WINDOW: Final = 60
_MOST_MENTIONS: Final = 1_000


def mentions(text: str, value: str, how: Normaliser) -> list[Mention]:
    """Every place where `text` names `value` as a whole token.

    `84920` is not named in `1284920`, `srv-01` not in `srv-010` nor in `srv-01-b`.
    """
    text, value = _plain(text, how), _plain(value, how)
    if how is Normaliser.NUMBER:
        found = _numbers(text, value)
    else:
        found = _whole(text, _written(value, how).finditer(text))
    return [mention for mention, _ in zip(found, range(_MOST_MENTIONS), strict=False)]


def alike(text: str, value: str, how: Normaliser) -> list[Mention]:
    """Other values in `text` that look like `value`: as many digits and letters.

    Only a value with a digit has a look; `blue` looks like any word.
    """
    if not any(char.isdigit() for char in value):
        return []
    own = {mention.start for mention in mentions(text, value, how)}
    text, value = _plain(text, how), _plain(value, how)
    found = _whole(text, _look_of(value, how).finditer(text))
    others = (mention for mention in found if mention.start not in own)
    return [mention for mention, _ in zip(others, range(_MOST_MENTIONS), strict=False)]


def normalised(value: str, how: Normaliser) -> str:
    """One text for all writings of a value that the normaliser holds for the same."""
    if how is Normaliser.EXACT:
        return value
    if how is Normaliser.NUMBER:
        number = number_in(value)
        return value if number is None else f"{number.normalize():f}"
    folded = " ".join(value.casefold().split()) if how is not Normaliser.CASE else value
    if how is Normaliser.ID:
        return "".join(char for char in folded if char.isalnum())
    return folded.casefold()


def number_in(value: str) -> Decimal | None:
    """The number that a text is, with thousands marked or not; `None` for another text.

    Where it has two readings, `1,234` is above a thousand and `1.234` is not.
    """
    value = value.strip()
    if not (_NUMBER.fullmatch(value) or _SPACED.fullmatch(value)):
        return None
    return next(iter(_readings(value)), None)


@lru_cache(maxsize=4_096)
def _readings(token: str) -> tuple[Decimal, ...]:
    """The numbers that digits with marks may mean: `1.234` has two, `3.5.1` none."""
    marks, parts = _MARK.findall(token), _MARK.split(token)
    found = []
    if _is_grouped(marks, parts):
        found.append("".join(parts))
    is_decimal = marks[-1:] in (["."], [","]) and marks.count(marks[-1]) == 1
    if is_decimal and _is_grouped(marks[:-1], parts[:-1]):
        found.append("".join(parts[:-1]) + "." + parts[-1])
    if marks[-1:] == ["."]:
        found.reverse()
    try:
        return tuple([Decimal(each) for each in found])
    except InvalidOperation:
        return ()


def _is_grouped(marks: list[str], parts: list[str]) -> bool:
    """Whether marks cut thousands (or, in India, pairs before the last three)."""
    if len(set(marks)) > 1 or not all(len(part) in {2, 3} for part in parts[1:]):
        return False
    return len(parts) == 1 or (len(parts[-1]) == 3 and len(parts[0].lstrip("+-")) <= 3)


def _plain(text: str, how: Normaliser) -> str:
    """The text without entities of HTML and with one apostrophe, unless exact."""
    if how is Normaliser.EXACT:
        return text
    if "&" in text:
        text = html.unescape(text)
    return text.replace("\u2019", "'")


def _written(value: str, how: Normaliser) -> re.Pattern[str]:
    """All writings of a value; no part of it can match in two ways."""
    if how is Normaliser.EXACT:
        return re.compile(re.escape(value))
    if how is Normaliser.CASE:
        return re.compile(re.escape(value), re.IGNORECASE)
    if how is Normaliser.SPACE:
        words = [re.escape(word) for word in value.split()]
        return re.compile(r"\s{1,8}".join(words), re.IGNORECASE)
    parts = [re.escape(part) for part in _id_parts(value)]
    return re.compile(_SEPARATORS.join(parts), re.IGNORECASE)


def _id_parts(value: str) -> list[str]:
    return re.findall(r"[^\W_]+", value)


def _look_of(value: str, how: Normaliser) -> re.Pattern[str]:
    if how is Normaliser.ID:
        return re.compile(_SEPARATORS.join(map(_look, _id_parts(value))), re.IGNORECASE)
    return re.compile(_look(value))


def _look(value: str) -> str:
    return "".join(
        r"\d" if char.isdigit() else "[A-Za-z]" if char.isalpha() else re.escape(char)
        for char in value
    )


def _numbers(text: str, value: str) -> Iterator[Mention]:
    wanted = number_in(value)
    if wanted is None:
        return
    matches = [
        match
        for pattern in (_NUMBER, _SPACED)
        for match in pattern.finditer(text)
        if wanted in _readings(match.group())
    ]
    matches.sort(key=lambda match: match.start())
    yield from _whole(text, iter(matches))


def _whole(text: str, found: Iterator[re.Match[str]]) -> Iterator[Mention]:
    for match in found:
        start, end = match.span()
        if start < end and not _is_inside(text, start, end):
            yield Mention(match.group(), start, _is_denied(text, start, end))


def _is_inside(text: str, start: int, end: int) -> bool:
    """Whether what stands there is a part of a longer token."""
    return _joins(text[start], text[max(0, start - 2) : start][::-1]) or _joins(
        text[end - 1], text[end : end + 2]
    )


def _joins(edge: str, beyond: str) -> bool:
    """Whether the characters `beyond` the edge, going outwards, belong to its token."""
    if not beyond or not _is_word(edge):
        return False
    if _is_word(beyond[0]):
        return True
    if len(beyond) < 2:
        return False
    if beyond[0] == "-":
        return _is_word(beyond[1])
    return beyond[0] in ".," and edge.isdigit() and beyond[1].isdigit()


def _is_word(char: str) -> bool:
    return (char.isalnum() and not is_unspaced(char)) or char == "_"


def _is_denied(text: str, start: int, end: int) -> bool:
    before = re.split(r"[.!?;:,\n]\s", text[max(0, start - _WINDOW) : start])[-1]
    after = text[end : end + _WINDOW]
    return bool(_DENIED_BEFORE.search(before) or _DENIED_AFTER.match(after))
