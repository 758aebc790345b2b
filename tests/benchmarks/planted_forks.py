"""Made trials with a fork that was planted, or with none: the truth of a benchmark.

Same seed, same trials. A plan is a trunk of steps that all trials take, then branches.
Each trial takes its plan with noise: a step may be retried or doubled, and a lookup
may come in between, out of a few that all trials draw from, on every branch. Nothing
is left out and nothing is swapped: the planted fork is the only true one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from apps.engine.branching import Branching, Point, PointKind, TrialPath
from apps.engine.branching.points import key_of

LOOKUPS = 15
ECHO = 0.1


@dataclass(frozen=True)
class Planted:
    """Trials and the truth about them.

    `truth` is, for each trial, the index of its first point that belongs to its branch
    by plan; `branches` are the trial ids of each. Both are empty without a fork.
    """

    trials: tuple[TrialPath, ...]
    truth: dict[str, int]
    branches: frozenset[frozenset[str]]


def point_of(name: str, at: int = 0) -> Point:
    """A point that is compared by its name."""
    return Point(key_of(name), name, PointKind.CALLS, at, tool=name)


def path_of(
    trial_id: str, names: Sequence[str], *, passed: bool | None = None
) -> TrialPath:
    """A trial that made these decisions one after another."""
    points = tuple([point_of(name, at) for at, name in enumerate(names)])
    return TrialPath(trial_id, points, passed)


def planted(seed: int, *, noise: float, has_fork: bool = True) -> Planted:
    """4 to 20 trials with a trunk of 2 to 30 steps; with a fork, 2 or 3 branches.

    A branch has 1 trial or more and 3 to 30 steps of its own, of which a tenth are
    steps that the other branches can hold too. `noise` is the share of steps after
    which something is added.
    """
    source = random.Random(seed)
    trunk = _steps(source, "trunk", source.randint(2, 30), repeats=0.1)
    count = source.randint(4, 20)
    owners = _owners(source, count) if has_fork else [0] * count
    tails: list[list[str]] = [[] for _ in range(max(owners) + 1)]
    if has_fork:
        for number, tail in enumerate(tails):
            tail += _steps(source, f"branch {number}", source.randint(3, 30))
    trials, truth = [], {}
    for number, owner in enumerate(owners):
        names, start = _noisy(source, trunk, tails[owner], noise)
        trial = path_of(f"t{number:02}", names, passed=owner == 0)
        trials.append(trial)
        if has_fork:
            truth[trial.trial_id] = start
    ids = [trial.trial_id for trial in trials]
    branches = frozenset(
        frozenset(one for one, owner in zip(ids, owners, strict=True) if owner == way)
        for way in set(owners)
    )
    return Planted(tuple(trials), truth, branches if has_fork else frozenset())


def _owners(source: random.Random, count: int) -> list[int]:
    ways = source.choice([2, 2, 2, 3])
    owners = list(range(ways))
    owners += [source.randrange(ways) for _ in range(count - ways)]
    if source.random() < 0.3:
        # One trial alone against all others.
        owners = [0] * (count - 1) + [1]
    source.shuffle(owners)
    return owners


def _steps(
    source: random.Random, name: str, count: int, *, repeats: float = 0.0
) -> list[str]:
    steps: list[str] = []
    for at in range(count):
        if steps and source.random() < repeats:
            steps.append(source.choice(steps))
        elif name != "trunk" and at and source.random() < ECHO:
            # The first step of a branch is its own: there is the truth.
            steps.append(f"echo {source.randrange(10)}")
        else:
            steps.append(f"{name}, step {at}")
    return steps


def _noisy(
    source: random.Random, trunk: list[str], tail: list[str], noise: float
) -> tuple[list[str], int]:
    names: list[str] = []
    start = 0
    for at, step in enumerate([*trunk, *tail]):
        if at == len(trunk):
            start = len(names)
        names.append(step)
        if source.random() < noise:
            names += _added(source, step)
    return names, start


def _added(source: random.Random, step: str) -> list[str]:
    lookups = [f"lookup {source.randrange(LOOKUPS)}" for _ in range(3)]
    kind = source.choice(["retry", "lookup", "lookup", "doubled"])
    if kind == "retry":
        return [step] * source.randint(1, 3)
    if kind == "lookup":
        return lookups[: source.randint(1, 3)]
    return [lookups[0], step]


def is_found(found: Branching, case: Planted) -> bool:
    """Whether the first fork lies within one step of the truth in every trial."""
    fork = found.first_fork
    if fork is None or {place.trial_id for place in fork.places} != set(case.truth):
        return False
    return all(
        place.point is not None and abs(place.point - case.truth[place.trial_id]) <= 1
        for place in fork.places
    )


def first_difference(case: Planted) -> int:
    """The first index at which not all trials have the same: the naive fork.

    The shortest length where one trial is the beginning of all others.
    """
    keys = [[point.key for point in trial.points] for trial in case.trials]
    shortest = min(len(one) for one in keys)
    for at in range(shortest):
        if len({one[at] for one in keys}) > 1:
            return at
    return shortest


def is_near(index: int, case: Planted) -> bool:
    """Whether an index lies within one step of the truth in most trials.

    One index cannot fit trials with different noise, so most are enough for it.
    """
    near = sum(abs(index - truth) <= 1 for truth in case.truth.values())
    return 2 * near > len(case.truth)
