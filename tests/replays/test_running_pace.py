"""Batches under caps, rates, refusals and a stop; what is asked of a target and what not."""

from __future__ import annotations

import time
from datetime import timedelta
from decimal import Decimal

import pytest
import zstandard
from django.db.models import F
from django.db.models.functions import Now

from apps.engine.replay.run import ModelCalled
from apps.engine.trace import Usage, UsageState
from apps.isolation.hooks import WorstCase
from apps.pipeline.replay_rates import Rates
from apps.pipeline.replays import wanted_workers
from apps.replays.models import Run, RunAttempt, Target
from apps.replays.planning import Caps
from apps.replays.sealing import set_secret
from apps.replays.stopping import cancel_batch
from tests.factories import NOW
from tests.model_server import model_server
from tests.replays.alone import (
    KEY,
    PRICE,
    assert_whole,
    batch_at,
    case_with_tool,
    drive,
    finished,
    states,
    target_at,
    work,
    workers,
)
from tests.replays.rows import make_target


@pytest.fixture(autouse=True)
def agent(agent_alone):
    return agent_alone


@pytest.fixture
def project(agent):
    return agent.project


class TestCosts:
    def test_ten_workers_make_no_more_calls_than_the_cap(self, agent, settings):
        with model_server(delay=0.02) as server:
            target = target_at(agent, server, settings, concurrency=20)
            batch = batch_at(target, runs=20, caps=Caps(calls=3))
            workers(10)
            assert server.stats.calls == 3
        assert_whole(batch)
        assert (batch.state, batch.stopped_why) == (
            "stopped",
            "The cap of 3 calls is reached.",
        )
        assert states(batch) == {"finished": 3, "over_budget": 17}

    def test_a_cap_on_money_ends_a_run_in_the_middle(self, agent, settings):
        with model_server("tool_loop") as server:
            target = target_at(agent, server, settings)
            batch = batch_at(
                target,
                runs=1,
                cases=[case_with_tool(agent)],
                price=PRICE,
                caps=Caps(money=Decimal(5_000)),
            )
            work()
            assert server.stats.calls > 1
        assert_whole(batch)
        assert states(batch) == {"over_budget": 1}
        assert batch.spent_money <= 5_000
        assert "cap of 5,000 is reached" in batch.stopped_why

    def test_no_more_run_at_a_time_than_the_target_allows(self, agent, settings):
        with model_server(delay=0.03) as server:
            target = target_at(agent, server, settings, concurrency=3)
            batch = batch_at(target, runs=12)
            workers(8)
            assert server.stats.peak <= 3
        assert_whole(batch)
        assert states(batch) == {"finished": 12}


