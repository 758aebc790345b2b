"""Runs of memory tests: one trial each, driven over a target of any kind.

Endpoints and agents elsewhere are talked with turn by turn, stateful callables in one
process; a command is run anew for each turn, with what was said so far and its state.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import msgspec

from apps.engine.memory_tests import (
    Heard,
    MemoryTest,
    NotOffered,
    PlannedTrial,
    TrialRecord,
    acts_of,
    decoded_memory_test,
    is_untried,
    planned_trial,
    probed_in,
    run_trial,
)
from apps.engine.memory_tests.judging import Recollection
from apps.engine.replay.case import Case
from apps.engine.replay.run import Ran
from apps.isolation.asked_turns import AskedTurns
from apps.pipeline.replay_drivers import DRIVERS, TALKS
from apps.pipeline.replay_orders import CannotRun, Drive, Equipment, Order


def run_memory(order: Order, equipment: Equipment) -> tuple[Ran, dict[str, Any]]:
    """What happened in one trial, and what it shows. Raises `CannotRun`."""
    test, trial = _trial_of(order)
    talk = TALKS.get(order.kind, talk_by_runs)
    try:
        ran, record = talk(order, equipment, partial(run_trial, trial))
    except NotOffered as error:
        raise CannotRun(str(error)) from None
    return ran, judged(test, record or _unbegun(trial, ran))


def judged_unbegun(order: Order, ran: Ran) -> dict[str, Any] | None:
    """What a trial shows that ended before anybody talked: each fact has no answer.

    So it stays in the denominator. `None` where no trial can be told from the order.
    """
    try:
        test, trial = _trial_of(order)
    except (CannotRun, ValueError):
        return None
    return judged(test, _unbegun(trial, ran))


def _unbegun(trial: PlannedTrial, ran: Ran) -> TrialRecord:
    first, *_ = acts_of(trial)
    return TrialRecord(trial=trial, heard=(Heard(act=first, error=ran.error),))


def _trial_of(order: Order) -> tuple[MemoryTest, PlannedTrial]:
    """The test, and the trial of this depth and repeat."""
    if order.plan.memory is None or order.depth is None:
        raise CannotRun("This run belongs to no memory test.")
    test = decoded_memory_test(order.plan.memory)
    try:
        return test, planned_trial(test, depth=order.depth, repeat=order.number)
    except ValueError as error:
        raise CannotRun(str(error)) from None


def judged(test: MemoryTest, record: TrialRecord) -> dict[str, Any]:
    """What a trial shows of each fact, as it is kept with its run."""
    probed = probed_in(test, record)
    counts = Counter(one.recollection for one in probed)
    return {
        "recalled": counts[Recollection.RECALLED],
        "lost": counts[Recollection.LOST],
        "contradicted": counts[Recollection.CONTRADICTED],
        "unclear": counts[Recollection.AMBIGUOUS] + counts[Recollection.FAILED],
        "probed": msgspec.to_builtins(probed),
        "is_untried": is_untried(record),
    }


def talk_by_runs(
    order: Order, equipment: Equipment, drive: Drive
) -> tuple[Ran, TrialRecord]:
    """Talk with a target that is run anew for each turn, with what was said so far."""

    def ask(case: Case) -> Ran:
        asked = msgspec.structs.replace(order, case=case)
        return DRIVERS[order.kind](asked, equipment)

    turns = AskedTurns(order.case, ask)
    record: TrialRecord = drive(turns.as_agent())
    return turns.ran(record), record
