"""Patterns of people over recorded texts: RE2, whose cost grows with the text only."""

from __future__ import annotations

from typing import Any, Final, Protocol

import re2

LONGEST_PATTERN: Final = 500
LARGEST_PROGRAM: Final = 4_000


class BadPattern(ValueError):
    """A pattern that is not used; the message is a sentence for whoever wrote it."""


class Pattern(Protocol):
    """What is used of a compiled pattern of RE2."""

    @property
    def programsize(self) -> int: ...
    @property
    def groups(self) -> int: ...
    def search(self, text: str) -> Any: ...
    def finditer(self, text: str) -> Any: ...
    def fullmatch(self, text: str) -> Any: ...


def regular_expression(pattern: str, *, any_case: bool = False) -> Pattern:
    """`pattern` in the syntax of RE2, whose cost grows with the length of the text only.

    Raises `BadPattern` for one that is too long, too large once its repetitions are
    written out, or none at all (RE2 knows no look-around and no back references).
    """
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(
            f"A pattern may have at most {LONGEST_PATTERN} characters; this one has "
            f"{len(pattern)}."
        )
    try:
        compiled = compiled_of(pattern, any_case=any_case)
    except re2.error as error:
        why = error.args[0]
        text = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise BadPattern(f"“{pattern}” is no pattern of RE2: {text}.") from None
    if compiled.programsize > LARGEST_PROGRAM:
        raise BadPattern(f"“{pattern}” repeats too much: write it with smaller counts.")
    return compiled


def names(pattern: str) -> Pattern:
    """Names with `*` for anything and `?` for one character; several are cut by `|`."""
    alternatives = [
        name_as_expression(one.strip()) for one in (pattern or "*").split("|")
    ]
    return compiled_of("|".join(f"(?:{one})" for one in alternatives), dot_nl=True)


def words_of(text: str) -> Pattern:
    """The words of a text, in capitals or not, with blanks of any length between."""
    words = [re2.escape(valid_text(word)) for word in text.split()]
    return compiled_of(r"\s+".join(words), any_case=True)


def valid_text(text: str) -> str:
    """The text with what UTF-8 cannot hold replaced, which RE2 refuses."""
    return text.encode("utf-8", "replace").decode("utf-8")


def compiled_of(
    expression: str, *, any_case: bool = False, dot_nl: bool = False
) -> Pattern:
    """An expression that is known to be sound; `dot_nl` lets `.` take line ends."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not any_case
    options.dot_nl = dot_nl
    compiled: Pattern = re2.compile(valid_text(expression), options)
    return compiled


def name_as_expression(name: str) -> str:
    """A name with `*` for anything and `?` for one character, in the syntax of RE2."""
    escaped: str = re2.escape(valid_text(name))
    return escaped.replace(r"\*", ".*").replace(r"\?", ".")
