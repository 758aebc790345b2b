"""Whether two samples differ by more than a random split of the same values would.

The null model: exchangeability, that is, it did not matter which of the two samples a
value is in. With blocks (tasks) that holds only within each block, so that a sample
of harder tasks is no difference; with clusters (all calls of one trace) whole
clusters are moved, because what lies in one of them is not independent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import StrEnum
from itertools import accumulate, compress, islice, pairwise, product
from random import Random
from typing import Any, Final, TypeAlias

import msgspec

from apps.engine.nulls.subsets import every_split, random_split

EXACT_SPLITS: Final = 5_000
"""Up to this many splits all of them are listed; beyond, some are drawn."""

TOLERANCE: Final = 1e-12
"""Two statistics closer than this part of the largest value are the same."""

ALIKE: Final = 0.01
"""Two differences this close in standard errors are the same: with a single failure
every split is about one standard error wide, and the sizes alone would rank them."""

_LISTED_SPLITS: Final = 500
_SLOT: Final = 40
_LOW: Final = (1 << _SLOT) - 1


class Statistic(StrEnum):
    """What is compared between two samples, in words for a person."""

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


class _Block(msgspec.Struct, frozen=True):
    """The units of one block, those of the first sample in front."""

    units: list[_Unit]
    taken: int

    @property
    def size(self) -> int:
        return len(self.units)

    @property
    def values(self) -> int:
        return sum(map(len, self.units))


_Measure: TypeAlias = Callable[[bytes], float]
"""The statistic of a split: for the units of all blocks, 1 for the first sample."""


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
    n1 n2 / (n1 + n2), the number of values of each side in the block. Means and rates
    of clusters without blocks are compared by the difference over its cluster-robust
    standard error, so that clusters that differ in size alone are no difference
    (Janssen 1997; Chung and Romano 2013). Checked against enumeration and scipy. Raises `ValueError` for an empty sample, a rate of anything
    but 0 and 1, or columns of different length.
    """
    blocks = _blocks(first, second)
    if statistic is Statistic.RATE and not {*first.values, *second.values} <= {0, 1}:
        raise ValueError("A rate is counted over values of 0 and 1.")
    recorded = _recorded(blocks)
    measure = _MEASURES[statistic](blocks)
    observed = measure(recorded)
    tolerance = TOLERANCE * _scale(first, second, statistic)
    if _MEASURES[statistic] is _means and _is_clustered(blocks):
        measure, tolerance = _studentized(blocks), ALIKE
    bound = abs(measure(recorded)) - tolerance
    ways = math.prod(math.comb(block.size, block.taken) for block in blocks)
    if ways <= EXACT_SPLITS:
        values = [abs(measure(split)) for split in _all(blocks)]
        return _listed(observed, values, bound, tolerance)
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


def _scale(first: Sample, second: Sample, statistic: Statistic) -> float:
    """What rounding errors of the statistic are to be measured by."""
    if statistic is Statistic.VARIATION:
        return 1.0
    return float(max(map(abs, (*first.values, *second.values))))


def _listed(
    observed: float, values: list[float], bound: float, tolerance: float
) -> PermutationTest:
    most = max(values) - tolerance
    return PermutationTest(
        observed=observed,
        p=sum(value >= bound for value in values) / len(values),
        standard_error=None,
        method=f"exact, {len(values):,} splits",
        draws=len(values),
        floor=sum(value >= most for value in values) / len(values),
    )


def _recorded(blocks: list[_Block]) -> bytes:
    return b"".join(
        b"\x01" * block.taken + b"\x00" * (block.size - block.taken) for block in blocks
    )


def _all(blocks: list[_Block]) -> Iterator[bytes]:
    every = (every_split(block.size, block.taken) for block in blocks)
    return map(b"".join, product(*every))


def _drawn(blocks: list[_Block], source: Random) -> Iterator[bytes]:
    """Random splits without end; blocks alike lie side by side and draw together."""
    alike = Counter((block.size, block.taken) for block in blocks)
    listed = {
        (size, taken): list(every_split(size, taken))
        for size, taken in alike
        if math.comb(size, taken) <= _LISTED_SPLITS
    }
    while True:
        parts: list[bytes] = []
        for shape, number in alike.items():
            if shape in listed:
                parts.extend(source.choices(listed[shape], k=number))
            else:
                parts.extend([random_split(*shape, source) for _ in range(number)])
        yield b"".join(parts)


def _blocks(first: Sample, second: Sample) -> list[_Block]:
    """The blocks of both samples, those of the same size and split side by side."""
    if not first.values or not second.values:
        raise ValueError("Both samples need at least one value.")
    one, other = _by_block(first), _by_block(second)
    blocks = [
        _Block(
            units=[*one.get(block, {}).values(), *other.get(block, {}).values()],
            taken=len(one.get(block, {})),
        )
        for block in dict.fromkeys((*one, *other))
    ]
    return sorted(blocks, key=lambda block: (block.size, block.taken))


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


