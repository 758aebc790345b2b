"""k of n with its 95 % interval, as a report keeps it."""

from __future__ import annotations

import msgspec

from apps.engine.nulls.intervals import wilson


class Rate(msgspec.Struct, frozen=True):
    """`hits` of `of` with a 95 % Wilson interval; 0 of 0 has no share at all."""

    hits: int
    of: int
    share: float | None = None
    low: float | None = None
    high: float | None = None


def rate_of(hits: int, of: int) -> Rate:
    """The share and its 95 % Wilson score interval, both of 1.

    With 0 of 0 the share and both bounds are None: no decisions, no precision.
    """
    interval = wilson(hits, of)
    if interval is None:
        return Rate(hits=hits, of=of)
    return Rate(hits=hits, of=of, share=hits / of, low=interval.low, high=interval.high)
