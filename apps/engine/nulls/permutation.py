"""Whether two samples differ by more than a random split of the same values would.

The null model: exchangeability, that is, it did not matter which of the two samples a
value is in. With blocks (tasks) that holds only within each block, so that a sample
of harder tasks is no difference; with clusters (all calls of one trace) whole
clusters are moved, because what lies in one of them is not independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import StrEnum
from itertools import compress, islice, product
from random import Random
from typing import Any, Final, TypeAlias

import msgspec

from apps.engine.nulls.subsets import every_split, random_split

EXACT_SPLITS: Final = 5_000
"""Up to this many splits all of them are listed; beyond, some are drawn."""

TOLERANCE: Final = 1e-9
"""Two statistics that differ by less than this part of the larger are the same."""

_SLOT: Final = 40
_LOW: Final = (1 << _SLOT) - 1


class Statistic(StrEnum):
    """What is compared, in words for a person."""

    MEAN = "difference of means"
    MEDIAN = "difference of medians"
    RATE = "difference of rates"
    VARIATION = "total-variation distance"


class Sample(msgspec.Struct, frozen=True):
    """The values of one side: numbers, 0 and 1 for a rate, or names for a mix.

    `blocks` and `clusters`, where given, run in parallel with `values`: the block
    within which a value may change sides, and what moves with it. A cluster lies in
    one block.
    """

    values: Sequence[Any]
    blocks: Sequence[Hashable] = ()
    clusters: Sequence[Hashable] = ()


class PermutationTest(msgspec.Struct, frozen=True):
    """How often a random split differs at least as much as the recorded one.

    `observed` is the first side minus the second (a distance has no sign). `p` is
    two-sided. Exact over all `draws` splits where `standard_error` is `None`, else
    (hits + 1) / (draws + 1), which counts the recorded split and so is never 0
    (Phipson and Smyth 2010). `floor` is the smallest p that could have come out.
    """

    observed: float
    p: float
    standard_error: float | None
    method: str
    draws: int
    floor: float


_Unit: TypeAlias = list[Any]
"""The values that move together."""

_Splits: TypeAlias = Sequence[bytes]
"""For each block which of its units are in the first sample."""


class _Block(msgspec.Struct, frozen=True):
    """The units of one block, those of the first sample in front."""

    units: list[_Unit]
    taken: int

    @property
    def recorded(self) -> bytes:
        return b"\x01" * self.taken + b"\x00" * (len(self.units) - self.taken)


def permutation_test(
    first: Sample,
    second: Sample,
    *,
    statistic: Statistic,
    seed: int,
    draws: int = 2_000,
) -> PermutationTest:
    """The permutation test of `statistic` (Fisher 1935, Pitman 1937).

    All splits are listed where they are at most 5,000; otherwise `draws` of them are
    drawn, and the same arguments give the same answer. With blocks, means, rates and
    medians are compared block by block and averaged with the weights
    n1 n2 / (n1 + n2), the number of values of each side in the block. Checked against
    enumeration and scipy. Raises `ValueError` for an empty sample, a rate of anything
    but 0 and 1, or columns of different length.
    """
    blocks = _blocks(first, second)
    if statistic is Statistic.RATE and not {*first.values, *second.values} <= {0, 1}:
        raise ValueError("A rate is counted over values of 0 and 1.")
    measure = _MEASURES[statistic](blocks)
    observed = measure([block.recorded for block in blocks])
    bound = abs(observed) * (1 - TOLERANCE)
    ways = math.prod(math.comb(len(block.units), block.taken) for block in blocks)
    if ways <= EXACT_SPLITS:
        return _listed(observed, bound, [abs(measure(s)) for s in _all(blocks)])
    source = Random(seed)  # noqa: S311 - a simulation, not a secret
    drawn = map(measure, islice(_drawn(blocks, source), draws))
    p = (sum(abs(value) >= bound for value in drawn) + 1) / (draws + 1)
    return PermutationTest(
        observed=observed,
        p=p,
        standard_error=math.sqrt(p * (1 - p) / draws),
        method=f"seeded Monte Carlo, {draws:,} splits",
        draws=draws,
        floor=1 / (draws + 1),
    )


def _listed(observed: float, bound: float, values: list[float]) -> PermutationTest:
    most = max(values) * (1 - TOLERANCE)
    return PermutationTest(
        observed=observed,
        p=sum(value >= bound for value in values) / len(values),
        standard_error=None,
        method=f"exact, {len(values):,} splits",
        draws=len(values),
        floor=sum(value >= most for value in values) / len(values),
    )


def _all(blocks: list[_Block]) -> Iterator[_Splits]:
    return product(*(every_split(len(block.units), block.taken) for block in blocks))


def _drawn(blocks: list[_Block], source: Random) -> Iterator[_Splits]:
    sizes = [(len(block.units), block.taken) for block in blocks]
    while True:
        yield [random_split(size, taken, source) for size, taken in sizes]


def _blocks(first: Sample, second: Sample) -> list[_Block]:
    """The blocks of both samples, in the order in which they first occur."""
    if not first.values or not second.values:
        raise ValueError("Both samples need at least one value.")
    one, other = _by_block(first), _by_block(second)
    return [
        _Block(
            units=[*one.get(block, {}).values(), *other.get(block, {}).values()],
            taken=len(one.get(block, {})),
        )
        for block in dict.fromkeys((*one, *other))
    ]


def _by_block(sample: Sample) -> dict[Hashable, dict[Hashable, _Unit]]:
    size = len(sample.values)
    blocks = sample.blocks or [None] * size
    clusters = sample.clusters or range(size)
    if not len(blocks) == len(clusters) == size:
        raise ValueError("A sample needs as many blocks and clusters as values.")
    found: dict[Hashable, dict[Hashable, _Unit]] = {}
    for value, block, cluster in zip(sample.values, blocks, clusters, strict=True):
        found.setdefault(block, {}).setdefault(cluster, []).append(value)
    return found


_Measure: TypeAlias = Callable[[_Splits], float]


def _means(blocks: list[_Block]) -> _Measure:
    """The weighted difference of means within blocks."""
    parts = [
        (
            [math.fsum(unit) for unit in block.units],
            [len(unit) for unit in block.units],
        )
        for block in _two_sided(blocks)
    ]
    totals = [(sum(sums), sum(sizes)) for sums, sizes in parts]

    def measure(splits: _Splits) -> float:
        found, weights = 0.0, 0.0
        for (sums, sizes), (total, size), split in zip(
            parts, totals, splits, strict=True
        ):
            taken = sum(compress(sizes, split))
            left = size - taken
            # n1 n2 / (n1 + n2) times the difference of the two means of the block.
            found += (sum(compress(sums, split)) * size - total * taken) / size
            weights += taken * left / size
        return found / weights

    return _over_two_sided(blocks, measure)


def _medians(blocks: list[_Block]) -> _Measure:
    """The weighted difference of medians within blocks."""
    parts = []
    for block in _two_sided(blocks):
        pairs = [(value, i) for i, unit in enumerate(block.units) for value in unit]
        pairs.sort()
        parts.append(([value for value, _ in pairs], [unit for _, unit in pairs]))

    def measure(splits: _Splits) -> float:
        found, weights = 0.0, 0.0
        for (values, units), split in zip(parts, splits, strict=True):
            # The values are in order, so what is picked of them is in order too.
            selected = bytes([split[unit] for unit in units])
            one = list(compress(values, selected))
            other = list(compress(values, selected.translate(_FLIPPED)))
            weight = len(one) * len(other) / len(values)
            found += weight * (_middle(one) - _middle(other))
            weights += weight
        return found / weights

    return _over_two_sided(blocks, measure)


_FLIPPED: Final = bytes.maketrans(b"\x00\x01", b"\x01\x00")


def _middle(ordered: list[float]) -> float:
    half = len(ordered) // 2
    return (ordered[half] + ordered[~half]) / 2


def _variation(blocks: list[_Block]) -> _Measure:
    """Half the sum of the differences between the shares of each name."""
    names = sorted({n for block in blocks for unit in block.units for n in unit})
    place = {name: _SLOT * number for number, name in enumerate(names)}
    # One integer holds the counts of all names, so that one sum adds them all.
    packed = [
        [sum(1 << place[name] for name in unit) for unit in block.units]
        for block in blocks
    ]
    total = _unpacked(sum(map(sum, packed)), len(names))
    size = sum(total)

    def measure(splits: _Splits) -> float:
        pairs = zip(packed, splits, strict=True)
        taken = _unpacked(
            sum(sum(compress(counts, split)) for counts, split in pairs), len(names)
        )
        one = sum(taken)
        other = size - one
        return 0.5 * math.fsum(
            abs(k / one - (n - k) / other) for k, n in zip(taken, total, strict=True)
        )

    return measure


def _unpacked(packed: int, names: int) -> list[int]:
    return [packed >> (_SLOT * number) & _LOW for number in range(names)]


def _two_sided(blocks: list[_Block]) -> list[_Block]:
    return [block for block in blocks if 0 < block.taken < len(block.units)]


def _over_two_sided(blocks: list[_Block], measure: _Measure) -> _Measure:
    """`measure` of the splits of those blocks that have both sides; 0 without any."""
    places = [0 < block.taken < len(block.units) for block in blocks]
    if all(places):
        return measure
    if not any(places):
        return lambda _: 0.0
    return lambda splits: measure(list(compress(splits, places)))


_MEASURES: Final[dict[Statistic, Callable[[list[_Block]], _Measure]]] = {
    Statistic.MEAN: _means,
    Statistic.RATE: _means,
    Statistic.MEDIAN: _medians,
    Statistic.VARIATION: _variation,
}
