"""How many of many tests fire by chance alone: the distribution of their number.

Assumption: given the null model, the tests are independent of one another. Tests of
one trace (two agents in one conversation) and trials of one task are not, and then
the true interval is wider than the one given here; the expected number holds anyway.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

EXACT_CHANCES: Final = 5_000
"""Up to this many different chances the distribution is exact."""

EXACT_VARIANCE: Final = 2_500.0
"""Up to this variance the distribution is exact."""

RESOLUTION: Final = 1e-20
"""A positive tail below this is given as this: it is an upper bound of it."""

_TAIL: Final = 0.025

# Probabilities are whole multiples of 2**-96. A polynomial is one integer with 200
# bits for each coefficient, twice the 96 and room for the sum, so that one
# multiplication of integers multiplies two polynomials without any carry.
_UNIT_BYTES: Final = 12
_UNIT_BITS: Final = 8 * _UNIT_BYTES
_UNIT: Final = 1 << _UNIT_BITS
_SLOT_BYTES: Final = 2 * _UNIT_BYTES + 1
_SLOT_BITS: Final = 8 * _SLOT_BYTES
_KEPT: Final = b"\xff" * (_SLOT_BYTES - _UNIT_BYTES) + b"\x00" * _UNIT_BYTES

_Counts: TypeAlias = tuple[int, int, int]
"""How many coefficients, how many leading zeros were cut, and the packed rest."""


class CountNull(msgspec.Struct, frozen=True):
    """How many of `tests` tests fire by chance alone.

    `expected` and `variance` are exact; `low` and `high` are the 2.5 % and 97.5 %
    quantiles in whole tests. `skewness` is that of the number. `tail` holds the
    probability of `first` + i tests or more, is 1 before and below the resolution
    after; it is empty where `method` is an approximation. `possible` of the tests
    have a chance above 0.
    """

    expected: float
    variance: float
    skewness: float
    low: int
    high: int
    tests: int
    possible: int
    method: str
    first: int = 0
    tail: tuple[float, ...] = ()

    def at_least(self, observed: int) -> float:
        """The probability that chance alone makes `observed` tests fire, or more.

        0 only where that many cannot fire; otherwise never below the resolution.
        """
        if observed > self.possible:
            return 0.0
        return max(self._tail_at(observed), RESOLUTION)

    def _tail_at(self, observed: int) -> float:
        if observed <= self.first:
            return 1.0
        if not self.tail:
            return _normal_tail(self, observed)
        place = observed - self.first
        return self.tail[place] if place < len(self.tail) else 0.0


def count_null(chances: Iterable[tuple[float, int]]) -> CountNull:
    """The null distribution of how many tests fire, from (chance, how many have it).

    Exactly the Poisson-binomial distribution, by multiplying the tests' polynomials
    q + p x in pairs of equal size, in integers (absolute error below 10**-20). With
    more than 5,000 different chances or a variance above 2,500, the normal
    approximation with skewness and continuity correction (Volkova 1996, Hong 2013).
    Checked against enumeration and scipy's binomial and Poisson-binomial. Raises
    `ValueError` for a chance outside [0, 1] or a number of tests below 0.
    """
    groups: dict[float, int] = {}
    for chance, number in chances:
        if not 0 <= chance <= 1 or number < 0:
            raise ValueError(
                "A chance lies between 0 and 1, and no fewer than 0 tests have it."
            )
        groups[chance] = groups.get(chance, 0) + number
    groups = {chance: groups[chance] for chance in sorted(groups) if groups[chance]}
    found = _moments(groups)
    if len(groups) > EXACT_CHANCES or found.variance > EXACT_VARIANCE:
        return msgspec.structs.replace(
            found,
            low=_normal_quantile(found, _TAIL),
            high=_normal_quantile(found, 1 - _TAIL),
        )
    return _with_tail(found, groups)


def _moments(groups: dict[float, int]) -> CountNull:
    variance = math.fsum(n * p * (1 - p) for p, n in groups.items())
    # Beside a chance of 10**-300 the variance vanishes in the power of 1.5.
    scale = variance**1.5
    third = math.fsum(n * p * (1 - p) * (1 - 2 * p) for p, n in groups.items())
    return CountNull(
        expected=math.fsum(n * p for p, n in groups.items()),
        variance=variance,
        skewness=third / scale if scale else 0.0,
        low=0,
        high=0,
        tests=sum(groups.values()),
        possible=sum(n for p, n in groups.items() if p),
        first=groups.get(1.0, 0),
        method="normal approximation with skewness and continuity correction",
    )


def _with_tail(found: CountNull, groups: dict[float, int]) -> CountNull:
    length, start, packed = _product(
        [_power(p, n) for p, n in groups.items() if 0 < p < 1]
    )
    data = packed.to_bytes(length * _SLOT_BYTES, "little")
    total, tails = 0, []
    for place in range(len(data) - _SLOT_BYTES, -1, -_SLOT_BYTES):
        total += int.from_bytes(data[place : place + _SLOT_BYTES], "little")
        tails.append(total)
    tail = tuple([min(1.0, above / _UNIT) for above in reversed(tails)])
    first = found.first + start
    beyond = first + len(tail)
    return msgspec.structs.replace(
        found,
        first=first,
        tail=tail,
        # A quantile is the first number that is exceeded rarely enough.
        low=_first_below(tail, 1 - _TAIL, first, beyond),
        high=_first_below(tail, _TAIL, first, beyond),
        method="exact (Poisson-binomial)",
    )


def _first_below(tail: tuple[float, ...], bound: float, first: int, beyond: int) -> int:
    """The smallest k at which the probability of more than k is at most `bound`."""
    after = (first + i for i, above in enumerate(tail[1:]) if above <= bound)
    return next(after, beyond - 1)


def _power(chance: float, number: int) -> _Counts:
    """The number of firing tests among `number` with one chance."""
    p = round(chance * _UNIT)
    one: _Counts = (2, 0, (_UNIT - p) + (p << _SLOT_BITS))
    result: _Counts = (1, 0, _UNIT)
    for digit in f"{number:b}":
        result = _times(result, result) if result[0] > 1 else result
        if digit == "1":
            result = _times(result, one) if result[0] > 1 else one
    return result


def _product(factors: list[_Counts]) -> _Counts:
    """The product of all, always of the two shortest, so that few are long."""
    if not factors:
        return (1, 0, _UNIT)
    heapq.heapify(factors)
    while len(factors) > 1:
        shortest = heapq.heappop(factors)
        heapq.heapreplace(factors, _times(shortest, factors[0]))
    return factors[0]


def _times(one: _Counts, other: _Counts) -> _Counts:
    length = one[0] + other[0] - 1
    # Each product has 192 bits after the point; the lower 96 are cut off again.
    packed = (one[2] * other[2] >> _UNIT_BITS) & _mask(length)
    zeros = ((packed & -packed).bit_length() - 1) // _SLOT_BITS
    packed >>= zeros * _SLOT_BITS
    return (
        -(-packed.bit_length() // _SLOT_BITS),
        one[1] + other[1] + zeros,
        packed,
    )


def _mask(length: int) -> int:
    return int.from_bytes(_KEPT * length, "little")


def _normal_tail(null: CountNull, observed: int) -> float:
    """The probability of `observed` or more by the refined normal approximation."""
    x = (observed - 0.5 - null.expected) / math.sqrt(null.variance)
    density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    upper = 0.5 * math.erfc(x / math.sqrt(2))
    return min(1.0, max(0.0, upper - null.skewness * (1 - x * x) * density / 6))


def _normal_quantile(null: CountNull, share: float) -> int:
    """The smallest k with a probability of at least `share` for k or fewer."""
    low, high = 0, null.tests
    while low < high:
        middle = (low + high) // 2
        if 1 - _normal_tail(null, middle + 1) >= share:
            high = middle
        else:
            low = middle + 1
    return low