class TestPace:
    def test_a_target_that_asks_to_wait_is_left_alone_and_asked_again_later(
        self, agent, settings
    ):
        with model_server("rate_limited", times=1, retry_after="30") as server:
            batch = batch_at(target_at(agent, server, settings), runs=2)
            work()
            # The run waits, and the other one has not even begun.
            assert (server.stats.calls, states(batch)) == (1, {"waiting": 2})
            [attempt] = RunAttempt.objects.all()
            assert (attempt.ending, attempt.error_kind) == ("put_back", "rate_limited")
            assert attempt.retry_after == 30
            assert b"slow down" in zstandard.decompress(attempt.events)
            left = Target.objects.values_list("paused_until", flat=True)
            assert wanted_workers() == 0
            Target.objects.update(
                paused_until=F("paused_until") - timedelta(seconds=34)
            )
            Run.objects.update(not_before=F("not_before") - timedelta(seconds=34))
            assert left
            assert wanted_workers() == 2
            work()
        assert_whole(batch)
        assert states(batch) == {"finished": 2}
        assert batch.spent_calls == 3
        assert Run.objects.get(pk=attempt.run_id).tries == 1

    def test_a_key_that_is_refused_ends_the_batch_and_is_asked_for(
        self, agent, settings, owner
    ):
        with model_server("echo_key") as server:
            target = target_at(agent, server, settings)
            set_secret(target=target, text=KEY, user_id=owner.pk, now=NOW)
            batch = batch_at(target)
            work()
            assert server.stats.calls == 1
        assert_whole(batch)
        assert states(batch) == {"failed": 1, "cancelled": 2}
        assert batch.state == "cancelled"
        assert "check the key" in batch.stopped_why
        target.refresh_from_db()
        assert target.needs_key
        rows = [*Run.objects.values(), *RunAttempt.objects.values(), batch.stopped_why]
        assert KEY not in repr(rows)

    def test_a_cancelled_batch_makes_no_call_after_two_seconds(self, agent, settings):
        with model_server("hanging") as server:
            target = target_at(agent, server, settings, concurrency=2)
            batch = batch_at(target, runs=100)
            began: list[float] = []

            def cancel() -> None:
                while server.stats.calls < 2:
                    time.sleep(0.01)
                began.append(time.monotonic())
                cancel_batch(batch=batch, user_id=None)

            workers(2, cancel)
            assert time.monotonic() - began[0] < 2.5
            assert server.stats.calls == 2
        assert_whole(batch)
        assert states(batch) == {"cancelled": 100}
        assert batch.finished_at is not None

    def test_calls_come_at_the_rate_of_the_target_for_all_workers(self, agent):
        first, second = Rates(), Rates()
        try:
            first._client.flushall()
            took = [
                rates.take(1, per_minute=60, most=0.5)
                for rates in (first, second, first, second, first, second)
            ]
            assert [taken for taken, _ in took] == [True] * 5 + [False]
            assert 0.5 < took[5][1] <= 1
            taken, seconds = second.take(1, per_minute=60, most=2)
            assert taken
            assert 0.5 < seconds <= 1
            assert 1.5 < first.take(1, per_minute=60, most=0)[1] <= 2
            # Another target has its own, no rate is none, and what is flushed begins anew.
            assert first.take(2, per_minute=1, most=0) == (True, 0.0)
            assert first.take(2, per_minute=1, most=0)[0] is False
            assert first.take(3, per_minute=0, most=0) == (True, 0.0)
            first._client.flushall()
            assert first.take(2, per_minute=1, most=0) == (True, 0.0)
        finally:
            first.close()
            second.close()

    def test_without_the_broker_there_is_no_rate_and_nobody_waits(self, tmp_path):
        away = Rates(f"redis+socket://{tmp_path}/nowhere.sock")
        assert away.take(1, per_minute=1, most=0) == (True, 0.0)
        away.close()

    def test_a_run_whose_turn_comes_later_is_put_back_and_others_go_on(
        self, agent, settings
    ):
        Rates()._client.flushall()
        with model_server() as server:
            slow = target_at(agent, server, settings, requests_per_minute=1)
            batch = batch_at(slow, runs=3)
            work()
            assert server.stats.calls == 1
        assert states(batch) == {"finished": 1, "waiting": 2}
        # What called nobody is no attempt.
        assert RunAttempt.objects.count() == 1
        waiting = Run.objects.filter(not_before__gt=Now() + timedelta(seconds=30))
        assert waiting.count() == 1

    def test_a_run_that_has_paid_waits_in_its_place(self, agent, monkeypatch):
        used = Usage(state=UsageState.REPORTED, input_total=1, output_total=1)
        seen: list[str] = []

        def twice(order, equipment):
            hooks = equipment.hooks
            for _ in range(2):
                hooks.before_call(WorstCase(input_tokens=2, output_tokens=2))
                hooks.after_call(ModelCalled(request=None, usage=used))
                seen.append("called")
            hooks.wait(60)
            return finished()

        def cancel() -> None:
            while len(seen) < 2:
                time.sleep(0.01)
            cancel_batch(batch=batch, user_id=None)

        drive(monkeypatch, twice)
        batch = batch_at(make_target(agent), runs=1)
        workers(1, cancel)
        assert (seen, states(batch)) == (["called"] * 2, {"cancelled": 1})
        assert_whole(batch)
