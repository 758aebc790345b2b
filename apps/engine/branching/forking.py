"""The forks, differences and detours of aligned trials, each with its branches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from apps.engine.bodies.effects import is_write
from apps.engine.branching.lanes import Spread, TrialPath
from apps.engine.branching.outcomes import (
    ENDED,
    UNDECIDED,
    Branch,
    Fork,
    ForkKind,
    Place,
    fork_of,
    interval_of,
)
from apps.engine.branching.parting import START, Group, walked
from apps.engine.branching.points import Point
from apps.engine.branching.stretches import Stretch, stretches_of

_MOST_WRITES: Final = 5


class Aligned(msgspec.Struct):
    """Distinct paths at their places, and the trials that took each of them."""

    trials: list[list[TrialPath]]
    places: list[list[int]]
    spread: Spread

    def point(self, path: int, at: int) -> Point:
        """A point of a path, as its first trial has it."""
        return self.trials[path][0].points[at]


class _Way(msgspec.Struct):
    """Paths that go one way, the point of each there, and which point stands for all.

    The point of a path is `None` where it has none; the way stands for the point of
    the path `shown`. `inside` gives for each path its points from `start` to `stop`
    that belong to the way.
    """

    at: dict[int, int | None]
    inside: dict[int, tuple[int, int]]
    shown: int | None
    is_end: bool = False
    is_various: bool = False


def forks_in(aligned: Aligned, root: Group) -> tuple[Fork, ...]:
    """All forks, differences and detours below `root`, by column, parting ones first."""
    found = [fork for group in walked(root) for fork in _forks_of_group(aligned, group)]
    rank = list(ForkKind)
    return tuple(
        sorted(
            found,
            key=lambda fork: (
                fork.column,
                rank.index(fork.kind),
                [branch.trial_ids for branch in fork.branches],
            ),
        )
    )


def _forks_of_group(aligned: Aligned, group: Group) -> Iterator[Fork]:
    own = {member: _own_nodes(aligned, group, member) for member in group.members}
    for stretch in stretches_of(own):
        yield _unlike(aligned, group, stretch)
    if group.parts:
        yield _parted(aligned, group)


def _own_nodes(aligned: Aligned, group: Group, member: int) -> list[int]:
    line = aligned.places[member]
    start = bisect_right(line, group.born)
    stop = len(line) if group.place is None else bisect_right(line, group.place)
    return aligned.spread.nodes[member][start:stop]


def _parted(aligned: Aligned, group: Group) -> Fork:
    place = START if group.place is None else group.place
    starts = {
        member: bisect_right(aligned.places[member], place) for member in group.members
    }
    counts = [
        Counter([at for m in part.members for at in aligned.places[m][starts[m] :]])
        for part in group.parts
    ]
    ways = [
        _way(aligned, part, starts, _typical(part, counts, number))
        for number, part in enumerate(group.parts)
    ]
    kind = ForkKind.ENDED if any(way.is_end for way in ways) else ForkKind.PARTED
    after = aligned.spread.born[id(group.parts[0])]
    return _fork(aligned, kind, (after, after + 1), ways)


def _typical(group: Group, counts: Sequence[Mapping[int, int]], own: int) -> int | None:
    """The first place that most of a group have, and fewer of each other group."""
    half = len(group.members) / 2
    others = [count for number, count in enumerate(counts) if number != own]
    for place, n in sorted(counts[own].items()):
        if n > half and all(count.get(place, 0) < n for count in others):
            return place
    return None


def _way(
    aligned: Aligned, group: Group, starts: Mapping[int, int], typical: int | None
) -> _Way:
    at: dict[int, int | None] = {}
    shown = None
    for member in group.members:
        line, start = aligned.places[member], starts[member]
        if start >= len(line):
            at[member] = None
        elif typical in line[start:]:
            at[member] = _first_like(aligned, member, line.index(typical), start)
            shown = member if shown is None else shown
        else:
            at[member] = start
    going = [member for member, point in at.items() if point is not None]
    is_various = shown is None and len(going) > 1
    if shown is None and going:
        shown = going[0]
    inside = {
        member: (starts[member], len(aligned.places[member]))
        for member in group.members
    }
    return _Way(at, inside, shown, is_end=not going, is_various=is_various)


def _first_like(aligned: Aligned, path: int, at: int, start: int) -> int:
    """The first point from `start` that is equal to that at `at`, which it retries."""
    key = aligned.point(path, at).key
    return next(n for n in range(start, at + 1) if aligned.point(path, n).key == key)


def _unlike(aligned: Aligned, group: Group, stretch: Stretch) -> Fork:
    ways = [
        _way_through(aligned, stretch, node, members)
        for node, members in stretch.ways.items()
    ]
    if stretch.straight:
        nothing: dict[int, int | None] = dict.fromkeys(stretch.straight)
        ways.append(_Way(nothing, {}, shown=None))
    columns = aligned.spread.columns
    born = aligned.spread.born[id(group)]
    after = born if stretch.left is None else columns[stretch.left]
    first = min([columns[piece[0]] for piece in stretch.inside.values() if piece])
    kind = ForkKind.DIFFERENCE if stretch.is_difference else ForkKind.DETOUR
    return _fork(aligned, kind, (after, first), ways)


def _way_through(
    aligned: Aligned, stretch: Stretch, node: int, members: Sequence[int]
) -> _Way:
    at: dict[int, int | None] = {}
    inside = {}
    for member in members:
        line = aligned.spread.nodes[member]
        piece = stretch.inside[member]
        at[member] = bisect_left(line, node)
        start = bisect_left(line, piece[0])
        inside[member] = (start, start + len(piece))
    return _Way(at, inside, shown=members[0])


def _fork(
    aligned: Aligned, kind: ForkKind, columns: tuple[int, int], ways: Sequence[_Way]
) -> Fork:
    places = [
        Place(
            trial_id=trial.trial_id,
            point=at,
            step=None if at is None else trial.points[at].step,
        )
        for way in ways
        for path, at in way.at.items()
        for trial in aligned.trials[path]
    ]
    branches = [_branch(aligned, way) for way in ways]
    return fork_of(kind, columns, branches, places)


def _branch(aligned: Aligned, way: _Way) -> Branch:
    trials = [trial for path in way.at for trial in aligned.trials[path]]
    known = [trial.passed for trial in trials if trial.passed is not None]
    at = None if way.shown is None else way.at[way.shown]
    point = None
    if way.shown is not None and at is not None:
        point = aligned.point(way.shown, at)
    return Branch(
        key="" if point is None else point.key,
        label=_label(aligned, way) if point is None else point.label,
        tool="" if point is None else point.tool,
        writes=_writes(aligned, way),
        trial_ids=tuple(sorted([trial.trial_id for trial in trials])),
        passed=sum(known),
        known=len(known),
        interval=interval_of(sum(known), len(known)),
        is_end=way.is_end,
        is_straight=point is None and not way.is_end,
        is_various=way.is_various,
    )


def _writes(aligned: Aligned, way: _Way) -> tuple[str, ...]:
    """The labels of the writing points inside a way that half of its trials have."""
    labels: dict[int, str] = {}
    counts: Counter[int] = Counter()
    for path, (start, stop) in way.inside.items():
        for at in range(start, stop):
            point = aligned.point(path, at)
            if any(is_write(name) for name in point.tools):
                place = aligned.places[path][at]
                counts[place] += len(aligned.trials[path])
                labels.setdefault(place, point.label)
    half = sum([len(aligned.trials[path]) for path in way.at]) / 2
    found = [labels[place] for place in sorted(labels) if counts[place] >= half]
    return tuple(dict.fromkeys(found))[:_MOST_WRITES]


def _label(aligned: Aligned, way: _Way) -> str:
    if not way.is_end:
        return "straight on"
    has_decided = any(aligned.places[path] for path in way.at)
    return ENDED if has_decided else UNDECIDED
