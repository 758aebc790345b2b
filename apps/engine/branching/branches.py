"""Where the trials of one task part: their alignment, its forks, and what to know."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec

from apps.engine.branching.alignment import aligned
from apps.engine.branching.forking import Aligned, forks_in
from apps.engine.branching.lanes import Lane, Node, Spread, Track, TrialPath, spread
from apps.engine.branching.outcomes import Fork, ForkKind
from apps.engine.branching.parting import (
    START,
    Group,
    groups_of,
    leaf_numbers,
    walked,
)
from apps.engine.branching.statements import Statement, statements_of

MOST_POINTS: Final = 1_000
"""Points of a trial that are aligned; what comes after is cut, and said."""
MOST_PATHS: Final = 64
"""Different paths that are aligned; trials on further ones are left out, and said."""


class Branching(msgspec.Struct, frozen=True):
    """The trials of one task side by side.

    `lanes` are the trials in the order given, without those `left_out`. `forks` are the
    places after which trials do not come back together, in order; `differences` those
    where they take other ways and come back, `detours` those where some do more and
    come back. `columns` is how many there are. `tracks` are the tree that the forks
    make of the lanes, the trunk first and each before its branches.
    """

    lanes: tuple[Lane, ...]
    nodes: tuple[Node, ...]
    tracks: tuple[Track, ...]
    columns: int
    forks: tuple[Fork, ...]
    differences: tuple[Fork, ...]
    detours: tuple[Fork, ...]
    statements: tuple[Statement, ...]
    left_out: tuple[str, ...] = ()

    @property
    def in_order(self) -> tuple[Fork, ...]:
        """Forks and differences by column: the order in which they are numbered."""
        found = (*self.forks, *self.differences)
        return tuple(sorted(found, key=lambda fork: fork.column))

    @property
    def first_fork(self) -> Fork | None:
        """The first place at which trials part, `None` where they do not."""
        return self.forks[0] if self.forks else None

    @property
    def decisive_fork(self) -> Fork | None:
        """The first fork whose branches ended differently.

        Where there is none, the first decisive difference in what was written, else the
        first decisive difference. `None` where outcomes do not go with any of them.
        """
        for fork in self.forks:
            if fork.is_decisive:
                return fork
        found = [fork for fork in self.differences if fork.is_decisive]
        written = [fork for fork in found if _writes(fork)]
        return next(iter(written or found), None)


def branching_of(trials: Sequence[TrialPath]) -> Branching:
    """Align the trials and find where they part; the order of `trials` is no matter.

    Trials with equal points are one path. The paths are aligned (`alignment.py`):
    equal points at one place are one node. Two trials *part* after the last place up
    to which coming back pays (`parting.py`); groups of trials part after the median of
    that over their pairs. So

    - a **fork** is a place after which groups of trials do not come back together;
      where one of them has no further point, it *ended* while others go on;
    - a **difference** is a stretch between two nodes that a whole group has in which
      its trials take two or more ways and fewer than half go straight through;
    - a **detour** is such a stretch with one way, or where at least half go straight:
      a retry, an extra lookup. It makes nothing after it different.

    Bounded: the first 1,000 points of a trial and 64 different paths (the most taken
    first); what is cut is in `statements`. Raises `ValueError` where two trials have
    one id.
    """
    if len({trial.trial_id for trial in trials}) < len(trials):
        raise ValueError("Two trials have the same id.")
    paths, left_out = _paths(trials)
    if not paths:
        return Branching((), (), (), 0, (), (), (), (), left_out)
    places = aligned(_numbered(list(paths)))
    root = groups_of(places)
    laid = spread(places, root)
    found = forks_in(Aligned(list(paths.values()), places, laid), root)
    lanes = _lanes(trials, paths, laid, root)
    return Branching(
        lanes=lanes,
        nodes=_nodes(lanes, laid, {trial.trial_id: trial for trial in trials}),
        tracks=_tracks(lanes, paths, laid, root),
        columns=max(laid.columns, default=START) + 1,
        forks=tuple([fork for fork in found if fork.is_fork]),
        differences=tuple([f for f in found if f.kind is ForkKind.DIFFERENCE]),
        detours=tuple([f for f in found if f.kind is ForkKind.DETOUR]),
        statements=statements_of(trials, lanes, left_out),
        left_out=left_out,
    )


def _paths(
    trials: Sequence[TrialPath],
) -> tuple[dict[tuple[str, ...], list[TrialPath]], tuple[str, ...]]:
    """The distinct paths in an order of their own, each with its trials."""
    found: dict[tuple[str, ...], list[TrialPath]] = defaultdict(list)
    for trial in sorted(trials, key=lambda one: one.trial_id):
        found[tuple([point.key for point in trial.points[:MOST_POINTS]])].append(trial)
    most = sorted(found, key=lambda path: (-len(found[path]), path))
    left_out = [trial.trial_id for path in most[MOST_PATHS:] for trial in found[path]]
    kept = {path: found[path] for path in sorted(most[:MOST_PATHS])}
    return kept, tuple(sorted(left_out))


def _numbered(paths: Sequence[tuple[str, ...]]) -> list[tuple[int, ...]]:
    keys = sorted({key for path in paths for key in path})
    numbers = {key: number for number, key in enumerate(keys)}
    return [tuple([numbers[key] for key in path]) for path in paths]


def _lanes(
    trials: Sequence[TrialPath],
    paths: dict[tuple[str, ...], list[TrialPath]],
    laid: Spread,
    root: Group,
) -> tuple[Lane, ...]:
    path_of = {
        trial.trial_id: number
        for number, taken in enumerate(paths.values())
        for trial in taken
    }
    leaves = leaf_numbers(root, len(paths))
    return tuple(
        [
            Lane(
                trial_id=trial.trial_id,
                passed=trial.passed,
                order_uncertain=trial.order_uncertain,
                group=leaves[path_of[trial.trial_id]],
                nodes=tuple(laid.nodes[path_of[trial.trial_id]]),
                steps=tuple([point.step for point in trial.points[:MOST_POINTS]]),
            )
            for trial in trials
            if trial.trial_id in path_of
        ]
    )


def _tracks(
    lanes: Sequence[Lane],
    paths: dict[tuple[str, ...], list[TrialPath]],
    laid: Spread,
    root: Group,
) -> tuple[Track, ...]:
    groups = walked(root)
    number = {id(group): at for at, group in enumerate(groups)}
    above = {id(part): number[id(group)] for group in groups for part in group.parts}
    lane_of = {lane.trial_id: at for at, lane in enumerate(lanes)}
    taken = [[lane_of[trial.trial_id] for trial in held] for held in paths.values()]
    return tuple(
        [
            Track(
                parent=above.get(id(group)),
                trials=tuple(sorted([at for m in group.members for at in taken[m]])),
                born=laid.born[id(group)],
                until=_until(group, laid),
                has_fork=bool(group.parts),
            )
            for group in groups
        ]
    )


def _until(group: Group, laid: Spread) -> int:
    if group.parts:
        return laid.born[id(group.parts[0])]
    lasts = [
        laid.columns[laid.nodes[member][-1]]
        for member in group.members
        if laid.nodes[member]
    ]
    return max([laid.born[id(group)], *lasts])


def _nodes(
    lanes: Sequence[Lane], laid: Spread, by_id: dict[str, TrialPath]
) -> tuple[Node, ...]:
    held: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, lane in enumerate(lanes):
        for at, node in enumerate(lane.nodes):
            held[node].append((number, at))
    found = []
    for node in range(len(laid.columns)):
        number, at = held[node][0]
        point = by_id[lanes[number].trial_id].points[at]
        found.append(
            Node(
                column=laid.columns[node],
                key=point.key,
                label=point.label,
                kind=point.kind,
                tool=point.tool,
                trials=tuple([number for number, _ in held[node]]),
            )
        )
    return tuple(found)


def _writes(fork: Fork) -> bool:
    return any(branch.writes for branch in fork.branches)
