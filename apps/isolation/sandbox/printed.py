"""What a run printed: a first part of it, as text in which everything is seen."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
HIDDEN = "[secret]"


class Printed:
    """Keeps the first `most` bytes and counts the others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()
        self._left_out = 0

    def add(self, piece: bytes) -> None:
        """Take in a piece, in the order in which pieces come."""
        room = self._most - len(self._kept)
        self._kept += piece[:room]
        self._left_out += max(0, len(piece) - room)

    def raw(self) -> str:
        """What was kept, with what is no UTF-8 replaced."""
        return self._kept.decode("utf-8", "replace")

    def text(self) -> str:
        """What was kept as visible text, and in the end how much was not kept."""
        more = f"\n[{self._left_out:,} more bytes]" if self._left_out else ""
        return visible(self.raw()) + more


def visible(text: str) -> str:
    """Control characters, marks of direction and of no width by their numbers."""
    return _UNSEEN.sub(lambda found: _number(ord(found[0])), text)


def _number(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
