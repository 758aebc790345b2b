"""A look at the first values of a text, from its head alone.

A head that stops in the middle is closed where its last complete value ended. What
it shows is the beginning of the content, never all of it.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from apps.engine.format import Source

MAX_VALUES: Final = 3
MAX_OPEN: Final = 200
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
_CUT_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_CLOSERS: Final = {"[": "]", "{": "}"}


def first_values(source: Source) -> list[Any]:
    """Return up to three top-level values of the head, the last perhaps incomplete.

    Empty when the head is not text or not JSON. The answer is kept in `source.memo`.
    """
    if "first_values" not in source.memo:
        source.memo["first_values"] = _values(source) if source.is_text else []
    values: list[Any] = source.memo["first_values"]
    return values


def first_record(source: Source) -> Any:
    """Return the first value, or the first element where it is a list of objects."""
    values = first_values(source)
    value = values[0] if values else None
    if isinstance(value, list) and value:
        return value[0]
    return value


def first_items(source: Source) -> list[Any]:
    """Return the first values, or the first elements where the first one is a list."""
    values = first_values(source)
    if values and isinstance(values[0], list):
        return values[0][:MAX_VALUES]
    return values


def _values(source: Source) -> list[Any]:
    text = source.head.decode("utf-8", "ignore")
    values: list[Any] = []
    at = 0
    while len(values) < MAX_VALUES:
        at += len(text[at:]) - len(text[at:].lstrip())
        candidates, end = _outlines(text, at)
        found = next(filter(None, map(_loaded, candidates)), None)
        if found is None:
            break
        values.append(found[0])
        at = end
    return values


def _loaded(text: str) -> tuple[Any] | None:
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return None


def _outlines(text: str, at: int) -> tuple[list[str], int]:
    """Return texts that may stand for the value at `at`, best first, and its end.

    Where the text stops inside a string, the first one ends that string there; the
    other ends at the last complete value. What is too deep is cut before that.
    """
    if text[at : at + 1] not in _CLOSERS:
        return [], at
    stack: list[str] = []
    cut, closers, mark = at, "", ""
    for token in _TOKENS.finditer(text, at):
        mark = token.group()
        if mark.startswith('"'):
            continue
        _follow(stack, mark)
        if len(stack) > MAX_OPEN:
            break
        cut = token.start() if mark == "," else token.end()
        closers = "".join(reversed(stack))
        if not stack:
            return [text[at:cut]], cut
    until_cut = text[at:cut] + closers
    if not mark.startswith('"'):
        return [until_cut], len(text)
    in_string = _CUT_ESCAPE.sub("", text[at:]) + '"' + closers
    return [in_string, until_cut], len(text)


def _follow(stack: list[str], mark: str) -> None:
    if mark in _CLOSERS:
        stack.append(_CLOSERS[mark])
    elif mark != ",":
        stack.pop()
