"""What stands between a run and each of its calls: the rate, the budget, a stop.

Waiting is no time of the run. As long as nothing was paid for, a run that has to wait
is put back and its worker takes another one; after that it waits in its place, for to
begin anew would cost what it has cost so far once more.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

import msgspec
from django.db import connection

from apps.engine.replay.retrying import may_have_been_billed
from apps.engine.replay.run import ErrorKind, ModelCalled, RunError, ToolAnswer
from apps.engine.replay.stubs import StubSession
from apps.engine.trace import Usage
from apps.isolation.hooks import Cancelled, Hooks, NotNow, OverBudget, WorstCase
from apps.pipeline.replay_rates import Rates
from apps.pipeline.replay_watch import Watch
from apps.replays.budget import (
    CapReached,
    Cost,
    NotHeld,
    NotYet,
    Payer,
    Reserved,
    reserve,
    settle,
)
from apps.replays.running import RunClaim
from apps.replays.stopping import note_refused_key, pause_target, stop_batch
from apps.replays.transitions import BatchState

WAITED_IN_PLACE: Final = 2.0
"""A run that would wait longer is put back, in seconds."""
LONGEST_WAIT: Final = 120.0
MOST_PUT_BACK: Final = 10
"""So often a run is put back; then it waits in its place until its target is given up."""
_MOST_TOKENS: Final = 10**9
"""More is no usage of one call: it is taken for not known."""
_PER_PRICE: Final = Decimal(1_000_000)


class Price(msgspec.Struct, frozen=True):
    """What a million tokens cost, input and output."""

    input: Decimal
    output: Decimal

    @classmethod
    def of(cls, value: Mapping[str, str] | None) -> Price | None:
        """The price in a plan, if there is one."""
        if value is None:
            return None
        return cls(Decimal(value["input"]), Decimal(value["output"]))


def used_tokens(usage: Usage) -> tuple[int, int] | None:
    """Input and output tokens of one call, `None` where they are not known.

    Some count reasoning beside the output: the rest is taken for output.
    """
    given, made = usage.input_total, usage.output_total
    if given is None or made is None:
        return None
    made += max(0, (usage.total or 0) - given - made)
    if not min(given, made) >= 0 or given + made > _MOST_TOKENS:
        return None
    return given, made


def cost_of(price: Price | None, given: int, made: int) -> Cost:
    """What so many input and output tokens cost; none cost nothing at any price."""
    if not given and not made:
        return Cost(0, Decimal(0))
    if price is None:
        return Cost(given + made)
    money = (price.input * given + price.output * made) / _PER_PRICE
    return Cost(given + made, money.quantize(Decimal("0.000001")))


class _Held(threading.local):
    """What the call of each thread has reserved."""

    reserved: Reserved | None = None


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How a target may be called, and what it costs; `put_backs` is of the run so far."""

    per_minute: int
    price: Price | None
    rates: Rates
    put_backs: int = 0


