"""What a check misses, as far as blind looks can tell.

Blind looks are drawn from two strata with different shares: traces without any queued
signal and traces with one. Rates of both are weighted back by how many traces each
stratum holds. It says nothing of traces that arrived while no share was set, unless
they are like the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import msgspec

from apps.engine.calibration import Rate, rate
from apps.engine.nulls import Interval
from apps.review.calibration import BlindCount

NO_LOOKS = "no blind looks yet"


class Misses(msgspec.Struct, frozen=True):
    """Failures that blind looks found where a key stayed quiet, and where it fired.

    `weighted` is the share of failures among all traces on which the key is quiet, with
    its 95 % interval; both are None while a stratum that holds traces has no look.
    """

    quiet: Rate
    fired: Rate
    cannot_tell: int
    quiet_traces: int
    weighted: float | None
    interval: Interval | None

    @property
    def looks(self) -> int:
        """Looks that say yes or no."""
        return self.quiet.n + self.fired.n


def misses_of(counts: Sequence[BlindCount]) -> Misses:
    """The estimate from the counts of one key.

    The interval adds up the Wilson intervals of the strata by their squared distances
    (Zou and Donner 2008, the method of variance estimates recovery), so it assumes
    independent traces.
    """
    quiet = [one for one in counts if not one.fired]
    fired = [one for one in counts if one.fired]
    weighted, interval = _weighted(quiet)
    return Misses(
        quiet=_together(quiet),
        fired=_together(fired),
        cannot_tell=sum(one.cannot_tell for one in counts),
        quiet_traces=sum(one.traces for one in quiet),
        weighted=weighted,
        interval=interval,
    )


def _together(counts: Sequence[BlindCount]) -> Rate:
    return rate(
        sum(one.failures for one in counts),
        sum(one.looks for one in counts),
        nothing=NO_LOOKS,
    )


def _weighted(strata: Sequence[BlindCount]) -> tuple[float | None, Interval | None]:
    whole = sum(one.traces for one in strata)
    if not whole or any(not one.looks for one in strata):
        return None, None
    middle, below, above = 0.0, 0.0, 0.0
    for one in strata:
        weight = one.traces / whole
        part = rate(one.failures, one.looks)
        if part.value is None or part.interval is None:
            return None, None
        middle += weight * part.value
        below += (weight * (part.value - part.interval.low)) ** 2
        above += (weight * (part.interval.high - part.value)) ** 2
    return middle, Interval(
        low=max(0.0, middle - sqrt(below)),
        high=min(1.0, middle + sqrt(above)),
        method="Wilson intervals of the strata, weighted",
    )
