"""What chance alone gives: the targets of whole tasks, dealt to other tasks.

The null model: which targets a task has does not depend on its features, and within a
task it does not matter which run has which. Targets of one task stay together, because
its trials are not independent, and so do those of units that say they are together.
Tasks are dealt among those of about the same number of runs. Nothing is assumed about
how strongly the runs of a task agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, groupby
from random import Random
from typing import Final, TypeVar

from apps.engine.patterns.units import Unit

_FEWEST_TASKS: Final = 20
"""Tasks are dealt among at least this many, and among all of the same size."""

_LISTED: Final = 512
T = TypeVar("T")


class _Task:
    """The targets of each group of a task as texts, "1" where one holds."""

    def __init__(self, runs: list[str]) -> None:
        self.runs = runs
        self.targets = "".join(runs)
        self.is_uniform = len(set(self.targets)) == 1
        self.is_flat = len(runs) == len(self.targets)


class Shuffles:
    """Random deals of the targets; the same seed gives the same ones."""

    def __init__(self, units: Sequence[Unit], seed: int) -> None:
        """For units that come sorted by task and by what is together."""
        self._tasks = [
            _task(list(members)) for _, members in groupby(units, lambda u: u.task)
        ]
        self._pools = _pools(self._tasks)
        self._random = Random(seed)  # noqa: S311 - a simulation, not a secret

    def drawn(self) -> int:
        """The set of units that have the target in one more deal."""
        parts = [""] * len(self._tasks)
        for pool in self._pools:
            givers = pool.copy()
            self._random.shuffle(givers)
            for taker, giver in zip(pool, givers, strict=True):
                parts[taker] = self._dealt(self._tasks[taker], self._tasks[giver])
        return int("".join(parts) or "0", 2)

    def _dealt(self, taker: _Task, giver: _Task) -> str:
        """The targets of one task in the shape of another.

        A longer one takes everything as often as it fits, and some of it once more.
        """
        held = giver.targets
        if giver.is_uniform:
            return held[0] * len(taker.targets)
        if taker.is_flat and giver.is_flat:
            return self._mixed(held, len(taker.targets))
        runs = self._stretched(giver.runs, len(taker.runs))
        pairs = zip(taker.runs, runs, strict=True)
        return "".join([self._mixed(given, len(wanted)) for wanted, given in pairs])

    def _mixed(self, held: str, size: int) -> str:
        if len(held) == size and (orders := _orders(size, held.count("1"))):
            return orders[int(self._random.random() * len(orders))]
        return "".join(self._stretched(held, size))

    def _stretched(self, items: Sequence[T], size: int) -> list[T]:
        if len(items) == 1:
            return [items[0]] * size
        times, more = divmod(size, len(items))
        found = [*items] * times
        found += self._random.sample(items, more)
        self._random.shuffle(found)
        return found


def _task(units: list[Unit]) -> _Task:
    """The groups of one task; a unit that is with no other stands alone."""
    runs: list[str] = []
    for name, members in groupby(units, lambda unit: unit.together):
        text = "".join(["1" if unit.target else "0" for unit in members])
        runs.extend([text] if name else text)
    return _Task(runs)


@lru_cache(maxsize=1_024)
def _orders(size: int, ones: int) -> tuple[str, ...]:
    """Every text of `size` marks with this many "1"; none where they are too many."""
    if math.comb(size, ones) > _LISTED:
        return ()
    return tuple(
        [
            "".join(["1" if place in chosen else "0" for place in range(size)])
            for chosen in map(set, combinations(range(size), ones))
        ]
    )


def _pools(tasks: list[_Task]) -> list[list[int]]:
    """The places of tasks that are dealt among each other, by their size."""
    sizes = [len(task.targets) for task in tasks]
    order = sorted(range(len(tasks)), key=sizes.__getitem__)
    pools: list[list[int]] = []
    for _, members in groupby(order, sizes.__getitem__):
        if pools and len(pools[-1]) < _FEWEST_TASKS:
            pools[-1].extend(members)
        else:
            pools.append(list(members))
    if len(pools) > 1 and len(pools[-1]) < _FEWEST_TASKS:
        last = pools.pop()
        pools[-1].extend(last)
    return pools
