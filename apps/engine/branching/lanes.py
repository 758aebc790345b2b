"""Trials as lanes over columns, where equal points at one place are one node."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from apps.engine.branching.parting import START, Group, walked
from apps.engine.branching.points import Point, PointKind


class TrialPath(msgspec.Struct, frozen=True):
    """One trial as it is compared. `passed` is `None` where no outcome is known."""

    trial_id: str
    points: tuple[Point, ...]
    passed: bool | None = None
    order_uncertain: bool = False


class Node(msgspec.Struct, frozen=True):
    """One point that one or more trials have at one place.

    `trials` are indices of `Branching.lanes`. Trials that have parted share no node,
    even where they do the same later.
    """

    column: int
    key: str
    label: str
    kind: PointKind
    tool: str
    trials: tuple[int, ...]


class Lane(msgspec.Struct, frozen=True):
    """A trial along the columns.

    `nodes` (indices of `Branching.nodes`, their columns rising) and `steps` (`seq`) run
    in parallel with its points. Trials of one `group` never part.
    """

    trial_id: str
    passed: bool | None
    order_uncertain: bool
    group: int
    nodes: tuple[int, ...]
    steps: tuple[int, ...]


class Track(msgspec.Struct, frozen=True):
    """Trials that go together for a while: the trunk, or a branch of a fork.

    `trials` are indices of `Branching.lanes`, `parent` one of `Branching.tracks` (the
    trunk has none). `born` is the column of the last node before it (-1: it is there
    from the start), `until` that of the last node before it forks, or of its last one.
    """

    parent: int | None
    trials: tuple[int, ...]
    born: int
    until: int
    has_fork: bool


class Spread(msgspec.Struct):
    """Paths over nodes: for each path its nodes, for each node place and column."""

    nodes: list[list[int]]
    places: list[int]
    columns: list[int]
    born: dict[int, int]


def spread(places: Sequence[Sequence[int]], root: Group) -> Spread:
    """Nodes and columns of paths whose points stand at `places`.

    A node is a place in a group. Its column is one more than the highest of the nodes
    that come right before it in any path, and lies after the place at which its group
    was born. `born` gives the column of that place by the `id` of the group.
    """
    groups = walked(root)
    owner = [_owners(line, number, root) for number, line in enumerate(places)]
    keys = sorted(
        {
            (place, group)
            for line, owned in zip(places, owner, strict=True)
            for place, group in zip(line, owned, strict=True)
        },
        key=lambda key: (key[0], _number(groups)[key[1]]),
    )
    return _with_columns(places, owner, keys, groups)


def _number(groups: Sequence[Group]) -> dict[int, int]:
    return {id(group): number for number, group in enumerate(groups)}


def _owners(line: Sequence[int], number: int, root: Group) -> list[int]:
    """For each point of a path the `id` of the group in which it lies."""
    group, found = root, []
    for place in line:
        while group.place is not None and place > group.place and group.parts:
            group = next(part for part in group.parts if number in part.members)
        found.append(id(group))
    return found


def _with_columns(
    places: Sequence[Sequence[int]],
    owner: Sequence[Sequence[int]],
    keys: Sequence[tuple[int, int]],
    groups: Sequence[Group],
) -> Spread:
    index = {key: number for number, key in enumerate(keys)}
    nodes = [
        [index[key] for key in zip(line, owned, strict=True)]
        for line, owned in zip(places, owner, strict=True)
    ]
    before: list[set[int]] = [set() for _ in keys]
    for path in nodes:
        for left, right in pairwise(path):
            before[right].add(left)
    by_id = {id(group): group for group in groups}
    above = {id(part): id(group) for group in groups for part in group.parts}
    columns = [0] * len(keys)
    born: dict[int, int] = {}

    def born_after(group: int) -> int:
        if group not in born:
            start = by_id[group].born
            at = index.get((start, above.get(group, group)))
            born[group] = START if at is None else columns[at]
        return born[group]

    for number, (_, group) in enumerate(keys):
        highest = max([columns[left] for left in before[number]], default=START)
        columns[number] = 1 + max(highest, born_after(group))
    for group in by_id:
        born_after(group)
    return Spread(nodes, [place for place, _ in keys], columns, born)
