"""How often a decisive fork comes about where the outcomes hang on nothing.

The branches of trials do not depend on how the trials ended. So the known outcomes are
dealt to the trials in every way that keeps how many passed, and each deal is asked
whether any fork or difference would be decisive: the randomisation test of Fisher (The
Design of Experiments, 1935) with the most decisive place of all as its statistic, so
that having looked at several forks is counted. It assumes that, were the forks no
matter, every trial were equally likely to be one of those that passed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from random import Random
from typing import Final

import msgspec

from apps.engine.branching.branches import Branching
from apps.engine.branching.outcomes import ends_apart
from apps.engine.check import percent

MOST_DEALS: Final = 1_000
"""More ways than this are not counted but drawn, with a fixed seed."""

_SEED: Final = 1

Counts = tuple[tuple[int, int], ...]
"""Of each branch with a known outcome: how many passed, and of how many."""


class DecisiveChance(msgspec.Struct, frozen=True):
    """In `hits` of `deals` ways to deal the outcomes some fork would be decisive.

    `is_exact` where every way was counted, else they were drawn at random.
    """

    hits: int
    deals: int
    is_exact: bool

    @property
    def value(self) -> float:
        """The share of the deals, between 0 and 1."""
        return self.hits / self.deals

    @property
    def sentence(self) -> str:
        """What chance alone does here, for people."""
        if self.is_exact:
            said = f"in {self.hits:,} of {self.deals:,} ways"
        else:
            said = f"in about {percent(self.value)} of {self.deals:,} random ways"
        return (
            f"Dealing the same outcomes to these trials at random makes some fork "
            f"decisive {said}."
        )


def decisive_chance(branching: Branching) -> DecisiveChance | None:
    """How often chance alone makes a fork of these trials decisive.

    `None` where there is no fork, or no trial is known to have passed and none to have
    failed: then none can be decisive. Same trials, same answer, in any order.
    """
    known = {
        lane.trial_id: lane.passed
        for lane in branching.lanes
        if lane.passed is not None
    }
    places = {trial: 1 << at for at, trial in enumerate(sorted(known))}
    passed = sum(known.values())
    forks = [
        masks
        for fork in branching.in_order
        if len(masks := _masks([one.trial_ids for one in fork.branches], places)) > 1
    ]
    if not forks or passed in {0, len(known)}:
        return None
    ways = math.comb(len(known), passed)
    is_exact = ways <= MOST_DEALS
    hits = deals = 0
    for dealt in _deals(len(known), passed, is_exact=is_exact):
        deals += 1
        hits += any(_is_decisive(masks, dealt) for masks in forks)
    return DecisiveChance(hits, deals, is_exact)


def _masks(
    branches: Sequence[tuple[str, ...]], places: dict[str, int]
) -> tuple[int, ...]:
    """The trials of known outcome of each branch, as bits."""
    found = [sum(places.get(trial, 0) for trial in trials) for trials in branches]
    return tuple([mask for mask in found if mask])


def _deals(n: int, passed: int, *, is_exact: bool) -> Iterator[int]:
    if is_exact:
        for chosen in combinations(range(n), passed):
            yield sum(1 << at for at in chosen)
        return
    dealer = Random(_SEED)  # noqa: S311 - a simulation, not a secret
    for _ in range(MOST_DEALS):
        yield sum(1 << at for at in dealer.sample(range(n), passed))


def _is_decisive(masks: tuple[int, ...], dealt: int) -> bool:
    counts = tuple([((mask & dealt).bit_count(), mask.bit_count()) for mask in masks])
    return _ends_apart(tuple(sorted(counts)))


@lru_cache(maxsize=65_536)
def _ends_apart(counts: Counts) -> bool:
    return ends_apart(counts).is_decisive
