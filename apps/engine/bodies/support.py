"""Whether a number stands in texts, or follows from two numbers that do.

A number that stands anywhere, even inside an id, is held. Arithmetic is tried with
amounts only (no ids, dates, times): sums, differences, products, quotients and
percentages of two of them, rounded to the digits shown. Short numbers follow from two
others by chance very often, so a number that is not found says more than one that is.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Final

from apps.engine.bodies.amounts import Claim, amounts_in, values_in, words_in
from apps.engine.bodies.heard import Heard

_MOST_VALUES: Final = 20_000
_MOST_PAIRED: Final = 400
_LARGEST_SIZE: Final = 1_000
# Conversions that nobody writes down: minutes, hours, days, months, sizes.
_CONSTANTS: Final = (60.0, 24.0, 7.0, 12.0, 365.0, 1000.0, 1024.0, 3600.0)
_SLACK: Final = 1e-9
_STEPS: Final = 3


class Support:
    """The numbers of all that was told, sorted once, to look up what follows from them.

    `is_cut` is true where there are more than 20,000 different numbers; then nothing
    should be said about one that is not found. Arithmetic is tried with the first 400
    amounts.
    """

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._text = "\n".join(heard.texts)
        found = {1.0, *map(float, heard.sizes), *heard.numbers}
        for value in values_in(self._text):
            found.add(value)
            if len(found) > _MOST_VALUES:
                break
        self.is_cut = len(found) > _MOST_VALUES
        self._values = sorted(found)
        self._amounts: list[float] = []
        self._factors: list[float] = []
        self._percents: list[float] = []

    def not_held(self, claims: list[Claim]) -> list[Claim]:
        """The claims that stand nowhere and follow from no two amounts.

        A total that the answer derives step by step is followed: what is held serves
        the next step, three times over.
        """
        left = [claim for claim in claims if not self._stands(claim)]
        if left:
            self._find_amounts()
        for _ in range(_STEPS):
            held = [claim for claim in left if self._derives(claim)]
            if not held:
                break
            left = [claim for claim in left if claim not in held]
            self._add([value for claim in held for value, _ in claim.readings])
        return left

    def _find_amounts(self) -> None:
        """Collect what arithmetic is tried with; only where something is left over."""
        amounts = dict.fromkeys(self._heard.numbers)
        percents: set[float] = set()
        for value, is_percent in amounts_in(self._text):
            if len(amounts) > _MOST_PAIRED:
                break
            amounts[value] = None
            if is_percent:
                percents.add(value)
        words = list(words_in(self._text))
        self._values = sorted({*self._values, *words})
        sizes = [float(one) for one in self._heard.sizes if one < _LARGEST_SIZE]
        first = [value for value in amounts if 0 < value < math.inf][:_MOST_PAIRED]
        self._percents = sorted(percents)
        self._add([*first, *sizes, *words])

    def _add(self, values: list[float]) -> None:
        self._amounts = sorted({*self._amounts, *values} - {0.0})
        self._factors = sorted({*self._amounts, *_CONSTANTS})

    def _stands(self, claim: Claim) -> bool:
        if claim.pieces and all(self._has(piece, 0.0) for piece in claim.pieces):
            return True
        return any(
            self._has(value, half)
            or (claim.is_percent and self._has(value / 100, half / 100))
            for value, half in claim.readings
        )

    def _derives(self, claim: Claim) -> bool:
        return any(
            self._has(value, half)
            or self._follows(value - half, value + half)
            or (claim.is_percent and self._is_share(value - half, value + half))
            for value, half in claim.readings
        )

    def _has(self, value: float, half: float) -> bool:
        return _within(self._values, value - half, value + half)

    def _follows(self, low: float, high: float) -> bool:
        """Whether two amounts give the value: a+b, a-b, a*b, a/b, a and b percent."""
        for a in self._amounts:
            if (
                _within(self._amounts, low - a, high - a)
                or _within(self._amounts, a - high, a - low)
                or _within(self._factors, low / a, high / a)
                or (low > 0 and _within(self._factors, a / high, a / low))
                or _within(self._percents, 100 * low / a, 100 * high / a)
                or _within(self._percents, 100 * (1 - high / a), 100 * (1 - low / a))
                or _within(self._percents, 100 * (low / a - 1), 100 * (high / a - 1))
            ):
                return True
        return False

    def _is_share(self, low: float, high: float) -> bool:
        """Whether a percentage is a share, a growth or a fall of two amounts."""
        for a in self._amounts:
            if (
                _within(self._amounts, a * low / 100, a * high / 100)
                or _within(self._amounts, a * (1 + low / 100), a * (1 + high / 100))
                or _within(self._amounts, a * (1 - high / 100), a * (1 - low / 100))
            ):
                return True
        return False


def _within(values: list[float], low: float, high: float) -> bool:
    """Whether one of the sorted `values` above 0 lies between `low` and `high`."""
    if high <= 0 or not math.isfinite(high):
        return False
    slack = _SLACK * max(1.0, abs(high))
    place = bisect_left(values, max(low - slack, _SLACK))
    return place < len(values) and values[place] <= high + slack
