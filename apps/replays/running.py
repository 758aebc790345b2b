"""Who runs what: claims of runs with leases and fencing numbers, and how runs end.

The row of a run is the job. Leases use the database's clock. Whatever is written with
a claim is refused once the run is another's. Rows are locked in one order: target,
batch, run, attempt.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

import msgspec
from django.db import transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from apps.replays.budget import keep_as_spent
from apps.replays.models import Batch, Run, RunAttempt, Target
from apps.replays.transitions import MAX_TRIES, OPEN, BatchState, RunState

LOST: Final = "lost"
PUT_BACK: Final = "put_back"
MOST_BATCHES: Final = 50
"""So many batches are looked at for a free run, those that are served least first."""
_DEFAULT_CONCURRENCY: Final = 2


class LostRun(Exception):
    """Someone else has this run now, or it has ended; what this worker did is dropped."""


class RunClaim(msgspec.Struct, frozen=True, kw_only=True):
    """The right to run one run until the lease ends or another attempt begins.

    One that `is_hopeless` ended its worker too often: it is only to be failed.
    """

    run_id: int
    batch_id: int
    project_id: int
    target_id: int
    attempt: int
    lease_seconds: int
    is_hopeless: bool = False


def claim_run(*, lease_seconds: int, without: Collection[int] = ()) -> RunClaim | None:
    """Claim a run that may begin now; None when there is none.

    `without` are ids of targets that are left alone this time.

    It waits, or its worker is gone; its batch is running, its target has not asked all
    to wait, and neither has as many at work as it may. Batches with the fewest runs at
    work come first, of these the one that waits longest: none keeps another waiting.
    """
    for batch_id, target_id in _batches_with_free_runs():
        if target_id in without:
            continue
        claim = _claim_of(batch_id, target_id, lease_seconds)
        if claim is not None:
            return claim
    return None


def free_runs() -> QuerySet[Run]:
    """Runs that nobody has at present: they wait and may begin, or were left."""
    may_begin = Q(not_before=None) | Q(not_before__lte=Now())
    return Run.objects.filter(
        Q(may_begin, state=RunState.WAITING.value)
        | Q(state=RunState.RUNNING.value, lease_until__lt=Now())
    )


def running_batches() -> QuerySet[Batch]:
    """Batches that are running and whose target has not asked all to wait."""
    paused = "target_version__target__paused_until"
    may_be_asked = Q(**{paused: None}) | Q(**{f"{paused}__lte": Now()})
    return Batch.objects.filter(may_be_asked, state=BatchState.RUNNING.value)


def _batches_with_free_runs() -> list[tuple[int, int]]:
    counted = (
        Run.objects.filter(_AT_WORK, batch=OuterRef("pk"))
        .order_by()
        .values("batch")
        .annotate(count=Count("pk"))
    )
    begun = (
        Run.objects.filter(batch=OuterRef("pk"), started_at__isnull=False)
        .order_by()
        .values("batch")
        .annotate(last=Max("started_at"))
    )
    rows = (
        running_batches()
        .filter(Exists(free_runs().filter(batch=OuterRef("pk"))))
        .annotate(
            at_work=Coalesce(Subquery(counted.values("count")), 0),
            last=Subquery(begun.values("last")),
        )
        .order_by("at_work", F("last").asc(nulls_first=True), "pk")
    )
    return list(rows.values_list("pk", "target_version__target_id")[:MOST_BATCHES])


_AT_WORK: Final = Q(state=RunState.RUNNING.value, lease_until__gte=Now())


def _claim_of(batch_id: int, target_id: int, lease_seconds: int) -> RunClaim | None:
    with transaction.atomic():
        # Claims of one target wait for each other: so its limit is never passed.
        Target.objects.select_for_update(no_key=True).get(pk=target_id)
        batch = _locked(running_batches().select_related("target_version"), batch_id)
        if batch is None or _is_busy(batch, target_id):
            return None
        run = free_runs().filter(batch=batch).order_by("pk").first()
        if run is None:
            return None
        return _claimed(batch, run, target_id, lease_seconds)


def _locked(batches: QuerySet[Batch], batch_id: int) -> Batch | None:
    rows = batches.select_for_update(of=("self",), no_key=True)
    return rows.filter(pk=batch_id).first()


def _is_busy(batch: Batch, target_id: int) -> bool:
    settings = batch.target_version.settings
    most = settings.get("concurrency") or _DEFAULT_CONCURRENCY
    at_work = Run.objects.filter(
        _AT_WORK, batch__target_version__target_id=target_id
    ).aggregate(all=Count("pk"), own=Count("pk", filter=Q(batch=batch)))
    return bool(at_work["all"] >= most or at_work["own"] >= batch.concurrency)


def _claimed(
    batch: Batch, run: Run, target_id: int, lease_seconds: int
) -> RunClaim | None:
    is_hopeless = run.tries >= MAX_TRIES
    taken = (
        free_runs()
        .filter(pk=run.pk, attempt=run.attempt)
        .update(
            state=RunState.RUNNING.value,
            attempt=F("attempt") + 1,
            tries=F("tries") + 1,
            lease_until=Now() + timedelta(seconds=lease_seconds),
            started_at=Now(),
            stub_digest="",
        )
    )
    if taken != 1:
        return None
    if run.state == RunState.RUNNING.value:
        close_lost_attempts(batch_id=batch.pk, run_id=run.pk)
    if not is_hopeless:
        RunAttempt.objects.create(
            run_id=run.pk, number=run.attempt + 1, started_at=Now()
        )
    return RunClaim(
        run_id=run.pk,
        batch_id=batch.pk,
        project_id=batch.project_id,
        target_id=target_id,
        attempt=run.attempt + 1,
        lease_seconds=lease_seconds,
        is_hopeless=is_hopeless,
    )


def close_lost_attempts(*, batch_id: int, run_id: int) -> None:
    """End the attempts of a worker that is gone, in the caller's transaction.

    The caller holds the batch. What the worker had reserved is taken as spent, for
    the call may have been answered and billed; the run is marked so.
    """
    for attempt in RunAttempt.objects.filter(run_id=run_id, ended_at=None):
        if attempt.reserved_calls:
            keep_as_spent(batch_id=batch_id, attempt_id=attempt.pk)
            Run.objects.filter(pk=run_id).update(is_billed_twice=True)
        RunAttempt.objects.filter(pk=attempt.pk).update(
            ending=LOST,
            sentence="Its worker ended in the middle of it.",
            ended_at=Now(),
        )


def renew_claim(claim: RunClaim) -> None:
    """Hold a run for another lease; raises `LostRun`."""
    lease = Now() + timedelta(seconds=claim.lease_seconds)
    if _held(claim).update(lease_until=lease) != 1:
        raise LostRun


def batch_state(claim: RunClaim) -> BatchState:
    """How the batch of a claimed run stands; raises `LostRun`. One query."""
    state = _held(claim).values_list("batch__state", flat=True).first()
    if state is None:
        raise LostRun
    return BatchState(state)


def _held(claim: RunClaim) -> QuerySet[Run]:
    return Run.objects.filter(
        pk=claim.run_id, attempt=claim.attempt, state=RunState.RUNNING.value
    )


class AttemptEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How one attempt ended; `events` are those of the attempt, compressed."""

    ending: str
    error_kind: str = ""
    sentence: str = ""
    retry_after: float | None = None
    events: bytes | None = None


