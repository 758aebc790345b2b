"""How often a planted fork is found, and how often noise alone looks like one.

The trials are made (`planted_forks.py`): the truth is known, but real agents make
noise of other kinds too. Steps that are left out, swapped or put in another order are
not simulated.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

from apps.engine.branching import Fork, branching_of
from apps.engine.check import percent
from apps.engine.nulls.intervals import wilson
from tests.benchmarks.planted_forks import (
    Planted,
    first_difference,
    is_found,
    is_near,
    path_of,
    planted,
)

CASES = 200
NOISE = (0.0, 0.05, 0.1, 0.2, 0.3)
SIZES = ((4, 50), (20, 200), (50, 1_000))


def rate(hits: int, of: int) -> str:
    """`197 of 200 (98.5 %, 95 % interval 95.7 % to 99.5 %)`."""
    interval = wilson(hits, of)
    if interval is None:
        return "0 of 0"
    low, high = percent(interval.low), percent(interval.high)
    return f"{hits} of {of} ({percent(hits / of)}, 95 % interval {low} to {high})"


def with_fork(noise: float, cases: int) -> Iterator[str]:
    """Yield the lines about trials with a planted fork."""
    made = [planted(seed, noise=noise) for seed in range(cases)]
    found = [branching_of(case.trials) for case in made]
    pairs = list(zip(found, made, strict=True))
    hits = sum(is_found(one, case) for one, case in pairs)
    ways = sum(_ways_are_right(one.first_fork, case) for one, case in pairs)
    naive = sum(is_near(first_difference(case), case) for case in made)
    yield f"  within one step in every trial      {rate(hits, cases)}"
    yield f"  the branches are the planted ones   {rate(ways, cases)}"
    yield f"  naive first difference, most trials {rate(naive, cases)}"


def _ways_are_right(fork: Fork | None, case: Planted) -> bool:
    branches = () if fork is None else fork.branches
    return {frozenset(branch.trial_ids) for branch in branches} == case.branches


def without_fork(noise: float, cases: int) -> Iterator[str]:
    """Yield the lines about trials that differ by noise alone."""
    made = [
        planted(seed, noise=noise, has_fork=False) for seed in range(cases, 2 * cases)
    ]
    kinds = [{fork.kind for fork in branching_of(case.trials).forks} for case in made]
    parted = sum("parted" in one for one in kinds)
    ended = sum(bool(one) for one in kinds) - parted
    yield f"  no fork planted, trials part        {rate(parted, cases)}"
    yield f"  no fork planted, some only end      {rate(ended, cases)}"


def timed(sizes: Sequence[tuple[int, int]] = SIZES) -> Iterator[str]:
    """Yield how long trials of each size take, all different and much alike."""
    for count, length in sizes:
        for words in (2 * length, 20):
            trials = [
                path_of(
                    f"t{at}",
                    [f"s{(n * (1 + at % 3)) % words}" for n in range(length - at % 7)],
                )
                for at in range(count)
            ]
            begin = time.process_time()
            branching_of(trials)
            spent = time.process_time() - begin
            yield f"  {count} trials x {length} steps of {words} kinds: {spent:.2f} s"


def main() -> int:
    """Print the rates at each level of noise, then the times."""
    for noise in NOISE:
        print(f"Noise after {percent(noise)} of the steps")
        for line in (*with_fork(noise, CASES), *without_fork(noise, CASES)):
            print(line)
    print("CPU seconds of an alignment with all its forks")
    for line in timed():
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