def _means(blocks: list[_Block]) -> _Measure:
    """The weighted difference of means within blocks.

    n1 n2 / (n1 + n2) times the difference of the means of a block is the sum over the
    first sample of what each value is above the mean of its block.
    """
    above: list[float] = []
    for block in blocks:
        mean = math.fsum(v for unit in block.units for v in unit) / block.values
        above.extend(math.fsum([v - mean for v in unit]) for unit in block.units)
    weight = _weights(blocks)
    return lambda split: sum(compress(above, split)) / (weight(split) or 1)


def _is_clustered(blocks: list[_Block]) -> bool:
    """Whether one block holds units of more than one value."""
    return len(blocks) == 1 and any(len(unit) > 1 for unit in blocks[0].units)


def _studentized(blocks: list[_Block]) -> _Measure:
    """The difference of means over its standard error, clusters being independent.

    The variance of a side is the sum over its clusters of (sum - mean * size)^2, over
    the square of its number of values.
    """
    sums = [math.fsum(unit) for unit in blocks[0].units]
    sizes = [len(unit) for unit in blocks[0].units]
    terms = [(s, n, s * s, s * n, n * n) for s, n in zip(sums, sizes, strict=True)]
    columns = [list(column) for column in zip(*terms, strict=True)]
    totals = [sum(column) for column in columns]

    def measure(split: bytes) -> float:
        one = [sum(compress(column, split)) for column in columns]
        other = [total - part for total, part in zip(totals, one, strict=True)]
        difference = one[0] / one[1] - other[0] / other[1]
        spread = math.sqrt(max(0.0, _variance(*one) + _variance(*other)))
        if abs(difference) <= TOLERANCE:
            return 0.0
        return (
            difference / spread
            if spread > TOLERANCE
            else math.copysign(_FAR, difference)
        )

    return measure


_FAR: Final = 1e12
"""A difference without any spread: farther than every difference with one."""


def _variance(s: float, n: float, ss: float, sn: float, nn: float) -> float:
    mean = s / n
    return (ss - 2 * mean * sn + mean * mean * nn) / (n * n)


def _weights(blocks: list[_Block]) -> _Measure:
    """The sum over the blocks of n1 n2 / (n1 + n2), in values."""
    slices, sizes = _slices(blocks), [len(u) for b in blocks for u in b.units]

    def weight(split: bytes) -> float:
        total = 0.0
        for part in slices:
            size = sum(sizes[part])
            taken = sum(compress(sizes[part], split[part]))
            total += taken * (size - taken) / size
        return total

    if all(size == 1 for size in sizes):
        constant = weight(_recorded(blocks))
        return lambda _: constant
    return weight


def _slices(blocks: list[_Block]) -> list[slice]:
    ends = list(accumulate((block.size for block in blocks), initial=0))
    return [slice(low, high) for low, high in pairwise(ends)]


def _medians(blocks: list[_Block]) -> _Measure:
    """The weighted difference of medians within blocks."""
    parts: list[tuple[slice, list[float], list[int]]] = []
    for block, part in zip(blocks, _slices(blocks), strict=True):
        if 0 < block.taken < block.size:
            pairs = sorted((v, i) for i, unit in enumerate(block.units) for v in unit)
            parts.append((part, [v for v, _ in pairs], [i for _, i in pairs]))

    def measure(split: bytes) -> float:
        found, weights = 0.0, 0.0
        for part, values, units in parts:
            # The values are in order, so what is picked of them is in order too.
            selected = bytes(map(split[part].__getitem__, units))
            one = list(compress(values, selected))
            other = list(compress(values, selected.translate(_FLIPPED)))
            weight = len(one) * len(other) / len(values)
            found += weight * (_middle(one) - _middle(other))
            weights += weight
        return found / (weights or 1)

    return measure


_FLIPPED: Final = bytes.maketrans(b"\x00\x01", b"\x01\x00")


def _middle(ordered: list[float]) -> float:
    half = len(ordered) // 2
    return (ordered[half] + ordered[~half]) / 2


def _variation(blocks: list[_Block]) -> _Measure:
    """Half the sum of the differences between the shares of each name."""
    units = [unit for block in blocks for unit in block.units]
    names = sorted({name for unit in units for name in unit})
    places = {name: 1 << _SLOT * number for number, name in enumerate(names)}
    # One integer holds the counts of all names, so that one sum adds them all.
    packed = [sum(map(places.__getitem__, unit)) for unit in units]
    total = _unpacked(sum(packed), len(names))
    size = sum(total)

    def measure(split: bytes) -> float:
        taken = _unpacked(sum(compress(packed, split)), len(names))
        one = sum(taken)
        other = size - one
        pairs = zip(taken, total, strict=True)
        return 0.5 * math.fsum([abs(k / one - (n - k) / other) for k, n in pairs])

    return measure


def _unpacked(packed: int, names: int) -> list[int]:
    return [packed >> (_SLOT * number) & _LOW for number in range(names)]


_MEASURES: Final[dict[Statistic, Callable[[list[_Block]], _Measure]]] = {
    Statistic.MEAN: _means,
    Statistic.RATE: _means,
    Statistic.MEDIAN: _medians,
    Statistic.VARIATION: _variation,
}
