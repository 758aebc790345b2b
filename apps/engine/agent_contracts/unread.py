"""A stored part of what is asked that this version cannot read any more."""

from __future__ import annotations

from typing import Any

import msgspec


class Unread(msgspec.Struct, frozen=True):
    """What cannot be read, the field and the reason, and how it is `stored`.

    `what` names it with its number and kind, to begin a sentence.
    """

    what: str
    field: str
    why: str
    stored: Any

    @property
    def sentence(self) -> str:
        """What cannot be read, where and why, and what to do about it."""
        place = f" at “{self.field}”" if self.field else ""
        # The reason may name the field once more at its end.
        why = self.why.rstrip(".").removesuffix(f" in “{self.field}”")
        return (
            f"{self.what} cannot be read by this version of Evalsite{place}: "
            f"{why}. Edit it anew; nothing is known from it until then."
        )
