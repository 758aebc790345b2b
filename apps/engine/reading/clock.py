"""Times as files write them, made into nanoseconds since the Unix epoch.

The unit of a bare number is guessed from its size: until the year 5138 seconds,
milliseconds, microseconds and nanoseconds do not overlap. Nothing is claimed about
the clock that wrote them.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

NANOSECOND: Final = "nanoseconds"
LARGEST: Final = 2**63 - 1
_SMALLEST_EPOCH: Final = 10**8
_LONGEST_DIGITS: Final = 20
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = (
    (10**11, 10**9, "seconds"),
    (10**14, 10**6, "milliseconds"),
    (10**17, 10**3, "microseconds"),
    (LARGEST + 1, 1, NANOSECOND),
)
_ISO: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9})\d*)?"
    r"\s*(Z|UTC|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)


def epoch_ns(value: int | float) -> tuple[int | None, str | None]:
    """Return (nanoseconds, the unit guessed); `None` for no time or one out of range.

    Numbers below 10^8 are no time since 1970 and are taken as nanoseconds of a clock
    of their own.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None, None
    if not 0 < value <= LARGEST:
        return None, None
    if value < _SMALLEST_EPOCH:
        return int(value), NANOSECOND
    for bound, factor, unit in _UNITS:
        if value < bound:
            return _scaled(value, factor), unit
    return None, None


def _scaled(value: int | float, factor: int) -> int:
    if isinstance(value, int):
        return value * factor
    whole = math.floor(value)
    return whole * factor + round((value - whole) * factor)


def iso_ns(text: str) -> int | None:
    """Return the nanoseconds of an ISO 8601 or RFC 3339 time; `None` if it is none.

    A time without an offset is read as UTC. Digits below a nanosecond are dropped.
    """
    found = _ISO.fullmatch(text.strip())
    if not found:
        return None
    day, time, fraction, offset = found.groups()
    zone = "+00:00" if offset is None or offset.upper() in {"Z", "UTC"} else offset
    try:
        moment = datetime.fromisoformat(f"{day}T{time}{zone}")
    except ValueError:
        return None
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    nanoseconds = seconds * 10**9 + int((fraction or "0").ljust(9, "0"))
    return nanoseconds if abs(nanoseconds) <= LARGEST else None


def any_time_ns(value: Any) -> int | None:
    """Return the nanoseconds of a number, a text of digits, or an ISO time."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit() and len(value) < _LONGEST_DIGITS):
            return iso_ns(value)
        value = int(value)
    if isinstance(value, int | float):
        return epoch_ns(value)[0]
    return None


def later_ns(moment: int | None, nanoseconds: int) -> int | None:
    """Return the time `nanoseconds` after `moment`; `None` beyond what can be stored."""
    if moment is None or abs(moment + nanoseconds) > LARGEST:
        return None
    return moment + nanoseconds
