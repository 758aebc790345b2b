"""k of n with its interval, and the words for it; 0 of 0 says why there is nothing."""

from __future__ import annotations

import msgspec

from apps.engine.check import percent
from apps.engine.nulls import Interval, wilson


class Share(msgspec.Struct, frozen=True):
    """`k` of `n` with its 95 % Wilson interval; `None` and words for 0 of 0.

    The interval takes the n as independent with one common rate. Trials of one task
    share their input, so the true interval is rather wider than narrower.
    """

    k: int
    n: int
    interval: Interval | None
    nothing: str = "none"

    @property
    def value(self) -> float | None:
        """The share between 0 and 1, `None` for 0 of 0."""
        return self.k / self.n if self.n else None

    @property
    def words(self) -> str:
        """For a sentence: `3 of 5 (60 %; 95 % interval 23.1 % to 88.2 %)`."""
        if self.interval is None:
            return self.nothing
        low, high = percent(self.interval.low), percent(self.interval.high)
        share = percent(self.k / self.n)
        return f"{self.k:,} of {self.n:,} ({share}; 95 % interval {low} to {high})"


def share(k: int, n: int, *, nothing: str = "none") -> Share:
    """`k` of `n`; raises `ValueError` unless 0 <= k <= n."""
    return Share(k=k, n=n, interval=wilson(k, n), nothing=nothing)


def counted(number: int, one: str, many: str | None = None) -> str:
    """`number` with the word for one or for many: `1 trial`, `1,200 trials`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
