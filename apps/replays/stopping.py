"""Stopping batches and letting them go on: by a person, by a cap, by a target that fails.

What was executed stays as it is, also in a batch that goes on later.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce, Greatest, Now

from apps.replays.budget import Cost, cap_reached, time_reached
from apps.replays.models import Batch, Run, Target
from apps.replays.planning import Caps
from apps.replays.running import (
    NEVER_RUN_AS,
    close_lost_attempts,
    end_batch_if_last,
)
from apps.replays.transitions import (
    OPEN,
    RESUMABLE,
    BatchState,
    NotPossibleNow,
    RunState,
)

CANCELLED: Final = "Somebody cancelled the batch."
MOST_FAILURES_IN_A_ROW: Final = 20
"""After so many runs in a row that their target failed, a batch is stopped."""
_TARGET_FAILS: Final = frozenset(
    {"rate_limited", "overloaded", "connection", "not_allowed", "refused", "target"}
)


def cancel_batch(*, batch: Batch, user_id: int | None) -> None:
    """Let no further run of a batch begin; those at work are told to stop.

    What was executed stays. Raises `NotPossibleNow` unless it is running.
    """
    with transaction.atomic():
        locked = _locked(batch.pk)
        if locked.state != BatchState.RUNNING.value:
            raise NotPossibleNow(f"This batch is {locked.state} already.")
        _stop(locked, BatchState.CANCELLED, CANCELLED, cancelled_by=user_id)


def stop_batch(
    *, batch_id: int, sentence: str, state: BatchState = BatchState.STOPPED
) -> bool:
    """Stop a running batch because of what `sentence` says; whether this call did.

    It is stopped by a cap, and cancelled by whatever else.
    """
    with transaction.atomic():
        locked = _locked(batch_id)
        if locked.state != BatchState.RUNNING.value:
            return False
        _stop(locked, state, sentence)
    return True


def _locked(batch_id: int) -> Batch:
    return Batch.objects.select_for_update(no_key=True).get(pk=batch_id)


def _stop(
    batch: Batch, state: BatchState, sentence: str, *, cancelled_by: int | None = None
) -> None:
    batch.state, batch.stopped_why = state.value, sentence
    batch.cancelled_by_id = cancelled_by
    batch.save(update_fields=["state", "stopped_why", "cancelled_by"])
    Run.objects.filter(batch=batch, state=RunState.WAITING.value).update(
        **_never_run(batch)
    )
    end_batch_if_last(batch)


def _never_run(batch: Batch) -> dict[str, Any]:
    """The columns of a run that its batch does not come to any more."""
    return {
        "state": NEVER_RUN_AS[BatchState(batch.state)].value,
        "sentence": batch.stopped_why,
        "lease_until": None,
        "not_before": None,
        "stub_digest": "",
        "finished_at": Now(),
    }


def resume_batch(*, batch: Batch, caps: Caps) -> int:
    """Let a batch that was stopped or cancelled go on under new caps; how many runs wait.

    Only runs that were not executed begin anew, and none that was is repeated. The
    time of the batch counts from now. The caller wakes a worker once this is committed.
    Raises `NotPossibleNow` with a sentence.
    """
    with transaction.atomic():
        locked = _locked(batch.pk)
        _check_can_resume(locked)
        locked.max_calls, locked.max_tokens = caps.calls, caps.tokens
        locked.max_money, locked.max_seconds = caps.money, caps.seconds
        if sentence := cap_reached(locked, Cost(1), is_time_new=True):
            raise NotPossibleNow(f"{sentence} Raise it first.")
        waiting = Run.objects.filter(
            batch=locked, state__in=[one.value for one in RESUMABLE]
        ).update(
            state=RunState.WAITING.value,
            tries=0,
            not_before=None,
            error_kind="",
            sentence="",
            started_at=None,
            finished_at=None,
        )
        if not waiting:
            raise NotPossibleNow("Every run of this batch was executed already.")
        Batch.objects.filter(pk=locked.pk).update(
            state=BatchState.RUNNING.value,
            stopped_why="",
            cancelled_by=None,
            started_at=Now(),
            finished_at=None,
            max_calls=caps.calls,
            max_tokens=caps.tokens,
            max_money=caps.money,
            max_seconds=caps.seconds,
        )
    return waiting


def _check_can_resume(batch: Batch) -> None:
    if batch.state not in {BatchState.STOPPED.value, BatchState.CANCELLED.value}:
        raise NotPossibleNow(
            f"This batch is {batch.state}; there is nothing to resume."
        )
    if batch.finished_at is None:
        raise NotPossibleNow(
            "Runs of this batch are just being stopped. Try again in a moment."
        )


def pause_target(*, target_id: int, seconds: float) -> None:
    """Let no run of a target begin, nor make a call, for so many seconds from now."""
    until = Now() + timedelta(seconds=seconds)
    Target.objects.filter(pk=target_id).update(
        paused_until=Greatest(Coalesce("paused_until", until), until)
    )


def note_refused_key(*, target_id: int) -> None:
    """Remember that the key of a target was refused, until a new one is set."""
    Target.objects.filter(pk=target_id, needs_key=False).update(needs_key=True)


def stop_if_target_fails(batch_id: int) -> bool:
    """Cancel a batch when its target failed 20 times in a row; whether it was.

    What an agent does wrong by itself is a result, and is none of these failures.
    """
    last = (
        Run.objects.filter(batch=batch_id)
        .exclude(state__in=[one.value for one in OPEN | RESUMABLE])
        .order_by("-finished_at")
        .values_list("error_kind", "sentence")[:MOST_FAILURES_IN_A_ROW]
    )
    found = list(last)
    if len(found) < MOST_FAILURES_IN_A_ROW or any(
        kind not in _TARGET_FAILS for kind, _ in found
    ):
        return False
    return stop_batch(
        batch_id=batch_id,
        state=BatchState.CANCELLED,
        sentence=(
            f"The target failed {MOST_FAILURES_IN_A_ROW} times in a row. The last time: "
            f"{found[0][1]}"
        ),
    )


def sweep() -> None:
    """Stop batches whose time is over, and end what was left in batches that stopped.

    Safe to run any number of times and in parallel.
    """
    timed = Batch.objects.filter(
        state=BatchState.RUNNING.value, max_seconds__isnull=False
    )
    for batch in timed:
        if sentence := time_reached(batch):
            stop_batch(batch_id=batch.pk, sentence=sentence)
    for batch_id in _left().values_list("batch", flat=True).distinct():
        _end_left_runs(batch_id)


def _left() -> QuerySet[Run]:
    """Runs whose worker is gone and whose batch does not run any more."""
    return Run.objects.filter(
        ~Q(batch__state=BatchState.RUNNING.value),
        state=RunState.RUNNING.value,
        lease_until__lt=Now(),
    )


def _end_left_runs(batch_id: int) -> None:
    with transaction.atomic():
        batch = _locked(batch_id)
        if batch.state == BatchState.RUNNING.value:
            return
        for run in _left().filter(batch=batch):
            ended = Run.objects.filter(
                pk=run.pk, attempt=run.attempt, state=run.state, lease_until__lt=Now()
            ).update(attempt=F("attempt") + 1, **_never_run(batch))
            if ended:
                close_lost_attempts(batch_id=batch.pk, run_id=run.pk)
        end_batch_if_last(batch)
