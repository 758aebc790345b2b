"""Decoding of one JSON value, made safe: depth, numbers, keys and characters.

What comes out can be stored: no NaN or Infinity, no NUL, no lone surrogate, at most
128 levels. Each replacement is counted with the place of the first one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, Final

from apps.engine.format import Note
from apps.engine.reading.json_words import (
    MAX_DEPTH,
    TOO_DEEP,
    TOO_LONG_INTEGER,
    visible,
)

_UNSAFE_ESCAPE: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_TOKENS: Final = re.compile(
    r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)\s*+(:?)|[\[\]{},]', re.DOTALL
)
_SEARCH_KEYS_UNTIL: Final = 4 * 1024 * 1024


class RefusedValue(Exception):
    """The JSON is well formed but will not be read; the message is a sentence."""


class Seen:
    """How often one kind of replacement was made, and where first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def add(self, place: str) -> None:
        """Count one more; remember the first place."""
        self.count += 1
        self.first = self.first or place


class Decoder:
    """Decodes values out of a text and remembers what it had to replace."""

    def __init__(self) -> None:
        self.duplicates = Seen()
        self.not_finite = Seen()
        self.characters = Seen()
        self._duplicate_key: str | None = None
        self._has_not_finite = False
        self._raw = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_float=self._float,
            parse_constant=self._constant,
        )

    def decode(self, text: str, at: int, line: int) -> tuple[Any, int]:
        """Return the value at `at` and where it ends.

        Raises `json.JSONDecodeError` for what is not JSON and `RefusedValue` for what
        is too deep or holds an integer of thousands of digits.
        """
        self._forget()
        try:
            value, end = self._raw.raw_decode(text, at)
        except RecursionError:
            raise RefusedValue(TOO_DEEP) from None
        except json.JSONDecodeError:
            raise
        except ValueError:
            raise RefusedValue(TOO_LONG_INTEGER) from None
        if _may_be_deep(text, at, end) and is_too_deep(value):
            raise RefusedValue(TOO_DEEP)
        if self._duplicate_key is not None:
            self._note_duplicate(text, at, end, line)
        if self._has_not_finite or _has_unsafe_escape(text, at, end):
            value = self._cleaned(value, f"line {line}, $")
        return value, end

    def _forget(self) -> None:
        self._duplicate_key = None
        self._has_not_finite = False

    def notes(self) -> list[Note]:
        """Return one note for each kind of replacement that was made."""
        found = (
            (self.duplicates, "duplicate_keys",
             "Keys that stand twice in one object: the last value was kept."),
            (self.not_finite, "not_finite",
             "NaN, Infinity or a number out of range was read as not recorded."),
            (self.characters, "replaced_characters",
             "NUL characters or halves of a character pair are shown as \ufffd."),
        )  # fmt: skip
        return [
            Note(code=code, sentence=f"{words} First: {seen.first}.", count=seen.count)
            for seen, code, words in found
            if seen.count
        ]

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            self._duplicate_key = _first_repeated(key for key, _ in pairs)
        return made

    def _float(self, digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            self._has_not_finite = True
        return number

    def _constant(self, name: str) -> float:
        self._has_not_finite = True
        return float(name)

    def _note_duplicate(self, text: str, at: int, end: int, line: int) -> None:
        key = visible(str(self._duplicate_key))[:80]
        place = line + text.count("\n", at, duplicate_at(text, at, end))
        self.duplicates.add(f'"{key}" at line {place}')

    def _cleaned(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {
                self._clean_text(key, path): self._cleaned(
                    item, f"{path}.{visible(key)[:40]}"
                )
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [
                self._cleaned(item, f"{path}[{index}]")
                for index, item in enumerate(value)
            ]
        if isinstance(value, str):
            return self._clean_text(value, path)
        if isinstance(value, float) and not math.isfinite(value):
            self.not_finite.add(path)
            return None
        return value

    def _clean_text(self, text: str, path: str) -> str:
        clean = visible(text)
        if clean != text:
            self.characters.add(path)
        return clean


def _first_repeated(keys: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return None


def _has_unsafe_escape(text: str, at: int, end: int) -> bool:
    return (
        text.find("\\u", at, end) >= 0
        and _UNSAFE_ESCAPE.search(text, at, end) is not None
    )


def _may_be_deep(text: str, at: int, end: int) -> bool:
    """Whether a text has enough brackets to be nested deeper than `MAX_DEPTH`."""
    return text.count("[", at, end) + text.count("{", at, end) > MAX_DEPTH


def is_too_deep(value: Any) -> bool:
    """Whether lists and objects are nested more than 128 levels, in linear time."""
    level = [value] if isinstance(value, dict | list) else []
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return True
        level = [
            item
            for parent in level
            for item in (parent.values() if type(parent) is dict else parent)
            if type(item) is dict or type(item) is list
        ]
    return False


def end_of_value(text: str, at: int) -> int | None:
    """Return where the list or object at `at` ends by its brackets, or `None`.

    Only brackets and strings are looked at, so it also finds the end of a value that
    is too deep or holds a syntax error.
    """
    depth = 0
    for token in _TOKENS.finditer(text, at):
        mark = token.group()
        if mark in {"[", "{"}:
            depth += 1
        elif mark in {"]", "}"}:
            depth -= 1
        if depth <= 0:
            return token.end() if mark in {"]", "}"} else None
    return None


def duplicate_at(text: str, at: int, end: int) -> int:
    """Return where the first repeated key of a valid value stands (or `at`).

    Values above 4 MiB are not searched.
    """
    if end - at > _SEARCH_KEYS_UNTIL:
        return at
    keys: list[set[str]] = []
    for token in _TOKENS.finditer(text, at, end):
        mark = token.group()
        if mark in {"[", "{"}:
            keys.append(set())
        elif mark in {"]", "}"}:
            keys.pop()
        elif token.group(1):
            key = mark.rstrip(": \t\r\n")
            if key in keys[-1]:
                return token.start()
            keys[-1].add(key)
    return at


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _not_recorded(_name: str) -> None:
    """Read NaN and Infinity as not recorded."""


_EMBEDDED: Final = json.JSONDecoder(
    parse_float=_finite,
    parse_constant=_not_recorded,
)


def embedded(value: Any) -> Any:
    """Return the content of a text that is a JSON object or list, made safe.

    Anything else, and JSON that is broken or too deep, comes back as it is.
    """
    if not isinstance(value, str) or value[:1] not in {"{", "["}:
        return value
    try:
        inner = _EMBEDDED.decode(value)
    except (ValueError, RecursionError):
        return value
    if is_too_deep(inner):
        return value
    if _has_unsafe_escape(value, 0, len(value)):
        return made_visible(inner)
    return inner


def made_visible(value: Any) -> Any:
    """Return a JSON value with NUL and lone surrogates replaced in all its texts.

    The value must not be nested deeper than `MAX_DEPTH`.
    """
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [made_visible(item) for item in value]
    if isinstance(value, dict):
        return {visible(key): made_visible(item) for key, item in value.items()}
    return value
