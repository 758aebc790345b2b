"""Branches of a fork with how their trials ended, and whether the fork decides.

Whether branches end differently is an observation on the trials at hand. It does not
say that the step was the cause, and the p holds for one fork looked at, not for the
best of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from apps.engine.check import percent
from apps.engine.nulls.association import fisher_exact
from apps.engine.nulls.intervals import Interval, wilson

DECISIVE_P: Final = 0.05
ENDED: Final = "ended here"
UNDECIDED: Final = "decided nothing"
_SHORT: Final = 70


class ForkKind(StrEnum):
    """What trials do at a place where they are not all the same."""

    PARTED = "parted"
    ENDED = "ended"
    DIFFERENCE = "difference"
    DETOUR = "detour"


class Branch(msgspec.Struct, frozen=True):
    """The trials that go one way. `label` is the first point that most of them share.

    `passed` of `known` is counted where an outcome is known; `interval` is Wilson's at
    95 %, `None` where none is. `writes` are the labels of the calls that write, as far
    as the names of tools tell, which half of its trials or more make from here on (of a
    difference or detour: within it); 5 at most. `is_end` says that they have no further point,
    `is_straight` that they go on without what the others do, and `is_various` that no
    point is shared by half of them, so that the label is that of one trial.
    """

    key: str
    label: str
    tool: str
    trial_ids: tuple[str, ...]
    passed: int
    known: int
    interval: Interval | None
    writes: tuple[str, ...] = ()
    is_end: bool = False
    is_straight: bool = False
    is_various: bool = False

    @property
    def n(self) -> int:
        """How many trials take it."""
        return len(self.trial_ids)


class Place(msgspec.Struct, frozen=True):
    """Where one trial is at a fork: `point` counts its points from 0.

    Both are `None` for a trial that has no point there.
    """

    trial_id: str
    point: int | None
    step: int | None


class Fork(msgspec.Struct, frozen=True):
    """A place where trials part (`parted`, `ended`) or differ and come back.

    `after` is the column of what they last shared (-1: nothing), `column` the one in
    which the branches begin. `branches` are sorted by size. `p` is Fisher's exact p of
    the branch that stands out most against the others, times the number of branches
    (Bonferroni) where there are more than two; `None` where fewer than two branches
    have a known outcome or all ended alike. `separates` says that each branch ended
    in one way only and not all in the same. `is_decisive`: it separates, or p is at
    most 5 %.
    """

    kind: ForkKind
    after: int
    column: int
    branches: tuple[Branch, ...]
    places: tuple[Place, ...]
    p: float | None
    separates: bool
    sentence: str

    @property
    def is_decisive(self) -> bool:
        """Whether the branches ended differently."""
        return Ends(self.p, self.separates).is_decisive

    @property
    def is_fork(self) -> bool:
        """Whether trials part here and do not come back."""
        return self.kind in {ForkKind.PARTED, ForkKind.ENDED}

    @property
    def step_of(self) -> dict[str, int | None]:
        """The step of each of its trials here, by trial id."""
        return {place.trial_id: place.step for place in self.places}


def fork_of(
    kind: ForkKind,
    columns: tuple[int, int],
    branches: Sequence[Branch],
    places: Sequence[Place],
) -> Fork:
    """The fork with what its outcomes say. `columns` are `after` and `column`."""
    ordered = tuple(sorted(branches, key=_order))
    ends = ends_apart([(branch.passed, branch.known) for branch in ordered])
    return Fork(
        kind=kind,
        after=columns[0],
        column=columns[1],
        branches=ordered,
        places=tuple(sorted(places, key=lambda place: place.trial_id)),
        p=ends.p,
        separates=ends.separates,
        sentence=_sentence(ordered, ends.p, separates=ends.separates),
    )


def interval_of(passed: int, known: int) -> Interval | None:
    """Wilson's interval at 95 %, `None` for 0 of 0."""
    return wilson(passed, known)


def _order(branch: Branch) -> tuple[int, bool, bool, str, tuple[str, ...]]:
    ends = branch.is_end, branch.is_straight
    return -branch.n, *ends, branch.label, branch.trial_ids


class Ends(msgspec.Struct, frozen=True):
    """Whether branches ended differently: `p` and `separates` as of a `Fork`."""

    p: float | None
    separates: bool

    @property
    def is_decisive(self) -> bool:
        """Whether the branches ended differently."""
        return self.separates or (self.p is not None and self.p <= DECISIVE_P)


def ends_apart(counts: Sequence[tuple[int, int]]) -> Ends:
    """What the outcomes of branches say; of each how many passed, and of how many known.

    Branches of which no outcome is known (of 0) count for nothing.
    """
    known = [(passed, n) for passed, n in counts if n]
    shares = {passed / n for passed, n in known}
    return Ends(_p(known), shares == {0.0, 1.0})


def _p(known: Sequence[tuple[int, int]]) -> float | None:
    total = sum([n for _, n in known])
    passed = sum([passed for passed, _ in known])
    if len(known) < 2 or passed in {0, total}:
        return None
    found = [
        fisher_exact(one, n - one, passed - one, total - n - passed + one)
        for one, n in known
    ]
    times = 1 if len(known) == 2 else len(known)
    return min(1.0, min(found) * times)


def _sentence(branches: Sequence[Branch], p: float | None, *, separates: bool) -> str:
    if not any(branch.known for branch in branches):
        return "No outcome of these trials is known."
    if separates:
        said = ", ".join([_clean(branch) for branch in branches if branch.known])
    else:
        said = ", ".join([_share(branch) for branch in branches])
    return f"{said[:1].upper()}{said[1:]}.{_chance(p, separates=separates)}"


def _chance(p: float | None, *, separates: bool) -> str:
    if p is None:
        return ""
    few = separates and p > DECISIVE_P
    more = ": with so few trials chance alone can do that" if few else ""
    return f" Fisher's exact p is {percent(p)}{more}."


def _clean(branch: Branch) -> str:
    ended = "passed" if branch.passed else "failed"
    if branch.known == 1:
        return f"the one that {_way(branch)} {ended}"
    return f"all {branch.known} that {_way(branch)} {ended}"


def _share(branch: Branch) -> str:
    if not branch.known:
        return f"of the {branch.n} that {_way(branch)} no outcome is known"
    return f"{branch.passed} of {branch.known} that {_way(branch)} passed"


def _way(branch: Branch) -> str:
    if branch.is_end:
        return branch.label
    if branch.is_straight:
        return "went straight on"
    label = branch.label
    short = label if len(label) <= _SHORT else f"{label[: _SHORT - 1]}…"
    return f"went “{short}”"
