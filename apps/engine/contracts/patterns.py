"""Patterns that cannot run away: RE2 for regular expressions, and `*` and `?` for names."""

from __future__ import annotations

from apps.engine.bodies.patterns import (
    LARGEST_PROGRAM,
    LONGEST_PATTERN,
    BadPattern,
    Pattern,
    compiled_of,
    name_as_expression,
    names,
    regular_expression,
    valid_text,
)

__all__ = [
    "LARGEST_PROGRAM",
    "LONGEST_PATTERN",
    "BadPattern",
    "Names",
    "Pattern",
    "passage",
    "regular_expression",
    "wildcards",
]


def wildcards(pattern: str) -> Pattern:
    """Names with `*` for anything and `?` for one character; several are cut by `|`."""
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(f"A name may have at most {LONGEST_PATTERN} characters.")
    return names(pattern)


def passage(mark: str) -> Pattern:
    """Any text that holds `mark`, in capitals or not, with `*` and `?` as in names.

    A `|` stands for itself: a mark is what somebody wrote.
    """
    expression = name_as_expression(f"*{mark.strip()}*")
    return compiled_of(expression, any_case=True, dot_nl=True)


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
            found = self._pattern.fullmatch(valid_text(name)) is not None
            known = self._known[name] = found
        return known
