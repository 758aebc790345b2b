"""One text for each JSON value, so that equal arguments are equal texts.

It does not know what an argument means: `"5"` and `5`, or two spellings of one name,
stay different.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec

_DEEPEST: Final = 64
_PLAIN: Final = (str, int, type(None))
_encode: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), default=str
).encode
_decode: Final = msgspec.json.Decoder().decode


def canonical(value: Any) -> str:
    """The same text for the same JSON value, whatever the order of its keys.

    JSON objects and lists inside texts are opened, 1.0 is 1, and numbers that JSON
    does not know become the texts "NaN" and "Infinity". Values that are no JSON stand
    by their text. Beyond 64 levels nothing is opened any more; there is no bound on
    depth. Never raises.
    """
    try:
        return _encode(_settled(value, 0))
    except (TypeError, ValueError, RecursionError):
        return "".join(_written_out(value))


def _written_out(value: Any) -> Iterator[str]:
    """The text of a value in pieces, however deep it is; its texts stay closed."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _Piece):
            yield item.text
        elif isinstance(item, dict):
            waiting.append(_Piece("}"))
            for key in sorted(item, key=str, reverse=True):
                waiting += [_Piece(","), item[key], _Piece(f"{str(key)!r}:")]
            yield "{"
        elif isinstance(item, list | tuple):
            waiting.append(_Piece("]"))
            for held in reversed(item):
                waiting += [_Piece(","), held]
            yield "["
        else:
            yield repr(_settled_number(item)) if isinstance(item, float) else repr(item)


class _Piece(msgspec.Struct, frozen=True):
    """A piece of text between the values that are still to be written."""

    text: str


def opened(value: Any) -> Any:
    """The object or list that a text holds as JSON; anything else as it is."""
    if not isinstance(value, str) or not value:
        return value
    text = value if value[0] in "{[" else value.lstrip()
    if not text or text[0] not in "{[":
        return value
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return value


def _settled(value: Any, depth: int) -> Any:
    """The value with texts opened and whole floats as integers."""
    if isinstance(value, str):
        found = opened(value)
        return value if found is value or depth > _DEEPEST else _settled(found, depth)
    if isinstance(value, float):
        return _settled_number(value)
    if isinstance(value, _PLAIN) or depth > _DEEPEST:
        return value
    if isinstance(value, dict):
        return {str(key): _settled(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_settled(item, depth + 1) for item in value]
    return str(value)


def _settled_number(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return int(value) if value.is_integer() and abs(value) < 2**63 else value
