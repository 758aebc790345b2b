"""How often what repeats is repeated: a few times in every run, many in a soak."""

from __future__ import annotations

import os

IS_SOAK = bool(os.environ.get("EVALSITE_SOAK"))


def times(few: int, *, soak: int) -> int:
    """Return `few`, or the number of a soak (`make soak`), which takes its time."""
    return soak if IS_SOAK else few
