"""How often the search for patterns finds a planted rule, and stays silent without.

Every simulation is seeded by its number. The planted rule is "unstable where the
confidence is 0.4 to under 0.5"; it counts as found only if the strongest rule reported
is about the confidence alone and covers the planted runs and at most a quarter more.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

from apps.engine.nulls import wilson
from apps.engine.patterns import Patterns, Plan, Unit, find_patterns

SIMULATIONS = 200
TASKS = 60
TRIALS = 5
LOW, HIGH = 0.4, 0.5
RATE_INSIDE, RATE_OUTSIDE = 0.8, 0.1
BAD_TASKS, RATE_IN_BAD, RATE_IN_GOOD = 0.25, 0.9, 0.03
PLANTED = "input.confidence"


def _of_task(source: random.Random) -> dict[str, Any]:
    """What all trials of a task share: its input."""
    return {
        "agent": source.choice(["router", "billing", "escalation"]),
        "input.amount": round(source.expovariate(1 / 200), 2),
        "input.urgent": source.random() < 0.3,
        "input.channel": source.choice(["mail", "chat", "phone", None]),
        "input_length": source.randint(20, 4_000),
        "script": source.choice(["Latin", "Latin", "Cyrillic"]),
    }


def _of_run(source: random.Random) -> dict[str, Any]:
    """What differs from trial to trial."""
    return {
        "calls": source.randint(1, 12),
        "errors": min(4, int(source.expovariate(1))),
        "temperature": source.choice([0.0, 0.7, None]),
        "tools": tuple([tool for tool in "abcdef" if source.random() < 0.4]),
        "turn": source.randint(0, 5),
    }


def _spread(source: random.Random, number: int) -> list[float]:
    """Values spread evenly from 0 to 1, in random order."""
    values = [(place + source.random()) / number for place in range(number)]
    source.shuffle(values)
    return values


def planted(seed: int, *, by_run: bool = False) -> list[Unit]:
    """Units with the planted rule; the confidence is that of the task or of the run."""
    source = random.Random(seed)
    values = _spread(source, TASKS * TRIALS if by_run else TASKS)
    units = []
    for task in range(TASKS):
        shared = _of_task(source)
        for trial in range(TRIALS):
            value = values[task * TRIALS + trial if by_run else task]
            rate = RATE_INSIDE if LOW <= value < HIGH else RATE_OUTSIDE
            features = shared | _of_run(source) | {PLANTED: value}
            units.append(_unit((task, trial), features, is_hit=source.random() < rate))
    return units


def planted_by_run(seed: int) -> list[Unit]:
    """The planted rule over a confidence that differs from trial to trial."""
    return planted(seed, by_run=True)


def null(seed: int) -> list[Unit]:
    """Units whose target is drawn for each run alone."""
    source = random.Random(seed)
    units = []
    for task in range(TASKS):
        shared = _of_task(source) | {PLANTED: source.random()}
        for trial in range(TRIALS):
            is_hit = source.random() < 0.25
            units.append(_unit((task, trial), shared | _of_run(source), is_hit=is_hit))
    return units


def clustered_null(seed: int, sizes: tuple[int, ...] = (TRIALS,)) -> list[Unit]:
    """Units of which some tasks hit nearly always and others nearly never."""
    source = random.Random(seed)
    units = []
    for task in range(TASKS):
        shared = _of_task(source) | {PLANTED: source.random()}
        is_bad = source.random() < BAD_TASKS
        rate = RATE_IN_BAD if is_bad else RATE_IN_GOOD
        for trial in range(source.choice(sizes)):
            is_hit = source.random() < rate
            units.append(_unit((task, trial), shared | _of_run(source), is_hit=is_hit))
    return units


def uneven_null(seed: int) -> list[Unit]:
    """The clustered null with tasks of 1 to 20 trials."""
    return clustered_null(seed, (1, 2, 5, 20))


def agents_null(seed: int) -> list[Unit]:
    """Three agents in every task; of some the trials do not agree, whatever they do.

    What an agent is given is the same in all trials of a task, and the target is one of
    all its trials, as for "unstable".
    """
    source = random.Random(seed)
    units = []
    for task in range(TASKS // 2):
        for agent in ("router", "billing", "escalation"):
            shared = _of_task(source) | {PLANTED: source.random(), "agent": agent}
            is_hit = source.random() < BAD_TASKS
            units += [
                Unit(
                    id=f"{task}/{trial}/{agent}",
                    task=str(task),
                    features=shared | _of_run(source),
                    target=is_hit,
                    together=agent,
                )
                for trial in range(TRIALS)
            ]
    return units


def _unit(place: tuple[int, int], features: dict[str, Any], *, is_hit: bool) -> Unit:
    task, trial = place
    return Unit(id=f"{task}/{trial}", task=str(task), features=features, target=is_hit)


def is_found(units: list[Unit], answer: Patterns) -> bool:
    """Whether the strongest rule reported is the planted one."""
    if not answer.findings:
        return False
    first = answer.findings[0]
    wanted = {unit.id for unit in units if LOW <= unit.features[PLANTED] < HIGH}
    covered = set(first.unit_ids)
    names = [one.feature for one in first.conditions]
    return names == [PLANTED] and len(wanted & covered) >= 0.8 * len(wanted | covered)


def is_silent(units: list[Unit], answer: Patterns) -> bool:
    """Whether no rule was reported."""
    return not answer.findings


def share(
    make: Callable[[int], list[Unit]],
    right: Callable[[list[Unit], Patterns], bool],
    seeds: range,
) -> int:
    """In how many simulations the answer is right; each deals with a seed of its own.

    With one seed for all, the same deals would judge every simulation, and how often
    anything is found by chance would vary by more than the interval says.
    """
    number = 0
    for seed in seeds:
        units, plan = make(seed), Plan(seed=seed + 1)
        number += right(units, find_patterns(units, target="unstable", plan=plan))
    return number


PARTS = (
    ("planted, confidence of the task: found", planted, is_found),
    ("planted, confidence of the run: found", planted_by_run, is_found),
    ("null, runs independent: silent", null, is_silent),
    ("null, runs of a task alike: silent", clustered_null, is_silent),
    ("null, alike, tasks of 1 to 20 runs: silent", uneven_null, is_silent),
    ("null, unstable agents of a task: silent", agents_null, is_silent),
)


def at_scale(number: int = 20_000, seed: int = 1) -> tuple[float, Patterns]:
    """CPU seconds of a search over `number` units with 30 features, and its answer."""
    source = random.Random(seed)
    units = []
    for task in range(number // 10):
        shared: dict[str, Any] = {f"a{n}": source.gauss(0, 50) for n in range(8)}
        shared |= {f"b{n}": source.choice("uvwxyz") for n in range(8)}
        for trial in range(10):
            features = shared | {f"c{n}": source.random() for n in range(8)}
            features |= {f"d{n}": source.random() < 0.3 for n in range(6)}
            rate = 0.4 if LOW <= features["c0"] < HIGH else 0.1
            units.append(_unit((task, trial), features, is_hit=source.random() < rate))
    began = time.process_time()
    answer = find_patterns(units, target="unstable")
    return time.process_time() - began, answer


def main() -> None:
    """Print each share with its interval, and the time of a large search."""
    print(
        f"{SIMULATIONS} simulations each, seeds 0 to {SIMULATIONS - 1}; {TASKS} tasks, "
        f"{TRIALS} trials, 12 features\n"
    )
    for label, make, right in PARTS:
        began = time.process_time()
        number = share(make, right, range(SIMULATIONS))
        interval = wilson(number, SIMULATIONS)
        low, high = (0, 1) if interval is None else (interval.low, interval.high)
        print(
            f"  {label:<44} {number:>3} of {SIMULATIONS} = {number / SIMULATIONS:6.1%} "
            f"(95 % {low:.1%} to {high:.1%}), "
            f"{(time.process_time() - began) / SIMULATIONS:.2f} s each",
            flush=True,
        )
    took, answer = at_scale()
    print(
        f"\n20,000 units x 30 features: {took:.1f} s of CPU, {answer.rules:,} rules, "
        f"{answer.shuffles} shuffles\n  {answer.sentence}"
    )
    for finding in answer.findings:
        print(f"  {finding.sentence}")


if __name__ == "__main__":
    sys.exit(main())
