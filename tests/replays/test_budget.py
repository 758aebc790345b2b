"""A batch never passes its caps, however many workers call at the same time."""

from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.models import F, Sum
from django.db.models.functions import Now

from apps.replays.budget import (
    CapReached,
    Cost,
    NotHeld,
    NotYet,
    Payer,
    reserve,
    settle,
)
from apps.replays.models import Batch, DaySpending, Run, RunAttempt
from apps.replays.planning import Caps
from apps.replays.running import claim_run
from apps.replays.stopping import pause_target, stop_batch
from tests.at_once import at_once
from tests.factories import make_project
from tests.replays.rows import make_agent, make_batch, make_case, make_target
from tests.soak import times

THREADS = 16
TRIES = times(40, soak=400)
CAPS = {"max_calls": 5, "max_tokens": 1_050, "max_money": Decimal("0.55")}


@pytest.fixture
def agent(transactional_db):
    return make_agent(make_project(name="Small purse"))


def payers(agent, caps: Caps, *, count: int = 1) -> list[Payer]:
    """So many claimed runs of one batch with these caps."""
    target = make_target(agent, f"Model {count}", concurrency=20)
    batch = make_batch(target, make_case(agent), repeats=count, caps=caps)
    Batch.objects.filter(pk=batch.pk).update(started_at=Now())
    claims = [claim_run(lease_seconds=600) for _ in range(count)]
    return [
        Payer(one.batch_id, one.project_id, one.run_id, one.attempt) for one in claims
    ]


def row(payer: Payer) -> Batch:
    return Batch.objects.get(pk=payer.batch_id)


class Tries:
    """A hundred tries, one after another, of sixteen workers with one cap each time."""

    def __init__(self, everyone: list[Payer]) -> None:
        self.everyone = everyone
        self.number = -1
        self.found: list[object] = []
        self.barrier = threading.Barrier(len(everyone), action=self.next)

    def next(self) -> None:
        """Look at what the last try came to, and begin the next one."""
        if self.number >= 0:
            self.look()
        self.number += 1
        self.found = []
        name = list(CAPS)[self.number % len(CAPS)]
        Batch.objects.update(
            **{one: CAPS[one] if one == name else None for one in CAPS},
            spent_calls=0, spent_tokens=0, spent_money=0,
        )  # fmt: skip

    def look(self) -> None:
        batch = row(self.everyone[0])
        assert (
            batch.reserved_calls == batch.reserved_tokens == batch.reserved_money == 0
        )
        assert batch.spent_calls == self.found.count("paid") > 0
        assert batch.max_calls is None or batch.spent_calls <= batch.max_calls
        assert batch.max_tokens is None or batch.spent_tokens <= batch.max_tokens
        assert batch.max_money is None or batch.spent_money <= batch.max_money
        refused = [one for one in self.found if one != "paid"]
        assert len(self.found) == THREADS
        assert all(isinstance(one, CapReached | NotYet) for one in refused), refused

    def work(self, payer: Payer) -> None:
        for _ in range(TRIES):
            self.barrier.wait()
            try:
                held = reserve(payer, Cost(200, Decimal("0.1")))
                # Some use less than they reserved, one in four tells nothing.
                used = Cost(150, Decimal("0.08")) if payer.run_id % 4 else None
                settle(held, used)
                self.found.append("paid")
            except Exception as error:  # noqa: BLE001
                self.found.append(error)
        self.barrier.wait()


def test_sixteen_workers_never_pass_a_cap_in_many_tries(agent):
    tries = Tries(payers(agent, Caps(), count=THREADS))
    ended = at_once(*(lambda one=one: tries.work(one) for one in tries.everyone))
    assert ended == [None] * THREADS
    assert tries.number == TRIES
    assert not Batch.objects.get().is_money_known
    day = DaySpending.objects.get()
    attempts = RunAttempt.objects.aggregate(
        calls=Sum("calls"), money=Sum("spent_money")
    )
    assert (day.calls, day.money) == (attempts["calls"], attempts["money"])


