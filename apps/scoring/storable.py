"""Texts and JSON values as PostgreSQL can hold them: no NUL, no half of a pair.

Readers have cleaned what they stored, but a text that holds JSON is opened when it is
compared, and an escape inside of it may be a NUL.
"""

from __future__ import annotations

from typing import Any

import msgspec
from psycopg.types.json import Jsonb

from apps.engine.reading.json_values import made_visible
from apps.engine.reading.json_words import visible

_NUL = b"\\u0000"


def storable_text(text: str) -> str:
    """The text with NUL and lone surrogates replaced by U+FFFD."""
    if text.isascii() and "\x00" not in text:
        return text
    return visible(text)


def storable(value: Any) -> Any:
    """A JSON value with the same replaced in all its texts; most come back as they are."""
    try:
        if _NUL not in msgspec.json.encode(value):
            return value
    except UnicodeEncodeError:
        pass
    return made_visible(msgspec.to_builtins(value))


def stored_json(value: Any) -> Jsonb:
    """As `storable`, for a column of JSON."""
    return Jsonb(storable(value))
