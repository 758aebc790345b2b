"""Whether a JSON value names a fact, by the rules by which answers are judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.bodies.recorded import REDACTED
from apps.engine.bodies.texts import texts_of
from apps.engine.contracts.mentions import mentions
from apps.engine.memory.recall import valid_text
from apps.engine.memory_tests.spec import Fact, writings

MOST_READ: Final = 1_048_576
"""Characters that are read of one state or one request."""

_DEEPEST: Final = 40


def names_fact(value: Any, fact: Fact) -> bool | None:
    """Whether a value affirms the fact in one of its writings.

    `None` where there is no value, and where what was read does not and the rest is
    redacted or too long to be read.
    """
    if value is None:
        return None
    text = valid_text("\n".join([*texts_of(value, MOST_READ), *_keys(value, 0)]))
    for form in writings(fact):
        found = mentions(text, form, fact.normaliser)
        if any(not mention.is_denied for mention in found):
            return True
    return None if len(text) >= MOST_READ or REDACTED in text else False


def _keys(value: Any, depth: int) -> Iterator[str]:
    """Yield the names of fields: a store may be a table with values as its keys."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        yield from map(str, value)
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _keys(item, depth + 1)
