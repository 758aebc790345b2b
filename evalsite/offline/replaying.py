"""Runs cases of agents against a target, each so many times under each condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from typing import Final

import msgspec

from apps.engine.replay.case import Case
from apps.engine.replay.estimates import Estimate, estimate
from apps.engine.replay.estimates import TargetSettings as CostSettings
from apps.engine.replay.paraphrases import (
    PARAPHRASES,
    refuse_wordings,
    reworded,
)
from apps.engine.replay.prices import PriceTable
from apps.engine.replay.regimes import RegimesAsked, applicable, regimes_of
from apps.engine.replay.run import Ending, Ran, Regime, RegimeKind
from apps.engine.trials.project import UNNAMED
from evalsite.offline.replay_budget import OfflineCaps, Purse, Spent
from evalsite.offline.replay_driving import Drivers, OneRun
from evalsite.offline.replay_stub_server import stub_server
from evalsite.offline.replay_target import CannotReplay, OfflineTarget

MOST_REPEATS: Final = 100
MOST_RUNS: Final = 10_000
HOTTEST: Final = 2.0
NOT_EXECUTED: Final = frozenset({Ending.CANCELLED, Ending.OVER_BUDGET})


class OfflinePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is run how often, and what it may cost at most."""

    cases: tuple[Case, ...]
    regimes: tuple[Regime, ...] = (Regime(),)
    wordings: tuple[str, ...] = ()
    repeats: int = 5
    seed: int = 0
    caps: OfflineCaps = OfflineCaps()
    prices: PriceTable = PriceTable()


class PlannedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One case in one regime. `case` is as the agent is given it."""

    number: int
    frozen: Case
    case: Case
    regime: Regime


class DoneRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run and what came of it."""

    group: PlannedGroup
    number: int
    seed: int
    ran: Ran

    @property
    def was_executed(self) -> bool:
        """Whether it was run to an end of its own, so that it counts."""
        return self.ran.ending not in NOT_EXECUTED


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that came of one call; runs by group and number."""

    groups: tuple[PlannedGroup, ...]
    runs: tuple[DoneRun, ...]
    spent: Spent
    stopped: str = ""


def regimes_in(words: Sequence[str], wordings: Sequence[str]) -> tuple[Regime, ...]:
    """The regimes of the words of a call: 0, own, a temperature, a paraphrase.

    Wordings of one's own are regimes too. Raises `CannotReplay`.
    """
    known = {one.slug for one in PARAPHRASES}
    sampling: list[float | None] = []
    slugs: list[str] = []
    for word in words:
        if word in known:
            slugs.append(word)
        elif word != "0":
            sampling.append(_temperature(word, known))
    try:
        refuse_wordings(wordings)
    except ValueError as error:
        raise CannotReplay(f"--wording: {error}") from None
    asked = RegimesAsked(
        determinism="0" in words or not (words or wordings),
        sampling=tuple(sampling),
        paraphrases=tuple(slugs),
        declared=tuple(wordings),
    )
    return regimes_of(asked)


def _temperature(word: str, known: set[str]) -> float | None:
    if word == "own":
        return None
    try:
        value = msgspec.json.decode(word, type=float)
    except (msgspec.DecodeError, UnicodeEncodeError):
        value = -1.0
    if not 0 < value <= HOTTEST:
        raise CannotReplay(
            f"--regime {word}: say 0, own, a temperature up to {HOTTEST:g}, or one of "
            f"{', '.join(sorted(known))}."
        )
    return value


def groups_of(plan: OfflinePlan) -> tuple[tuple[PlannedGroup, ...], tuple[str, ...]]:
    """The groups of a plan, and a sentence for each that is left out.

    Raises `CannotReplay` where nothing is left, or too much.
    """
    found: list[PlannedGroup] = []
    left_out: list[str] = []
    for case in plan.cases:
        taken, skipped = applicable(case, plan.regimes, declared=plan.wordings)
        for regime in taken:
            given = case
            if regime.kind is RegimeKind.PARAPHRASE:
                given = reworded(case, regime.paraphrase, declared=plan.wordings)
            found.append(
                PlannedGroup(
                    number=len(found) + 1, frozen=case, case=given, regime=regime
                )
            )
        left_out += [
            f"{case.name or case.agent or UNNAMED}: {one.reason}" for one in skipped
        ]
    if not found:
        raise CannotReplay("There is nothing to run.", *left_out[:20])
    if len(found) * plan.repeats > MOST_RUNS:
        raise CannotReplay(
            f"That makes {len(found) * plan.repeats:,} runs; at most {MOST_RUNS:,} are "
            "made in one call."
        )
    return tuple(found), tuple(left_out)


def estimate_of(plan: OfflinePlan, target: OfflineTarget) -> Estimate:
    """What the runs of a plan may need."""
    return estimate(
        plan.cases,
        repeats=plan.repeats,
        regimes=plan.regimes,
        settings=CostSettings(
            kind=target.kind,
            model=target.model,
            limits=target.run_limits,
            declared=plan.wordings,
        ),
        prices=plan.prices,
    )


def replayed(
    plan: OfflinePlan,
    target: OfflineTarget,
    *,
    hear: Callable[[DoneRun], None],
) -> Replayed:
    """Run everything; `hear` gets each run as it ends. Raises `CannotReplay`.

    Round by round, so that when a cap ends it something is known of each group.
    """
    groups, _ = groups_of(plan)
    with ExitStack() as stack:
        purse = purse_of(plan, target)
        server = stack.enter_context(stub_server())
        drivers = Drivers(target, purse=purse, server=server)
        pool = stack.enter_context(ThreadPoolExecutor(target.concurrency))
        # Before the pool waits for its threads, also when the command is interrupted.
        stack.callback(purse.stop)
        runs = list(_made(plan, groups, drivers, pool, hear))
    return Replayed(
        groups=groups,
        runs=tuple(sorted(runs, key=lambda one: (one.group.number, one.number))),
        spent=purse.spent,
        stopped=purse.sentence,
    )


def purse_of(plan: OfflinePlan, target: OfflineTarget) -> Purse:
    """What all runs share."""
    price = plan.prices.of(target.model)
    return Purse(plan.caps, price=price, per_minute=target.per_minute)


def _made(
    plan: OfflinePlan,
    groups: Sequence[PlannedGroup],
    drivers: Drivers,
    pool: ThreadPoolExecutor,
    hear: Callable[[DoneRun], None],
) -> Iterator[DoneRun]:
    def run(group: PlannedGroup, number: int) -> DoneRun:
        seed = plan.seed + 1_000 * group.number + number
        order = OneRun(
            case=group.case,
            frozen=group.frozen,
            regime=group.regime,
            number=number,
            seed=seed,
        )
        return DoneRun(group=group, number=number, seed=seed, ran=drivers.run(order))

    rounds: Iterable[tuple[PlannedGroup, int]] = [
        (group, number) for number in range(1, plan.repeats + 1) for group in groups
    ]
    for done in as_completed([pool.submit(run, *one) for one in rounds]):
        found = done.result()
        hear(found)
        yield found
