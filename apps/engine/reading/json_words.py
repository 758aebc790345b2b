"""Sentences about JSON that cannot be read, with the likely cause.

It names what stands at the place of the error; it does not repair anything.
"""

from __future__ import annotations

import json
import re
from typing import Final

MAX_DEPTH: Final = 128
EXCERPT: Final = 120

_EXPECTED: Final = (
    ("Expecting value", "a value was expected"),
    ("Expecting property name", "a key in double quotes was expected"),
    (
        "Expecting ',' delimiter",
        "a comma or the end of the list or object was expected",
    ),
    ("Expecting ':' delimiter", "a colon was expected after a key"),
    ("Unterminated string", "a string is not closed"),
    ("Invalid control character", "a raw control character stands inside a string"),
    ("Invalid \\", "a backslash escape is not valid"),
)
_CAUSES: Final = (
    (re.compile(r"<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE), "this looks like a web page (HTML or XML), perhaps a login page saved by mistake"),
    (re.compile(r"'|(?:None|True|False)\b"), "this looks like a Python value, not JSON; write it with json.dumps"),
    (re.compile(r"//|/\*|#"), "JSON has no comments"),
    (re.compile(r"undefined\b|NaN\b"), "this looks like a JavaScript value"),
)  # fmt: skip
_TRAILING_COMMA: Final = re.compile(r",\s*\Z")
_REPLACED: Final = re.compile("[\0\ud800-\udfff]")


def visible(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD."""
    return _REPLACED.sub("\ufffd", text)


def excerpt(text: str, at: int = 0) -> str:
    """Return the first 120 characters of `text` from `at`, safe to store."""
    return visible(text[at : at + EXCERPT])


def likely_cause(text: str, at: int) -> str | None:
    """Return words for what probably stands at `at`, or `None` when unclear."""
    here = text[at : at + 20]
    for pattern, words in _CAUSES:
        if pattern.match(here):
            return words
    if here[:1] in {"}", "]"} and _TRAILING_COMMA.search(text[max(0, at - 40) : at]):
        return "there is a comma too many before it"
    return None


def why_not_json(error: json.JSONDecodeError, *, at_end: bool) -> str:
    """Return a sentence about a JSON error; `at_end` when the input just stops."""
    if at_end:
        return "The input ends in the middle of this record: it was cut off."
    expected = next(
        (words for start, words in _EXPECTED if error.msg.startswith(start)),
        error.msg,
    )
    cause = likely_cause(error.doc, error.pos)
    return f"Not valid JSON: {expected}{'; ' + cause if cause else ''}."


TOO_DEEP: Final = f"The record is nested deeper than {MAX_DEPTH} levels."
TOO_LONG_INTEGER: Final = "The record holds an integer of thousands of digits."