@pytest.mark.parametrize(
    ("caps", "cost", "said"),
    [
        (Caps(calls=1), Cost(5), "cap of 1 calls is reached"),
        (
            Caps(tokens=9),
            Cost(5, Decimal(1)),
            "cap of 9 tokens is reached: 5 are spent",
        ),
        (
            Caps(money=Decimal("1.5")),
            Cost(5, Decimal(1)),
            "cap of 1.5 is reached: 1 is",
        ),
        (Caps(seconds=60), Cost(5), "cap of 60 seconds is reached"),
    ],
)
def test_a_cap_that_is_reached_is_named(agent, caps, cost, said):
    [payer] = payers(agent, caps)
    settle(reserve(payer, cost), cost)
    if caps.seconds:
        reserve(payer, cost)
        Batch.objects.update(started_at=F("started_at") - timedelta(seconds=61))
    with pytest.raises(CapReached, match=said):
        reserve(payer, cost)


def test_a_cap_on_money_allows_no_call_whose_price_is_not_known(agent):
    [payer] = payers(agent, Caps(money=Decimal(5)))
    with pytest.raises(CapReached, match="EVALSITE_REPLAY_PRICES"):
        reserve(payer, Cost(5))
    assert row(payer).reserved_calls == 0


def test_what_others_have_reserved_is_waited_for(agent):
    first, second = payers(agent, Caps(tokens=100), count=2)
    held = reserve(first, Cost(80))
    with pytest.raises(NotYet):
        reserve(second, Cost(80))
    settle(held, Cost(10))
    reserve(second, Cost(80))


def test_a_usage_that_is_not_known_keeps_the_worst_as_spent(agent):
    [payer] = payers(agent, Caps())
    settle(reserve(payer, Cost(100, Decimal("0.5"))), None)
    batch = row(payer)
    assert (batch.spent_tokens, batch.spent_money) == (100, Decimal("0.5"))
    assert not batch.is_money_known
    assert (batch.reserved_calls, batch.reserved_tokens, batch.spent_calls) == (0, 0, 1)


def test_a_price_that_is_not_known_is_said(agent):
    [payer] = payers(agent, Caps())
    settle(reserve(payer, Cost(100)), Cost(60))
    assert (row(payer).spent_tokens, row(payer).is_money_known) == (60, False)


def test_no_call_is_made_for_a_batch_that_stopped_nor_by_a_worker_taken_for_dead(agent):
    first, second = payers(agent, Caps(), count=2)
    held = reserve(first, Cost(7, Decimal("0.25")))
    Run.objects.filter(pk=first.run_id).update(lease_until=Now() - timedelta(seconds=1))
    claim = claim_run(lease_seconds=60)
    assert claim.run_id == first.run_id
    run = Run.objects.get(pk=first.run_id)
    assert run.is_billed_twice
    with pytest.raises(NotHeld):
        settle(held, Cost(3))
    with pytest.raises(NotHeld):
        reserve(first, Cost(3))
    batch = row(first)
    assert (batch.reserved_calls, batch.spent_calls, batch.spent_tokens) == (0, 1, 7)
    assert not batch.is_money_known
    stop_batch(batch_id=batch.pk, sentence="Enough.")
    with pytest.raises(NotHeld):
        reserve(second, Cost(3))


def test_a_target_that_asked_to_wait_is_called_by_nobody(agent):
    [payer] = payers(agent, Caps())
    target = row(payer).target_version.target_id
    pause_target(target_id=target, seconds=30)
    pause_target(target_id=target, seconds=5)
    with pytest.raises(NotYet) as later:
        reserve(payer, Cost(3))
    assert 25 < later.value.seconds <= 30


def test_a_project_has_a_cap_for_each_day(agent, settings):
    settings.REPLAY_MAX_CALLS_PER_DAY, settings.REPLAY_MAX_MONEY_PER_DAY = 2, 1.0
    [payer] = payers(agent, Caps())
    settle(reserve(payer, Cost(1, Decimal("0.9"))), Cost(1, Decimal("0.1")))
    with pytest.raises(CapReached, match="one day"):
        reserve(payer, Cost(1, Decimal("0.95")))
    reserve(payer, Cost(1, Decimal("0.9")))
    with pytest.raises(CapReached, match="2 calls or 1"):
        reserve(payer, Cost(1, Decimal(0)))
    # A cap of 0 is none.
    settings.REPLAY_MAX_CALLS_PER_DAY = settings.REPLAY_MAX_MONEY_PER_DAY = 0
    reserve(payer, Cost(1, Decimal(50)))
    assert DaySpending.objects.get().calls == 3
