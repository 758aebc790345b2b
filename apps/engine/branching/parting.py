"""Where two trials part for good, and the tree of groups that follows from it.

To part is not to be wrong: which side was right is for the outcomes to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final, TypeAlias

import msgspec

SHARED: Final = 4
"""What one shared place is worth, in points that only one of two trials has."""
LONGEST_DETOUR: Final = 12
"""What a stretch without a shared place costs at most: three shared places."""
START: Final = -1

Pair: TypeAlias = tuple[int, int]


class Group(msgspec.Struct):
    """Trials that go together up to `place`, after which its `parts` go their ways.

    `born` is the place after which it went its own way (-1: from the start). `place`
    is `None` where they never part.
    """

    members: tuple[int, ...]
    born: int
    place: int | None
    parts: list[Group]


def parted_after(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The last place two trials share before they part; -1 for none at all.

    `None` where they do not part. The trials come back together as long as it pays: a
    shared place counts 4, a point that only one of them has costs 1, a stretch of such
    points never more than 12. Where the sum is highest (the latest such place) they
    part; places shared after it are chance, or too few to be a return. It is the end
    of an extension in the sense of Altschul and others (1990, BLAST), without a drop
    at which to stop. So one shared point makes up for a detour of four, and three
    shared points for a detour of any length.
    """
    stands = {place: at for at, place in enumerate(other)}
    total = best = 0
    parted, left, right = START, -1, -1
    before = (-1, -1)
    for at, place in enumerate(one):
        there = stands.get(place)
        if there is None:
            continue
        apart = at - before[0] + there - before[1] - 2
        total += SHARED - min(apart, LONGEST_DETOUR)
        before = (at, there)
        if total >= best:
            best, parted, left, right = total, place, at, there
    is_end = left == len(one) - 1 and right == len(other) - 1
    return None if is_end and parted != START else parted


def groups_of(places: Sequence[Sequence[int]]) -> Group:
    """The tree of groups of trials whose points stand at `places` (at least one trial).

    Groups are joined from the latest parting to the earliest, by the median over their
    pairs (the lower of two), so that one pair which meets by chance does not hold two
    groups together. What parts at one place parts at once. Ties go by the order of the
    trials.
    """
    never = max([line[-1] for line in places if line], default=0) + 1
    pairs = {}
    for one, other in combinations(range(len(places)), 2):
        found = parted_after(places[one], places[other])
        pairs[one, other] = [never if found is None else found]
    groups = {
        number: Group(members=(number,), born=START, place=None, parts=[])
        for number in range(len(places))
    }
    while len(groups) > 1:
        first, second = max(pairs, key=lambda pair: (_median(pairs[pair]), *_low(pair)))
        place = _median(pairs.pop((first, second)))
        groups[first] = _joined(groups[first], groups.pop(second), place, never)
        for other in groups:
            if other != first:
                far = pairs.pop((min(second, other), max(second, other)))
                pairs[min(first, other), max(first, other)] += far
    (root,) = groups.values()
    _give_birth(root, START)
    return root


def leaf_numbers(root: Group, trials: int) -> list[int]:
    """For each trial the number of the last group it is in, groups by first trial."""
    leaves = [group for group in walked(root) if not group.parts]
    numbers = [0] * trials
    for number, leaf in enumerate(sorted(leaves, key=lambda one: one.members)):
        for member in leaf.members:
            numbers[member] = number
    return numbers


def walked(root: Group) -> list[Group]:
    """The group and all below it, each before its parts."""
    found = [root]
    for group in found:
        found += group.parts
    return found


def _median(values: list[int]) -> int:
    return sorted(values)[(len(values) - 1) // 2]


def _low(pair: Pair) -> Pair:
    return -pair[0], -pair[1]


def _joined(one: Group, other: Group, place: int, never: int) -> Group:
    members = tuple(sorted(one.members + other.members))
    if place >= never:
        return Group(members=members, born=START, place=None, parts=[])
    parts = []
    for group in (one, other):
        # A median may join two groups after a later parting within one of them.
        is_same = group.place is not None and group.place <= place
        parts += group.parts if is_same else [group]
    return Group(members=members, born=START, place=place, parts=parts)


def _give_birth(group: Group, place: int) -> None:
    waiting = [(group, place)]
    while waiting:
        one, born = waiting.pop()
        one.born = born
        at = born if one.place is None else one.place
        waiting += [(part, at) for part in one.parts]
