"""k of n with its 95 % interval, as a report keeps it."""

from __future__ import annotations

import math
from typing import Final

import msgspec

_Z_95: Final = 1.959963984540054


class Rate(msgspec.Struct, frozen=True):
    """`hits` of `of` with a 95 % Wilson interval; 0 of 0 has no share at all."""

    hits: int
    of: int
    share: float | None = None
    low: float | None = None
    high: float | None = None


def rate_of(hits: int, of: int) -> Rate:
    """The share and its Wilson score interval (Wilson 1927), 95 %, both of 1.

    With 0 of 0 the share and both bounds are None: no decisions, no precision.
    """
    if of == 0:
        return Rate(hits=hits, of=of)
    share = hits / of
    z2 = _Z_95 * _Z_95
    middle = share + z2 / (2 * of)
    half = _Z_95 * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of))
    scale = 1 + z2 / of
    return Rate(
        hits=hits,
        of=of,
        share=share,
        # Exact where the formula is: sums of floats would leave a crumb.
        low=max(0.0, (middle - half) / scale) if hits else 0.0,
        high=min(1.0, (middle + half) / scale) if hits < of else 1.0,
    )
