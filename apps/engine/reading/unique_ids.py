"""Which ids are unique in the world: random ones of 122 bits and more."""

from __future__ import annotations

import re
from typing import Any, Final
from uuid import UUID

_HEXADECIMAL: Final = re.compile(
    r"(?:[a-z]+[_-])?(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
    re.IGNORECASE,
)
_ZEROS: Final = re.compile(r"(?:[a-z]+[_-])?[0-]+")
_SHORT: Final = re.compile(r"[2-9A-HJ-NP-Za-km-z]{22}")
_DIGITS: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BITS: Final = 128
_RANDOM: Final = 4


def is_unique(own_id: str) -> bool:
    """Whether an id is random enough to be the same thing wherever it stands.

    It is 128 bits in hexadecimal (a UUID or a trace id of OpenTelemetry, perhaps behind
    a word such as `trace_`), or a short UUID. All zeros are no id.
    """
    if _HEXADECIMAL.fullmatch(own_id):
        return _ZEROS.fullmatch(own_id) is None
    return _SHORT.fullmatch(own_id) is not None and _is_short_uuid(own_id)


def _is_short_uuid(own_id: str) -> bool:
    """Whether 22 characters spell a UUID, as the package shortuuid writes them.

    A name of 22 letters would fit too, but not the version inside of a UUID.
    """
    # Before version 1.0 the package wrote the digits the other way round.
    return any(_is_random(digits) for digits in (own_id, own_id[::-1]))


def _is_random(digits: str) -> bool:
    number = 0
    for digit in digits:
        number = number * len(_DIGITS) + _DIGITS.index(digit)
    return number < 1 << _BITS and UUID(int=number).version == _RANDOM


def unique_id(value: Any) -> str | None:
    """Return an id that is unique in the world; `None` for every other value."""
    return value if isinstance(value, str) and is_unique(value) else None
