"""Text from traces and people on its way into a report: bounded, and nothing hidden.

Nothing is dropped silently: a control character becomes a visible mark, and a text
that is cut says by how much.
"""

from __future__ import annotations

import re
from typing import Final

MAX_TEXT: Final = 4_000

_CONTROL_PICTURES: Final = 0x2400
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    "\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)
# A joiner shapes Arabic, Indic scripts and emoji; beside ASCII it only hides.
_LOOSE_JOINER: Final = re.compile(
    "(?:^|(?<=[\x00-\x7f]))[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f]|$)"
)
_MANY_MARKS: Final = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u20d0-\u20f0]{4})[\u0300-\u036f\u0483-\u0489\u20d0-\u20f0]+"
)


def _mark(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    if code == 0x7F:
        return "\u2421"
    return f"[U+{code:04X}]"


def visible(text: str, *, limit: int = MAX_TEXT) -> str:
    r"""`text` with hidden characters as visible marks, cut at `limit` characters.

    Line breaks become `\n` and tabs stay. Controls of text direction and zero-width
    characters are written out (`[U+202E]`), so that they cannot act on what stands
    beside them; stacks of combining marks are held to four.
    """
    cut = len(text) - limit
    if cut > 0:
        text = text[:limit]
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _HIDDEN.sub(_mark, text)
    text = _LOOSE_JOINER.sub(_mark, text)
    text = _MANY_MARKS.sub(r"\1", text)
    return f"{text}… [{cut:,} more characters]" if cut > 0 else text


def one_line(text: str, *, limit: int = MAX_TEXT) -> str:
    """Like `visible`, with line breaks as a visible mark."""
    return visible(text, limit=limit).replace("\n", " ⏎ ").replace("\t", " ")
