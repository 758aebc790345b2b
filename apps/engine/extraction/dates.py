"""Dates that can be read in one way only, as ISO 8601.

Day and month in figures, as in 03/04/2026, are read where only one order is possible.
Names of months are English. Nothing is guessed about the century or the time zone.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august",
    "september", "october", "november", "december",
)  # fmt: skip
_NAME: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|"
    r"aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY: Final = (
    r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s{1,3})?"
)
_DAY: Final = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>[0-9]{4})"
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}"
    r"(?::[0-9]{2}(?:[.][0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?",
    re.IGNORECASE,
)
_YEAR_FIRST: Final = re.compile(
    _YEAR + r"(?P<cut>[-/.])(?P<number>[0-9]{1,2})(?P=cut)(?P<day>[0-9]{1,2})"
)
_WRITTEN: Final = (
    re.compile(rf"{_WEEKDAY}{_NAME}\s{{1,3}}{_DAY},?\s{{1,3}}{_YEAR}", re.IGNORECASE),
    re.compile(
        rf"{_WEEKDAY}{_DAY}[\s-]{{1,3}}(?:of\s{{1,3}})?{_NAME},?[\s-]{{1,3}}{_YEAR}",
        re.IGNORECASE,
    ),
)
_FIGURES: Final = re.compile(
    r"(?P<one>[0-9]{1,2})(?P<cut>[-/.])(?P<two>[0-9]{1,2})(?P=cut)" + _YEAR
)
_LONGEST: Final = 48


def iso_date(text: str) -> str | None:
    """The one date or moment that a whole text is, in ISO 8601; else `None`.

    A moment with an offset comes back in UTC, one without keeps having none.
    """
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if _MOMENT.fullmatch(text):
        return _moment(text)
    if match := _YEAR_FIRST.fullmatch(text):
        return _date(match["year"], match["number"], match["day"])
    for pattern in _WRITTEN:
        if match := pattern.fullmatch(text):
            return _date(match["year"], _number_of(match["month"]), match["day"])
    readings = _readings(text)
    return readings.pop() if len(readings) == 1 else None


def is_ambiguous(text: str) -> bool:
    """Whether a whole text is a date in figures with two readings: 03/04/2026."""
    return len(text) <= _LONGEST and len(_readings(text.strip())) > 1


def _readings(text: str) -> set[str]:
    match = _FIGURES.fullmatch(text)
    if match is None:
        return set()
    one, two, year = match["one"], match["two"], match["year"]
    found = {_date(year, one, two), _date(year, two, one)}
    return {each for each in found if each is not None}


def _date(year: str, month: str | int, day: str) -> str | None:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


def _moment(text: str) -> str | None:
    try:
        moment = datetime.fromisoformat(text.upper())
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat().replace("+00:00", "Z")


def _number_of(name: str) -> int:
    begin = name[:3].casefold()
    return next(n for n, month in enumerate(_MONTHS, 1) if month.startswith(begin))
