"""Changes of running text that keep its meaning; `None` where there is none to make."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_CODE: Final = re.compile(r"```|^[ \t]{2,}\S|\t|^\s*\|", re.MULTILINE)
_GAP: Final = re.compile(r"(?<=\S) (?=\S)")
_SENTENCE_END: Final = re.compile(r"(?<=[^\W\d_][.!?]) (?=[^\W\d_a-z])")
_ABBREVIATION: Final = re.compile(
    r"(?:\b\w|\b\w\.\w|etc|approx|vs|Inc|Ltd|Co|No|bzw|usw)\.$"
)
_FIRST_WORD: Final = re.compile(r"\s*([^\W\d_])([^\W\d_]*)(?=$|[\s,;:.!?])")


def politely(text: str) -> str:
    """The text after a polite line."""
    return f"Please help with the following.\n\n{text}"


def first_letter_turned(text: str) -> str | None:
    """The text with its first letter large for small or small for large.

    `None` where the first word is no ordinary one: an abbreviation, a name in camel
    case, a path, a single letter, or a word of letters without case.
    """
    found = _FIRST_WORD.match(text)
    if found is None or not found[2] or found[2] != found[2].lower():
        return None
    turned = found[1].swapcase()
    if turned == found[1] or len(turned) != 1:
        return None
    at = found.start(1)
    return f"{text[:at]}{turned}{text[at + 1 :]}"


def two_spaces(text: str) -> str | None:
    """The text with two spaces wherever one stands between words.

    `None` for a text with quotations, which say something letter by letter.
    """
    if _CODE.search(text) or any(mark in text for mark in '`"“'):
        return None
    new = _GAP.sub("  ", text)
    return None if new == text else new


def lines_per_sentence(text: str) -> str | None:
    """The text with each sentence on a line of its own."""
    if "\n" in text.strip() or _CODE.search(text):
        return None
    new = _SENTENCE_END.sub("\n", text)
    return None if new == text else new


def blank_lines_around(text: str) -> str:
    """The text with two blank lines before and after it."""
    return f"\n\n{text}\n\n"


def without_full_stop(text: str) -> str | None:
    """The text without the full stop that ends its last sentence."""
    end = text.rstrip()
    if not re.search(r"[^\W\d_]{2}\.$", end) or _ABBREVIATION.search(end):
        return None
    return end[:-1] + text[len(end) :]


def in_quotes(text: str) -> str | None:
    """The text in quotation marks, with a line that says what it is."""
    if any(mark in text for mark in "“”"):
        return None
    return f"The request is: “{text.strip()}”"


def decomposed(text: str) -> str | None:
    """The text with composed characters taken apart, as Unicode's form NFD has them."""
    new = unicodedata.normalize("NFD", text)
    if new == text or unicodedata.normalize("NFC", new) != text:
        return None
    return new
