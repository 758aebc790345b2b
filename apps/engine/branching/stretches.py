"""Stretches in which trials that go together do not all do the same.

A stretch lies between two nodes that all trials of a group have. If few go straight
through, the group differs there; else those with more made a detour.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec


class Stretch(msgspec.Struct):
    """What each path of a group does between two nodes that all have.

    `left` and `right` are those nodes, `None` at the ends. `ways` gives for the chosen
    node of each way the paths that take it, `straight` those that have nothing here.
    """

    left: int | None
    right: int | None
    inside: dict[int, list[int]]
    ways: dict[int, list[int]]
    straight: list[int]

    @property
    def is_difference(self) -> bool:
        """Whether there is more than one way and fewer than half go straight."""
        return len(self.ways) > 1 and 2 * len(self.straight) < len(self.inside)


def stretches_of(paths: Mapping[int, Sequence[int]]) -> Iterator[Stretch]:
    """Yield the stretches of a group in which its paths (nodes, rising) differ.

    The way of a path is the node of the stretch that most paths of the group have,
    among its own; of several the first.
    """
    if len(paths) < 2:
        return
    counts = Counter([node for path in paths.values() for node in path])
    joints = sorted([node for node, n in counts.items() if n == len(paths)])
    cuts = set(joints)
    pieces = {number: _pieces(path, cuts) for number, path in paths.items()}
    for at in range(len(joints) + 1):
        inside = {number: cut[at] for number, cut in pieces.items()}
        if any(inside.values()):
            yield _stretch(inside, joints, at)


def _pieces(path: Sequence[int], joints: set[int]) -> list[list[int]]:
    pieces: list[list[int]] = [[]]
    for node in path:
        if node in joints:
            pieces.append([])
        else:
            pieces[-1].append(node)
    return pieces


def _stretch(inside: dict[int, list[int]], joints: Sequence[int], at: int) -> Stretch:
    counts = Counter([node for piece in inside.values() for node in piece])
    ways: dict[int, list[int]] = defaultdict(list)
    straight = []
    for number, piece in sorted(inside.items()):
        if piece:
            ways[min(piece, key=lambda node: (-counts[node], node))].append(number)
        else:
            straight.append(number)
    return Stretch(
        left=joints[at - 1] if at else None,
        right=joints[at] if at < len(joints) else None,
        inside=inside,
        ways=dict(ways),
        straight=straight,
    )
