"""Patterns that cannot run away: RE2 for regular expressions, and `*` and `?` for names."""

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
    def search(self, text: str) -> Any: ...
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
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not any_case
    try:
        compiled: Pattern = re2.compile(_valid_text(pattern), options)
    except re2.error as error:
        why = error.args[0]
        text = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise BadPattern(f"“{pattern}” is no pattern of RE2: {text}.") from None
    if compiled.programsize > LARGEST_PROGRAM:
        raise BadPattern(f"“{pattern}” repeats too much: write it with smaller counts.")
    return compiled


def wildcards(pattern: str) -> Pattern:
    """Names with `*` for anything and `?` for one character; several are cut by `|`."""
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(f"A name may have at most {LONGEST_PATTERN} characters.")
    names = [_as_expression(name.strip()) for name in pattern.split("|")]
    return _compiled("|".join(f"(?:{name})" for name in names), any_case=False)


def passage(mark: str) -> Pattern:
    """Any text that holds `mark`, in capitals or not, with `*` and `?` as in names.

    A `|` stands for itself: a mark is what somebody wrote.
    """
    return _compiled(_as_expression(f"*{mark.strip()}*"), any_case=True)


def _compiled(expression: str, *, any_case: bool) -> Pattern:
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    options.case_sensitive = not any_case
    compiled: Pattern = re2.compile(expression, options)
    return compiled


def _as_expression(name: str) -> str:
    escaped: str = re2.escape(_valid_text(name))
    return escaped.replace(r"\*", ".*").replace(r"\?", ".")


def _valid_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


class Names:
    """Which names a pattern with wildcards takes; each name is looked at once."""

    def __init__(self, pattern: str) -> None:
        self._pattern = wildcards(pattern)
        self._known: dict[str, bool] = {}

    def take(self, name: str | None) -> bool:
        """Whether `name` is one of them; what has no name is none."""
        if name is None:
            return False
        known = self._known.get(name)
        if known is None:
            found = self._pattern.fullmatch(_valid_text(name)) is not None
            known = self._known[name] = found
        return known
