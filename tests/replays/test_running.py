"""Who runs what: claims, leases, putting back, stopping, resuming, and how far it is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import DateTimeField, F, Func, Sum
from django.db.models.functions import Now

from apps.replays.budget import Cost, Payer, reserve, settle
from apps.replays.models import Batch, Run, RunAttempt
from apps.replays.planning import Caps
from apps.replays.progress import batch_progress
from apps.replays.running import (
    AttemptEnd,
    LostRun,
    RunClaim,
    RunEnd,
    batch_state,
    claim_run,
    end_run,
    put_back,
    renew_claim,
)
from apps.replays.stopping import (
    MOST_FAILURES_IN_A_ROW,
    cancel_batch,
    pause_target,
    resume_batch,
    stop_batch,
    stop_if_target_fails,
    sweep,
)
from apps.replays.transitions import MAX_TRIES, BatchState, NotPossibleNow, RunState
from tests.at_once import at_once
from tests.factories import make_project
from tests.replays.rows import make_agent, make_batch, make_case, make_target


class ClockTimestamp(Func):
    """The time of the wall, which goes on inside of a transaction too."""

    template = "clock_timestamp()"
    output_field = DateTimeField()


WAITS = AttemptEnd(ending="put_back", error_kind="rate_limited", retry_after=30)


@pytest.fixture
def agent(project):
    return make_agent(project)


def batch_of(agent, runs: int = 4, *, name="Model", concurrency=20, **more) -> Batch:
    target = make_target(agent, name, concurrency=concurrency)
    batch = make_batch(target, make_case(agent), repeats=runs, **more)
    Batch.objects.filter(pk=batch.pk).update(started_at=Now())
    return batch


def claim(seconds: int = 60) -> RunClaim | None:
    return claim_run(lease_seconds=seconds)


def end(claim: RunClaim, state: RunState = RunState.FINISHED, **columns) -> BatchState:
    with transaction.atomic():
        return end_run(
            claim=claim,
            run=RunEnd(state=state, columns=columns),
            attempt=AttemptEnd(ending=state.value),
        )


def leave(claim: RunClaim) -> None:
    """As if the worker had died some time ago."""
    Run.objects.filter(pk=claim.run_id).update(lease_until=Now() - timedelta(seconds=1))


def states(batch: Batch) -> dict[str, int]:
    counts: dict[str, int] = {}
    for state in Run.objects.filter(batch=batch).values_list("state", flat=True):
        counts[state] = counts.get(state, 0) + 1
    return counts


@pytest.mark.django_db
class TestClaims:
    def test_each_run_is_claimed_once_and_no_more_than_are_allowed_at_a_time(
        self, agent
    ):
        batch = batch_of(agent, concurrency=3)
        claims = [claim() for _ in range(5)]
        assert [one is None for one in claims] == [False, False, False, True, True]
        assert len({one.run_id for one in claims[:3]}) == 3
        end(claims[0])
        assert claim() is not None
        assert states(batch) == {"finished": 1, "running": 3}
        assert RunAttempt.objects.filter(ending="finished").count() == 1

    def test_a_batch_may_use_less_than_its_target_allows(self, agent):
        batch = batch_of(agent)
        Batch.objects.filter(pk=batch.pk).update(concurrency=1)
        assert claim() is not None
        assert claim() is None

    def test_two_batches_of_one_target_share_its_limit_and_take_turns(self, agent):
        first = batch_of(agent, concurrency=3)
        target = first.target_version.target
        second = make_batch(target, make_case(agent, "Another one"))
        claimed = [one.batch_id for one in (claim(), claim(), claim())]
        assert claimed == [first.pk, second.pk, first.pk]
        assert claim() is None

    def test_one_worker_serves_all_batches_in_turn(self, agent):
        batches = [batch_of(agent, name=f"Model {n}") for n in range(3)]
        served = []
        for _ in range(6):
            one = claim()
            served.append(one.batch_id)
            Run.objects.filter(pk=one.run_id).update(started_at=ClockTimestamp())
            end(one)
        assert served == [one.pk for one in batches] * 2

    def test_a_batch_of_a_paused_target_keeps_no_other_waiting(self, agent):
        paused = batch_of(agent)
        pause_target(target_id=paused.target_version.target_id, seconds=60)
        assert claim() is None
        other = batch_of(agent, name="Other")
        assert claim().batch_id == other.pk

    def test_a_target_that_is_left_out_is_not_claimed(self, agent):
        batch = batch_of(agent)
        target = batch.target_version.target_id
        assert claim_run(lease_seconds=9, without={target}) is None

    def test_a_run_whose_worker_is_gone_is_begun_anew_and_the_old_one_writes_nothing(
        self, agent
    ):
        batch = batch_of(agent, runs=1)
        dead = claim()
        assert claim() is None
        renew_claim(dead)
        leave(dead)
        taken = claim()
        assert (taken.run_id, taken.attempt) == (dead.run_id, 2)
        for write in (
            lambda: renew_claim(dead),
            lambda: batch_state(dead),
            lambda: end(dead),
            lambda: put_back(claim=dead, seconds=1, end=WAITS),
        ):
            with pytest.raises(LostRun):
                write()
        assert end(taken) is BatchState.DONE
        endings = RunAttempt.objects.order_by("number").values_list("ending", flat=True)
        assert list(endings) == ["lost", "finished"]
        assert not Run.objects.get(batch=batch).is_billed_twice
        assert claim() is None

    def test_a_run_that_ends_its_worker_three_times_is_only_to_be_failed(self, agent):
        batch_of(agent, runs=1)
        for _ in range(MAX_TRIES):
            one = claim()
            assert not one.is_hopeless
            leave(one)
        assert claim().is_hopeless
        assert RunAttempt.objects.filter(ending="lost").count() == MAX_TRIES

    def test_what_is_put_back_waits_and_is_no_try(self, agent):
        batch = batch_of(agent, runs=1)
        for _ in range(MAX_TRIES + 1):
            one = claim()
            payer = Payer(one.batch_id, one.project_id, one.run_id, one.attempt)
            settle(reserve(payer, Cost(5)), Cost(0))
            assert put_back(claim=one, seconds=60, end=WAITS) is RunState.WAITING
            assert claim() is None
            Run.objects.update(not_before=F("not_before") - timedelta(seconds=60))
        run = Run.objects.get(batch=batch)
        assert (run.tries, run.attempt) == (0, MAX_TRIES + 1)
        kept = RunAttempt.objects.filter(run=run, ending="put_back", retry_after=30)
        assert kept.count() == MAX_TRIES + 1

    def test_an_attempt_that_called_nobody_leaves_no_row_when_it_is_put_back(
        self, agent
    ):
        batch_of(agent, runs=1)
        put_back(claim=claim(), seconds=60, end=WAITS)
        assert not RunAttempt.objects.exists()


@pytest.mark.django_db
class TestStopping:
    def test_a_cancelled_batch_begins_nothing_and_keeps_what_was_executed(
        self, agent, owner
    ):
        batch = batch_of(agent)
        done, at_work = claim(), claim()
        end(done)
        cancel_batch(batch=batch, user_id=owner.pk)
        assert claim() is None
        assert batch_state(at_work) is BatchState.CANCELLED
        assert states(batch) == {"finished": 1, "running": 1, "cancelled": 2}
        batch.refresh_from_db()
        assert (batch.finished_at, batch.cancelled_by) == (None, owner)
        with pytest.raises(NotPossibleNow, match="just being stopped"):
            resume_batch(batch=batch, caps=Caps())
        end(at_work, RunState.CANCELLED)
        batch.refresh_from_db()
        assert batch.finished_at is not None
        with pytest.raises(NotPossibleNow, match="cancelled already"):
            cancel_batch(batch=batch, user_id=owner.pk)

    def test_only_what_was_not_executed_goes_on(self, agent, owner):
        batch = batch_of(agent, caps=Caps(calls=2))
        first, second = claim(), claim()
        end(first)
        end(second, RunState.FAILED, error_kind="crashed")
        stop_batch(batch_id=batch.pk, sentence="The cap of 2 calls is reached.")
        assert states(batch) == {"finished": 1, "failed": 1, "over_budget": 2}
        assert Run.objects.filter(sentence__startswith="The cap").count() == 2
        Batch.objects.update(spent_calls=2)
        with pytest.raises(NotPossibleNow, match="Raise it first"):
            resume_batch(batch=batch, caps=Caps(calls=2))
        assert resume_batch(batch=batch, caps=Caps(calls=9)) == 2
        batch.refresh_from_db()
        assert (batch.state, batch.stopped_why) == ("running", "")
        later = [claim(), claim()]
        assert claim() is None
        assert {first.run_id, second.run_id}.isdisjoint(one.run_id for one in later)
        assert [end(one) for one in later] == [BatchState.RUNNING, BatchState.DONE]
        with pytest.raises(NotPossibleNow, match="nothing to resume"):
            resume_batch(batch=batch, caps=Caps())

    def test_what_is_put_back_into_a_batch_that_stopped_has_ended(self, agent):
        batch = batch_of(agent, runs=1)
        one = claim()
        stop_batch(batch_id=batch.pk, sentence="Enough.")
        assert put_back(claim=one, seconds=5, end=WAITS) is RunState.OVER_BUDGET
        batch.refresh_from_db()
        assert batch.finished_at is not None

    def test_what_a_dead_worker_left_in_a_batch_that_stopped_is_ended(self, agent):
        batch = batch_of(agent, runs=2)
        one = claim()
        payer = Payer(one.batch_id, one.project_id, one.run_id, one.attempt)
        reserve(payer, Cost(9))
        cancel_batch(batch=batch, user_id=None)
        sweep()
        assert states(batch) == {"running": 1, "cancelled": 1}
        leave(one)
        sweep()
        batch.refresh_from_db()
        assert states(batch) == {"cancelled": 2}
        assert (batch.reserved_tokens, batch.spent_tokens) == (0, 9)
        assert batch.finished_at is not None
        with pytest.raises(LostRun):
            end(one)

    def test_a_batch_whose_time_is_over_is_stopped(self, agent):
        batch = batch_of(agent, caps=Caps(seconds=60))
        sweep()
        assert Batch.objects.get().state == "running"
        Batch.objects.update(started_at=Now() - timedelta(seconds=61))
        sweep()
        batch.refresh_from_db()
        assert batch.state == "stopped"
        assert batch.stopped_why == "The cap of 60 seconds is reached."
        assert resume_batch(batch=batch, caps=Caps(seconds=60)) == 4

    @pytest.mark.parametrize(
        ("kind", "is_stopped"), [("connection", True), ("crashed", False)]
    )
    def test_a_target_that_fails_again_and_again_is_left_alone(
        self, agent, kind, is_stopped
    ):
        batch = batch_of(agent, runs=MOST_FAILURES_IN_A_ROW + 2)
        for number in range(MOST_FAILURES_IN_A_ROW):
            assert not stop_if_target_fails(batch.pk), number
            end(claim(), RunState.FAILED, error_kind=kind, sentence="Nobody there.")
        assert stop_if_target_fails(batch.pk) is is_stopped
        batch.refresh_from_db()
        assert batch.state == ("cancelled" if is_stopped else "running")
        assert ("Nobody there." in batch.stopped_why) is is_stopped


@pytest.mark.django_db
class TestProgress:
    def test_it_tells_how_far_a_batch_is_in_one_query(
        self, agent, django_assert_num_queries
    ):
        batch = batch_of(agent, runs=10, concurrency=2)
        with django_assert_num_queries(1):
            found = batch_progress(batch)
        assert (found.remaining_seconds, found.executed, found.total) == (None, 0, 10)
        for seconds in (2, 4, 60):
            one = claim()
            end(one)
            Run.objects.filter(pk=one.run_id).update(
                started_at=F("finished_at") - timedelta(seconds=seconds)
            )
        claim(), claim()
        found = batch_progress(batch)
        assert found.counts[RunState.WAITING] == 5
        assert found.counts[RunState.RUNNING] == 2
        # Five and two halves, two at a time, four seconds each.
        assert (found.executed, found.remaining_seconds) == (3, 12)
        pause_target(target_id=batch.target_version.target_id, seconds=100)
        assert 110 <= batch_progress(batch).remaining_seconds <= 112
        stop_batch(batch_id=batch.pk, sentence="Enough.")
        assert batch_progress(batch).remaining_seconds == 0

    def test_the_rate_of_the_target_may_take_longer_than_the_runs(self, agent):
        target = make_target(agent, requests_per_minute=6)
        batch = make_batch(target, make_case(agent), repeats=3)
        end(claim())
        Batch.objects.update(spent_calls=2)
        assert batch_progress(batch).remaining_seconds == 2 * 2 * 10


def test_workers_that_claim_end_and_cancel_at_once_lose_and_double_nothing(
    transactional_db,
):
    agent = make_agent(make_project(name="All at once"))
    batches = [batch_of(agent, runs=20, name=f"Model {n}") for n in range(2)]
    ended: list[int] = []

    def work() -> None:
        while one := claim():
            payer = Payer(one.batch_id, one.project_id, one.run_id, one.attempt)
            settle(reserve(payer, Cost(3)), Cost(2))
            if one.attempt == 1 and one.run_id % 3 == 0:
                put_back(claim=one, seconds=-1, end=WAITS)
            elif one.attempt < 3 and one.run_id % 5 == 0:
                leave(one)
            else:
                end(one)
                ended.append(one.run_id)

    found = at_once(work, work, work, work)
    work()
    assert found == [None] * 4
    assert sorted(ended) == sorted(Run.objects.values_list("pk", flat=True))
    for batch in batches:
        batch.refresh_from_db()
        assert states(batch) == {"finished": 20}
        assert (batch.state, batch.reserved_calls) == ("done", 0)
        calls = RunAttempt.objects.filter(run__batch=batch).aggregate(
            calls=Sum("calls"), tokens=Sum("spent_tokens")
        )
        assert (batch.spent_calls, batch.spent_tokens) == tuple(calls.values())
