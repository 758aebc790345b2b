"""Which of the declared labels a text names: whole, affirmed, and no other beside it.

It reads English negation next to a label and nothing of what a sentence means.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from apps.engine.bodies.patterns import valid_text, words_of
from apps.engine.bodies.scripts import is_unspaced
from apps.engine.extraction.redactions import marks_in, touches

_DENIED_BEFORE: Final = re.compile(
    r"(?:\b(?:not(?! (?:only|just|merely)\b)|never|nor|neither|no|non|cannot|without|"
    r"instead of|rather than|other than|unlike)|n['\u2019]t)"
    r"(?:[\s-]+[\w'\u2019]+){0,2}?[\s-]*[\"\u201c'(\[*`]{0,3}\s?\Z",
    re.IGNORECASE,
)
_DENIED_AFTER: Final = re.compile(
    r"[\"\u201d')\]*`]{0,3}\s*(?:(?:is|was)\s+(?:not|wrong|incorrect|invalid|"
    r"no longer)\b|(?:is|was)n['\u2019]t\b|[:=]\s*(?:no|false)\b)",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(r"[.!?;:,\n]\s|\bbut\b", re.IGNORECASE)
_WINDOW: Final = 60
_AT_MOST: Final = range(1_000)


class Named(msgspec.Struct, frozen=True):
    """The label that a text names, or a sentence about why none is taken."""

    label: str | None
    why: str = ""


class Labels:
    """Declared labels, each made into a pattern once."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        # Longer ones first: “not approved” is a label before “approved” is denied.
        ordered = sorted(labels, key=lambda label: (-len(label), label))
        self._patterns = [(label, words_of(label)) for label in ordered]

    def named_in(self, text: str) -> Named:
        """The one label that `text` affirms, in its declared writing."""
        text = valid_text(text)
        taken = marks_in(text)
        affirmed: set[str] = set()
        denied: set[str] = set()
        for label, pattern in self._patterns:
            found = pattern.finditer(text)
            spans = [match.span() for match, _ in zip(found, _AT_MOST, strict=False)]
            spans = [
                (start, end)
                for start, end in spans
                if not _is_inside(text, start, end) and not touches((start, end), taken)
            ]
            taken += spans
            for start, end in spans:
                (denied if _is_denied(text, start, end) else affirmed).add(label)
        return _verdict(affirmed, denied)


def _verdict(affirmed: set[str], denied: set[str]) -> Named:
    if len(affirmed) > 1:
        return Named(None, f"Several labels are named: {_listed(affirmed)}.")
    if affirmed & denied:
        return Named(None, f"{_listed(affirmed)} is both affirmed and denied.")
    if affirmed:
        return Named(affirmed.pop())
    if denied:
        return Named(None, f"Only denied: {_listed(denied)}.")
    return Named(None, "None of the labels is named in the output.")


def _listed(labels: set[str]) -> str:
    return ", ".join(f"“{label}”" for label in sorted(labels))


def _is_denied(text: str, start: int, end: int) -> bool:
    before = _CLAUSE.split(text[max(0, start - _WINDOW) : start])[-1]
    after = text[end : end + _WINDOW]
    return bool(_DENIED_BEFORE.search(before) or _DENIED_AFTER.match(after))


def _is_inside(text: str, start: int, end: int) -> bool:
    """Whether what stands there is a part of a longer word, number or id."""
    return _joins(text[start], text[max(0, start - 2) : start][::-1]) or _joins(
        text[end - 1], text[end : end + 2]
    )


def _joins(edge: str, beyond: str) -> bool:
    """Whether the characters `beyond` the edge, going outwards, belong to its word."""
    if not beyond or not _is_word(edge):
        return False
    if _is_word(beyond[0]) or (edge.isdigit() and beyond[0] == "%"):
        return True
    if len(beyond) < 2:
        return False
    if beyond[0] == "-":
        return _is_word(beyond[1])
    return beyond[0] in ".,/" and edge.isdigit() and beyond[1].isdigit()


def _is_word(char: str) -> bool:
    return (char.isalnum() and not is_unspaced(char)) or char == "_"
