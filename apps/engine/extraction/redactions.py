"""Values that stand for something removed: they are never equal to anything."""

from __future__ import annotations

import re
from typing import Final

from apps.engine.bodies.recorded import REDACTED

WHY_REDACTED: Final = (
    "What decides is redacted, and redacted values cannot be compared: different "
    "values share one mark."
)
_MARK: Final = re.compile(re.escape(REDACTED) + r"[^\]\n]{0,100}\]?")


def is_redacted(text: str) -> bool:
    """Whether a text, or a JSON value written as text, holds such a mark."""
    return REDACTED in text


def marks_in(text: str) -> list[tuple[int, int]]:
    """Where such marks begin and end in a text."""
    if REDACTED not in text:
        return []
    return [match.span() for match in _MARK.finditer(text)]


def touches(span: tuple[int, int], marks: list[tuple[int, int]]) -> bool:
    """Whether a part of a text shares a character with a mark."""
    return any(span[0] < end and start < span[1] for start, end in marks)
