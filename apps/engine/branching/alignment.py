"""Which points of several trials are the same place: a progressive alignment.

It says which equal points can stand side by side without crossing. It does not claim
that another alignment of equal weight would be worse.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Final, TypeAlias

import msgspec
from rapidfuzz.distance import LCSseq

MOST_MATCHES: Final = 100_000
"""Pairs of equal points up to which a merge is weighed; beyond, all weigh the same."""

Keys: TypeAlias = tuple[int, ...]


class _Node(msgspec.Struct):
    """A place of a growing alignment: one key, and who stands there (trial, point)."""

    key: int
    held: list[tuple[int, int]]


def aligned(paths: Sequence[Keys]) -> list[list[int]]:
    """For each path the numbers of its places, one for each point, rising.

    Equal points that stand at one place have one number; a place has one key. The
    paths must differ and come in an order that does not depend on the trials' (sorted):
    then the answer does not either.

    Progressive multiple alignment (Feng and Doolittle 1987): the paths are joined from
    the most to the least similar (share of a longest common subsequence, average
    linkage), and what is joined stays joined. Each join is a global alignment after
    Needleman and Wunsch (1970) with free gaps and without mismatches: the common
    subsequence of most weight, a pair of places weighing the product of the trials at
    each (sum of pairs). Of equal weights the one of later places is taken, so that of
    a repeated call the last stands with the single one of another trial. The result is
    the order of a partial order graph (Lee, Grasso and Sharlow 2002) laid in a line.
    """
    profiles = {
        number: [_Node(key, [(number, at)]) for at, key in enumerate(path)]
        for number, path in enumerate(paths)
    }
    for first, second in _guide(paths):
        profiles[first] = _merged(profiles[first], profiles.pop(second))
    places: list[list[int]] = [[0] * len(path) for path in paths]
    for line in profiles.values():
        for number, node in enumerate(line):
            for trial, at in node.held:
                places[trial][at] = number
    return places


def _guide(paths: Sequence[Keys]) -> list[tuple[int, int]]:
    """Which two groups are joined one after another, by the smallest path in each."""
    likeness = {
        pair: _likeness(paths[pair[0]], paths[pair[1]])
        for pair in combinations(range(len(paths)), 2)
    }
    sizes = dict.fromkeys(range(len(paths)), 1)
    joins = []
    while len(sizes) > 1:
        first, second = min(likeness, key=lambda pair: (-likeness[pair], pair))
        joins.append((first, second))
        del likeness[first, second]
        for other in sizes:
            if other not in {first, second}:
                near = (min(first, other), max(first, other))
                far = likeness.pop((min(second, other), max(second, other)))
                likeness[near] = (
                    likeness[near] * sizes[first] + far * sizes[second]
                ) / (sizes[first] + sizes[second])
        sizes[first] += sizes.pop(second)
    return joins


def _likeness(one: Keys, other: Keys) -> float:
    return 2 * LCSseq.similarity(one, other) / (len(one) + len(other))


def _merged(one: list[_Node], other: list[_Node]) -> list[_Node]:
    line: list[_Node] = []
    at_one = at_other = 0
    for left, right in _pairs(one, other):
        line += one[at_one:left]
        line += other[at_other:right]
        line.append(_Node(one[left].key, one[left].held + other[right].held))
        at_one, at_other = left + 1, right + 1
    return line + one[at_one:] + other[at_other:]


def _pairs(one: list[_Node], other: list[_Node]) -> list[tuple[int, int]]:
    """The places of two lines that are one place, in order."""
    head, tail = _ends(one, other)
    inner_one = one[head : len(one) - tail]
    inner_other = other[head : len(other) - tail]
    inner = [(i + head, j + head) for i, j in _heaviest(inner_one, inner_other)]
    heads = [(at, at) for at in range(head)]
    tails = [(len(one) - at, len(other) - at) for at in range(tail, 0, -1)]
    return heads + inner + tails


def _ends(one: list[_Node], other: list[_Node]) -> tuple[int, int]:
    """How many places at the head and the tail are one without a choice."""
    counts = [Counter([node.key for node in line]) for line in (one, other)]

    def is_sure(left: _Node, right: _Node) -> bool:
        return left.key == right.key and all(count[left.key] == 1 for count in counts)

    shorter = min(len(one), len(other))
    head = 0
    while head < shorter and is_sure(one[head], other[head]):
        head += 1
    tail = 0
    while tail < shorter - head and is_sure(one[-1 - tail], other[-1 - tail]):
        tail += 1
    return head, tail


def _heaviest(one: list[_Node], other: list[_Node]) -> list[tuple[int, int]]:
    """The common subsequence of most weight, by a tree of best prefixes.

    Takes time in proportion to the pairs of equal points and the logarithm of the
    length (Hunt and Szymanski 1977, with weights).
    """
    stands: dict[int, list[int]] = defaultdict(list)
    for at, node in enumerate(other):
        stands[node.key].append(at)
    matches = sum([len(stands.get(node.key, ())) for node in one])
    if matches > MOST_MATCHES:
        return _longest(one, other)
    unit = (min(len(one), len(other)) + 1) * (len(one) + len(other) + 1)
    best = _Prefixes()
    for i, node in enumerate(one):
        # From the right: a point stands at one place only.
        for j in reversed(stands.get(node.key, ())):
            weight = len(node.held) * len(other[j].held) * unit + i + j
            best.add(i, j, weight)
    return best.chain()


def _longest(one: list[_Node], other: list[_Node]) -> list[tuple[int, int]]:
    blocks = LCSseq.opcodes([node.key for node in one], [node.key for node in other])
    return [
        (block.src_start + at, block.dest_start + at)
        for block in blocks
        if block.tag == "equal"
        for at in range(block.src_end - block.src_start)
    ]


class _Prefixes:
    """The best chain that ends before each place of a line.

    Kept as two rising lists: where a chain ends, and what it weighs. A chain that ends
    later and weighs no more is of no use and is dropped.
    """

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._weights: list[int] = []
        self._heads: list[int] = []
        self._links: list[tuple[int, int, int]] = []

    def add(self, i: int, j: int, weight: int) -> None:
        """Let the pair of places end the best chain before it."""
        at = bisect_left(self._ends, j)
        total = weight + (self._weights[at - 1] if at else 0)
        before = self._heads[at - 1] if at else -1
        stop = at
        while stop < len(self._ends) and self._weights[stop] <= total:
            stop += 1
        if at < stop or at == len(self._ends) or self._ends[at] > j:
            self._links.append((i, j, before))
            self._ends[at:stop] = [j]
            self._weights[at:stop] = [total]
            self._heads[at:stop] = [len(self._links) - 1]

    def chain(self) -> list[tuple[int, int]]:
        """The pairs of the best chain of all, in order."""
        found = []
        at = self._heads[-1] if self._heads else -1
        while at >= 0:
            i, j, at = self._links[at]
            found.append((i, j))
        return found[::-1]