class Calls:
    """The calls of one attempt: asks leave for each and settles it.

    Sandboxed code may call its model from several threads at once; each of them ends
    its call before it begins another.
    """

    def __init__(self, claim: RunClaim, watch: Watch, pace: Pace) -> None:
        self._claim = claim
        self._watch = watch
        self._pace = pace
        self._held = _Held()
        self._lock = threading.Lock()
        self._thread = threading.get_ident()
        self._has_paid = False
        self._random = random.Random(f"{claim.run_id}:{claim.attempt}")  # noqa: S311
        self.count = 0
        self.last_error: RunError | None = None

    def hooks(self) -> Hooks:
        """What a driver calls on the way."""
        return Hooks(
            before_call=self.before_call,
            after_call=self.after_call,
            wait=self.wait,
            stop=self._watch.stop,
            clock_ns=time.time_ns,
            random=self._random,
        )

    def before_call(self, worst: WorstCase) -> None:
        """Wait for the turn to call, and reserve what the call costs at worst.

        Raises `NotNow`, `OverBudget` or `Cancelled`.
        """
        with self._own_connection():
            self._ask_leave(worst)
        with self._lock:
            self.count += 1

    @contextmanager
    def _own_connection(self) -> Iterator[None]:
        """Leave no connection to the database behind in a thread that soon ends."""
        try:
            yield
        finally:
            if threading.get_ident() != self._thread:
                connection.close()

    def _ask_leave(self, worst: WorstCase) -> None:
        self._take_turn()
        cost = cost_of(self._pace.price, worst.input_tokens or 0, worst.output_tokens)
        if worst.input_tokens is None:
            # What is not known has no worst case, and so no price.
            cost = Cost(cost.tokens)
        while self._held.reserved is None:
            try:
                self._held.reserved = reserve(self._payer(), cost)
            except NotYet as later:
                self.wait(later.seconds)
            except CapReached as reached:
                # Before this run ends: it may be the last one.
                stop_batch(batch_id=self._claim.batch_id, sentence=str(reached))
                raise OverBudget(str(reached)) from None
            except NotHeld:
                raise Cancelled(self._why_stopped()) from None

    def _payer(self) -> Payer:
        claim = self._claim
        return Payer(claim.batch_id, claim.project_id, claim.run_id, claim.attempt)

    def _take_turn(self) -> None:
        pace, is_taken = self._pace, False
        while not is_taken:
            if self._watch.stop():
                raise Cancelled(self._why_stopped())
            most = WAITED_IN_PLACE if self._may_be_put_back() else LONGEST_WAIT
            is_taken, seconds = pace.rates.take(
                self._claim.target_id, per_minute=pace.per_minute, most=most
            )
            if seconds:
                self.wait(seconds)

    def _may_be_put_back(self) -> bool:
        return not self._has_paid and self._pace.put_backs < MOST_PUT_BACK

    def _why_stopped(self) -> str:
        return "The batch was stopped while this run was at work."

    def wait(self, seconds: float) -> None:
        """Wait in place, or raise `NotNow` for what is long; raises `Cancelled`."""
        if seconds > WAITED_IN_PLACE and self._may_be_put_back():
            raise NotNow(seconds)
        if self._watch.wait(min(seconds, LONGEST_WAIT)):
            raise Cancelled(self._why_stopped())

    def after_call(self, event: ModelCalled) -> None:
        """Settle a call that was made, well or not; a busy target is left alone by all."""
        # Only ever set: an agent may call from several threads, and a call that cost
        # nothing must not take back what another one has just noted.
        if may_have_been_billed(event):
            self._has_paid = True
        self.last_error = event.error
        with self._own_connection():
            self._settle(self._used(event))
            if event.error is not None:
                self._heed(event.error)

    def _used(self, event: ModelCalled) -> Cost | None:
        if not may_have_been_billed(event):
            return Cost(0, Decimal(0))
        used = used_tokens(event.usage)
        return None if used is None else cost_of(self._pace.price, *used)

    def _settle(self, used: Cost | None) -> None:
        reserved, self._held.reserved = self._held.reserved, None
        if reserved is None:
            return
        try:
            settle(reserved, used)
        except NotHeld:
            self._watch.lose()

    def _heed(self, error: RunError) -> None:
        claim = self._claim
        if error.kind is ErrorKind.NOT_ALLOWED:
            note_refused_key(target_id=claim.target_id)
            stop_batch(
                batch_id=claim.batch_id,
                sentence=error.sentence,
                state=BatchState.CANCELLED,
            )
        elif error.kind is ErrorKind.RATE_LIMITED or error.retry_after is not None:
            asked = min(
                1.0 if error.retry_after is None else error.retry_after, LONGEST_WAIT
            )
            jitter = self._random.uniform(0, max(0.1, asked / 10))
            pause_target(target_id=claim.target_id, seconds=asked + jitter)


class Answers:
    """Answers the tool calls of one run; safe from several threads."""

    def __init__(self, session: StubSession) -> None:
        self.session = session
        self._lock = threading.Lock()

    def __call__(self, tool: str, arguments: Any) -> ToolAnswer:
        """What the stub answers to one call."""
        with self._lock:
            return self.session.answer(tool, arguments)


Answer = Callable[[str, Any], ToolAnswer]
