"""Whether a value that somebody wrote can be stored, compared and written out again."""

from __future__ import annotations

import math
from typing import Any, Final

from apps.engine.contracts.spec import BadDefinition

LARGEST: Final = 32_768
"""Characters of all texts of a contract, and 16 more for each value in it."""

DEEPEST: Final = 24
MOST_DIGITS: Final = 18

_PER_VALUE: Final = 16


def refuse_unless_plain(value: Any) -> None:
    """Raise `BadDefinition`, with the place, unless `value` is plain JSON of a bearable size.

    Numbers must be finite and of at most 18 digits, keys texts, and no text may hold
    NUL or half of a surrogate pair: a database or a file would change them.
    """
    size = 0
    waiting: list[tuple[Any, str, int]] = [(value, "", 0)]
    while waiting:
        held, place, depth = waiting.pop()
        size += _PER_VALUE + (len(held) if isinstance(held, str) else 0)
        if size > LARGEST:
            raise BadDefinition(
                f"A contract may hold at most {LARGEST:,} characters with all its "
                "values.",
                field=place,
            )
        if depth > DEEPEST:
            raise BadDefinition(
                f"A contract may be nested {DEEPEST} levels deep.", field=place
            )
        if isinstance(held, dict):
            for key in held:
                _refuse_key(key, place)
                size += len(key)
            waiting += [
                (item, f"{place}.{key}".lstrip("."), depth + 1)
                for key, item in held.items()
            ]
        elif isinstance(held, list | tuple):
            waiting += [
                (item, f"{place}[{number}]", depth + 1)
                for number, item in enumerate(held)
            ]
        else:
            _refuse_leaf(held, place)


def _refuse_key(key: Any, place: str) -> None:
    if not isinstance(key, str):
        raise BadDefinition(
            f"“{str(key)[:60]}” is no text: put names of fields in quotes.",
            field=place,
        )
    _refuse_text(key, place)


def _refuse_leaf(leaf: Any, place: str) -> None:
    if isinstance(leaf, str):
        _refuse_text(leaf, place)
    elif isinstance(leaf, float):
        if not math.isfinite(leaf):
            raise BadDefinition("A number must be finite.", field=place)
    elif isinstance(leaf, int):
        if abs(leaf) >= 10**MOST_DIGITS:
            raise BadDefinition(
                f"A whole number may have at most {MOST_DIGITS} digits; write a longer "
                "one as a text.",
                field=place,
            )
    elif leaf is not None:
        raise BadDefinition(
            f"A value of type “{type(leaf).__name__}” is no JSON: put it in quotes.",
            field=place,
        )


def _refuse_text(text: str, place: str) -> None:
    if "\0" in text:
        raise BadDefinition("A text cannot hold the character NUL.", field=place)
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise BadDefinition(
            "A text holds half of a character (a lone surrogate).", field=place
        )
