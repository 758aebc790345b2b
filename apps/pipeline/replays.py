"""Runs replays: claims what waits, runs it alone, writes how it ended; one after another.

The row of a run is the job. A worker that is killed leaves a lease that ends, and its
run is begun anew; one that was executed never is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.db.models import Count

from apps.engine.replay.run import Ending, ErrorKind, Ran
from apps.engine.replay.stub_plan import BadPlan
from apps.isolation.hooks import Cancelled, NotNow, OverBudget
from apps.pipeline.replay_calls import Answers, Calls, Pace, Price
from apps.pipeline.replay_drivers import DRIVERS
from apps.pipeline.replay_endings import (
    Done,
    finish,
    give_up,
    nothing_made,
    postpone,
)
from apps.pipeline.replay_memory import judged_unbegun, run_memory
from apps.pipeline.replay_orders import (
    CannotRun,
    Driver,
    Equipment,
    Order,
    order_of_run,
)
from apps.pipeline.replay_rates import Rates
from apps.pipeline.replay_watch import Watch, watched
from apps.pipeline.waking import wake_on_commit
from apps.replays.models import Batch, Run, RunAttempt
from apps.replays.running import (
    PUT_BACK,
    LostRun,
    RunClaim,
    batch_state,
    claim_run,
    free_runs,
    running_batches,
)
from apps.replays.sealing import CannotSeal
from apps.replays.stopping import stop_if_target_fails, sweep
from apps.replays.targets import secret_for
from apps.replays.transitions import MAX_TRIES, RunState

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]

LONGEST_SECONDS: Final = 20.0
"""One task never keeps a worker for longer than this and one run; it wakes the next one."""
MOST_WOKEN: Final = 16


def run_replays(*, clock: Clock) -> bool:
    """Run what waits, for twenty seconds at most; whether another task should follow.

    Safe to run any number of times and in parallel: the claim decides who runs what.
    """
    end = time.monotonic() + LONGEST_SECONDS
    slow: set[int] = set()
    rates = Rates()
    try:
        while time.monotonic() < end:
            claim = claim_run(lease_seconds=settings.LEASE_SECONDS, without=slow)
            if claim is None:
                return False
            if run_claimed(claim, rates=rates, clock=clock) is RunState.WAITING:
                # Its turn comes later, and so does that of every other run of it.
                slow.add(claim.target_id)
    finally:
        rates.close()
    return True


def run_claimed(claim: RunClaim, *, rates: Rates, clock: Clock) -> RunState | None:
    """Run one claimed run to its end; where it stands then, or None if it was lost."""
    try:
        order = _order_of(claim)
        if order is None:
            return give_up(claim, "What was planned for this run cannot be read.")
        with watched(claim) as watch:
            return _Run(claim, order, watch, clock).run(rates)
    except LostRun:
        logger.warning("Run %s was given to another worker", claim.run_id)
        return None


def _order_of(claim: RunClaim) -> Order | None:
    """What is to be done; `None` where the rows that say so cannot be decoded."""
    try:
        return order_of_run(claim.run_id)
    except Run.DoesNotExist:
        raise LostRun from None
    except (DatabaseError, InterfaceError):
        raise
    except Exception:
        logger.exception("The order of run %s cannot be read", claim.run_id)
        return None


class _Run:
    """One attempt at one claimed run."""

    def __init__(
        self, claim: RunClaim, order: Order, watch: Watch, clock: Clock
    ) -> None:
        self._claim = claim
        self._order = order
        self._watch = watch
        self._clock = clock

    def run(self, rates: Rates) -> RunState:
        """Run it and write how it ended; where it stands then. Raises `LostRun`."""
        claim = self._claim
        if claim.is_hopeless:
            sentence = f"It ended its worker {MAX_TRIES} times and was given up."
            return self._finish(
                Done(ran=nothing_made(Ending.FAILED, ErrorKind.CRASHED, sentence))
            )
        calls = Calls(claim, self._watch, self._pace(rates))
        try:
            ran, judged = self._executed(calls)
        except NotNow as later:
            return postpone(claim, self._order, later, calls=calls)
        if self._watch.is_lost:
            raise LostRun
        done = Done(ran=ran, judged=judged, calls=calls.count)
        if ran.ending is Ending.CANCELLED:
            # What the watch saw may be a second old.
            done = msgspec.structs.replace(done, batch_state=batch_state(claim))
        state = self._finish(done)
        if state in {RunState.FAILED, RunState.TIMED_OUT}:
            stop_if_target_fails(claim.batch_id)
        return state

    def _finish(self, done: Done) -> RunState:
        if self._order.depth is not None and done.judged is None:
            unbegun = judged_unbegun(self._order, done.ran)
            done = msgspec.structs.replace(done, judged=unbegun)
        return finish(self._claim, self._order, done, now=self._clock())

    def _pace(self, rates: Rates) -> Pace:
        put_back = RunAttempt.objects.filter(run_id=self._claim.run_id, ending=PUT_BACK)
        return Pace(
            per_minute=self._order.settings.get("requests_per_minute") or 0,
            price=Price.of(self._order.plan.price),
            rates=rates,
            put_backs=put_back.count(),
        )

    def _executed(self, calls: Calls) -> tuple[Ran, dict[str, Any] | None]:
        """What happened, and what a memory test says of it.

        Whatever breaks in a driver is a failure of ours.
        """
        try:
            return self._driven(calls)
        except (NotNow, LostRun, DatabaseError, InterfaceError):
            raise
        except OverBudget as error:
            ran = nothing_made(Ending.OVER_BUDGET, ErrorKind.BUDGET, str(error))
        except Cancelled as error:
            ran = nothing_made(Ending.CANCELLED, ErrorKind.CANCELLED, str(error))
        except (CannotRun, CannotSeal, BadPlan) as error:
            ran = nothing_made(Ending.FAILED, ErrorKind.OURS, str(error))
        except Exception as error:
            logger.exception("Run %s broke in its driver", self._claim.run_id)
            sentence = (
                f"Evalsite's harness broke on this run ({type(error).__name__}). That "
                "is our fault and says nothing of the agent."
            )
            ran = nothing_made(Ending.FAILED, ErrorKind.OURS, sentence)
        return ran, None

    def _driven(self, calls: Calls) -> tuple[Ran, dict[str, Any] | None]:
        driver, equipment = self._equipped(calls)
        if self._order.depth is not None:
            return run_memory(self._order, equipment)
        return driver(self._order, equipment), None

    def _equipped(self, calls: Calls) -> tuple[Driver, Equipment]:
        """Who runs the target, and with what; raises `CannotRun`."""
        order = self._order
        if order.refusal:
            raise CannotRun(order.refusal)
        driver = DRIVERS.get(order.kind)
        if driver is None:
            raise CannotRun(f"Targets of the kind “{order.kind.value}” run nothing.")
        return driver, Equipment(
            claim=self._claim,
            answer=Answers(order.session()),
            hooks=calls.hooks(),
            secret=self._secret,
        )

    def _secret(self) -> str:
        return secret_for(
            target_id=self._claim.target_id,
            settings=self._order.settings,
            now=self._clock(),
        )


def wake_runs(*, count: int = 1) -> None:
    """Let workers look for runs once the transaction has committed.

    When the broker is away, `wake_replays` does so later.
    """
    for _ in range(min(count, MOST_WOKEN)):
        wake_on_commit("pipeline.run_replays")


def wanted_workers() -> int:
    """How many workers could begin a run now, by the limits of batches; 16 at most.

    Ends before what was left in batches that stopped, or whose time is over.
    """
    sweep()
    free = (
        free_runs()
        .filter(batch__in=running_batches())
        .order_by()
        .values("batch")
        .annotate(count=Count("pk"))
    )
    counts = dict(free.values_list("batch", "count"))
    most = Batch.objects.filter(pk__in=counts).values_list("pk", "concurrency")
    return min(MOST_WOKEN, sum(min(counts[pk], limit) for pk, limit in most))
