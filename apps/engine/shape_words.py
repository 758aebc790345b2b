"""What is wrong with the shape of a JSON value, in words for whoever wrote it.

The library that checks shapes speaks of objects and enums. What has simple words is
said in them; the rest stays as the library says it.
"""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 80
_SIMPLE: Final = (
    (re.compile(r"Object contains unknown field `(.+)`", re.DOTALL),
     "A field “{}” is not known"),
    (re.compile(r"Object missing required field `(.+)`", re.DOTALL),
     "The field “{}” is missing"),
    (re.compile(r"Invalid enum value '?(.*?)'?", re.DOTALL),
     "“{}” is none of the words that are known here"),
)  # fmt: skip


def wrong_shape(error: Exception) -> tuple[str, str]:
    """What msgspec says is wrong, without a full stop, and the field where it is.

    The field is "" for the value as a whole.
    """
    said, _, place = str(error).partition(" - at `$")
    return _simple(said.rstrip(".")), place.strip("`.").strip()


def _simple(said: str) -> str:
    for pattern, words in _SIMPLE:
        found = pattern.fullmatch(said)
        if found:
            name = found.group(1)
            cut = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
            return words.format(cut)
    return said