def put_back(*, claim: RunClaim, seconds: float, end: AttemptEnd) -> RunState:
    """Let a run wait for so many seconds and begin anew; where it stands then.

    Such an attempt is no try, and is not kept if it made no call. Where the batch does
    not run any more the run ends instead. Raises `LostRun`.
    """
    with transaction.atomic():
        batch = _batch_of(claim)
        state = NEVER_RUN_AS[BatchState(batch.state)]
        _end_attempt(claim, end)
        ended = state != RunState.WAITING
        put = _held(claim).update(
            state=state.value,
            lease_until=None,
            not_before=None if ended else Now() + timedelta(seconds=seconds),
            tries=F("tries") - 1,
            stub_digest="",
            sentence=batch.stopped_why if ended else "",
            finished_at=Now() if ended else None,
        )
        if put != 1:
            raise LostRun
        RunAttempt.objects.filter(
            run_id=claim.run_id, number=claim.attempt, calls=0
        ).delete()
        end_batch_if_last(batch)
    return state


NEVER_RUN_AS: Final = {
    BatchState.RUNNING: RunState.WAITING,
    BatchState.DONE: RunState.CANCELLED,
    BatchState.CANCELLED: RunState.CANCELLED,
    BatchState.STOPPED: RunState.OVER_BUDGET,
}
"""Where a run stands that was not executed, by the state of its batch."""


class RunEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended: its state, and the columns of its row that say so."""

    state: RunState
    columns: dict[str, Any] = {}


def end_run(*, claim: RunClaim, run: RunEnd, attempt: AttemptEnd) -> BatchState:
    """End a run in the caller's transaction; how its batch stands then.

    What the caller wrote before is undone with it where the run is another's: raises
    `LostRun`.
    """
    batch = _batch_of(claim)
    _end_attempt(claim, attempt)
    ended = _held(claim).update(
        **run.columns,
        state=run.state.value,
        lease_until=None,
        not_before=None,
        stub_digest="",
        finished_at=Now(),
    )
    if ended != 1:
        raise LostRun
    return end_batch_if_last(batch)


def _batch_of(claim: RunClaim) -> Batch:
    """The batch, locked; raises `LostRun` where it was deleted meanwhile."""
    batch = _locked(Batch.objects.all(), claim.batch_id)
    if batch is None:
        raise LostRun
    return batch


def _end_attempt(claim: RunClaim, end: AttemptEnd) -> None:
    """Close the attempt; what is still reserved by it counts as spent."""
    attempt = RunAttempt.objects.filter(
        run_id=claim.run_id, number=claim.attempt, ended_at=None
    ).first()
    if attempt is None:
        return
    if attempt.reserved_calls:
        keep_as_spent(batch_id=claim.batch_id, attempt_id=attempt.pk)
    RunAttempt.objects.filter(pk=attempt.pk).update(
        **msgspec.structs.asdict(end), ended_at=Now()
    )


def end_batch_if_last(batch: Batch) -> BatchState:
    """End a locked batch none of whose runs is open; how it stands then."""
    is_open = Run.objects.filter(batch=batch, state__in=[one.value for one in OPEN])
    if batch.finished_at is not None or is_open.exists():
        return BatchState(batch.state)
    if batch.state == BatchState.RUNNING.value:
        batch.state = BatchState.DONE.value
    Batch.objects.filter(pk=batch.pk).update(state=batch.state, finished_at=Now())
    return BatchState(batch.state)
