"""Acts of reviewers: claim, release, decide, undo.

Each is one transaction that writes the new state and one line of history, based on
the version that was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from django.db import transaction
from django.db.models.functions import Now

from apps.accounts.models import Project, User
from apps.review.leases import AlreadySubmitted as AlreadySubmitted
from apps.review.leases import Conflict as Conflict
from apps.review.leases import (
    expired,
    has_moved_on,
    hold,
    is_held_by,
    lease_is_live,
    let_go,
    renewed,
    who_has,
)
from apps.review.models import Draft, HistoryEntry, Signal
from apps.review.queries import QueueFilter, parts_in_order, queue_signals
from apps.review.ranking import first_rank
from apps.review.transitions import (
    Act,
    NotPossibleNow,
    SignalState,
    Verdict,
    check_is_complete,
    following,
)
from apps.screening.operations import StoredScreening
from apps.traces.behind import mark_behind
from apps.traces.locking import keep_trace


class DecisionInput(msgspec.Struct, frozen=True):
    """What a reviewer submits about a signal."""

    verdict: Verdict
    reason: str = ""
    note: str = ""
    failure_kind: str = ""
    where_agent: str = ""
    where_step: int | None = None


def open_signals(
    *, project_id: int, queued: Sequence[StoredScreening], now: datetime
) -> dict[int, int]:
    """Put review signals into the queue; returns how many per trace id.

    Runs inside the caller's transaction, right after the screenings were written.
    """
    rows = [
        Signal(
            project_id=project_id,
            screening_id=item.screening_id,
            trace_id=item.trace.trace_id,
            check_slug=item.check.slug,
            check_version=item.check.version,
            agent=item.screening.evidence.agent or "",
            chance=(
                item.screening.evidence.chance.value
                if item.screening.evidence.chance
                else 1.0
            ),
            rank=first_rank(item),
            effect=item.screening.evidence.effect or 0.0,
            length=item.screening.evidence.length or 0,
            usage_missing=bool(item.screening.evidence.usage_missing),
            outcome=item.trace.trace.outcome.kind.value,
            headline=item.screening.headline,
            created_at=now,
        )
        for item in queued
    ]
    created = Signal.objects.bulk_create(rows)
    HistoryEntry.objects.bulk_create(
        [
            HistoryEntry(
                signal=row,
                base_version=-1,
                act=Act.OPENED.value,
                at=now,
                state_after=SignalState.OPEN.value,
                evidence_hash=item.screening.input_hash,
            )
            for row, item in zip(created, queued, strict=True)
        ]
    )
    per_trace: dict[int, int] = {}
    for row in created:
        per_trace[row.trace_id] = per_trace.get(row.trace_id, 0) + 1
    return per_trace


def write_rescreened(signal: Signal, *, note: str) -> None:
    """Save a locked signal whose trace has new content, and say so."""
    _write(signal, act=Act.RESCREENED, by=None, decision=note)


def _locked(signal_id: int) -> Signal:
    # Alone: what is joined stands as it did before the wait for the lock, and a signal
    # that shows another answer since then would not be found at all.
    # In the order of everybody who locks: traces before what is about them.
    of = Signal.objects.filter(pk=signal_id).values_list("trace_id", flat=True).first()
    if of is not None:
        keep_trace(of)
    return Signal.objects.select_for_update().get(pk=signal_id)


def _write(
    signal: Signal,
    *,
    act: Act,
    by: User | None,
    decision: DecisionInput | str | None = None,
    submission: UUID | None = None,
) -> None:
    before = SignalState(signal.state)
    after = following(before, act)
    HistoryEntry.objects.create(
        signal=signal,
        base_version=signal.version,
        act=act.value,
        at=Now(),
        by=by,
        state_before=before.value,
        state_after=after.value,
        evidence_hash=signal.screening.input_hash,
        submission=submission,
        **_decision_columns(decision),
    )
    signal.state = after
    signal.version += 1
    signal.save()


def _decision_columns(decision: DecisionInput | str | None) -> dict[str, Any]:
    if decision is None:
        return {}
    if isinstance(decision, str):
        return {"note": decision}
    return {
        "verdict": decision.verdict.value,
        "reason": decision.reason,
        "note": decision.note,
        "failure_kind": decision.failure_kind,
        "where_agent": decision.where_agent,
        "where_step": decision.where_step,
    }


def claim(*, signal_id: int, user: User) -> Signal:
    """Claim one signal for `user`; the user's own claim is renewed.

    Raises `Conflict` while someone else's lease lives, `NotPossibleNow` when it is
    decided. Safe to run twice.
    """
    with transaction.atomic():
        signal = _locked(signal_id)
        if is_held_by(signal, user):
            renewed(Signal.objects.filter(pk=signal_id), user)
            return Signal.objects.get(pk=signal_id)
        if lease_is_live(signal):
            raise Conflict(who_has(signal, "signal"))
        if signal.state == SignalState.CLAIMED:
            _release(signal, act=Act.EXPIRED, by=None)
        _take(signal, user)
    return Signal.objects.get(pk=signal_id)


def _take(signal: Signal, user: User) -> None:
    hold(signal, user)
    _write(signal, act=Act.CLAIMED, by=user)


def _release(signal: Signal, *, act: Act, by: User | None) -> None:
    let_go(signal)
    _write(signal, act=act, by=by)


def claim_next(*, project: Project, user: User, where: QueueFilter) -> Signal | None:
    """Claim the first open signal of a view, skipping those others are taking.

    In the view `mine` the next one is the first that the user holds already.

    The statement that picks also locks (`FOR UPDATE SKIP LOCKED`), so two reviewers
    never get the same signal. None when nothing is open in this view.
    """
    release_expired_claims()
    if where.view == "mine":
        mine = queue_signals(project=project, where=where, user=user).first()
        return claim(signal_id=mine.pk, user=user) if mine else None
    with transaction.atomic():
        waiting = queue_signals(project=project, where=where, state=SignalState.OPEN)
        for part in parts_in_order(waiting, where=where):
            signal = (
                part.select_for_update(of=("self",), skip_locked=True)
                .select_related("screening")
                .first()
            )
            if signal is not None:
                _take(signal, user)
                return Signal.objects.get(pk=signal.pk)
    return None


def renew(*, signal_id: int, user: User) -> datetime | None:
    """Renew the user's own claim; the new end of the lease, or None without a claim."""
    return renewed(Signal.objects.filter(pk=signal_id), user)


def release(*, signal_id: int, user: User) -> None:
    """Give the user's own claim back. Safe to run twice."""
    with transaction.atomic():
        signal = _locked(signal_id)
        if is_held_by(signal, user):
            _release(signal, act=Act.RELEASED, by=user)
            _follow_the_line_up(signal)


def _follow_the_line_up(signal: Signal) -> None:
    """Have the trace settled again if a decision on its released signal was undone.

    While it was decided the line-up or the trace may have changed under it, so that
    nothing gives this signal any more.
    """
    taken_back = (Act.UNDONE.value, Act.RETURNED.value)
    if HistoryEntry.objects.filter(signal=signal, act__in=taken_back).exists():
        # After the commit: whoever holds a signal must not ask for its trace.
        transaction.on_commit(partial(mark_behind, trace_id=signal.trace_id))


def release_expired_claims() -> int:
    """Open again what was claimed and let go without a word; returns how many."""
    released = 0
    for signal_id in expired(Signal.objects.all()):
        with transaction.atomic():
            signal = _locked(signal_id)
            if signal.state == SignalState.CLAIMED and not lease_is_live(signal):
                _release(signal, act=Act.EXPIRED, by=None)
                _follow_the_line_up(signal)
                released += 1
    return released


def decide(
    *,
    signal_id: int,
    user: User,
    decision: DecisionInput,
    base_version: int,
    submission: UUID | None = None,
) -> Signal:
    """Write a decision on a signal that is open or claimed by `user`.

    An open signal is claimed on the way. Raises `Conflict` (with who decided what)
    when it was decided since or someone else has the claim, `NotPossibleNow` when the
    decision lacks something, `AlreadySubmitted` when the same `submission` came before.
    """
    check_is_complete(
        verdict=decision.verdict, reason=decision.reason, note=decision.note
    )
    if decision.verdict is not Verdict.DISMISS:
        decision = msgspec.structs.replace(decision, reason="")
    if decision.verdict is not Verdict.CONFIRM:
        decision = msgspec.structs.replace(
            decision, failure_kind="", where_agent="", where_step=None
        )
    with transaction.atomic():
        signal = _locked(signal_id)
        if submission and _was_submitted(signal, submission):
            raise AlreadySubmitted
        _check_may_decide(signal, user, base_version)
        if signal.state == SignalState.CLAIMED and signal.claimed_by_id != user.pk:
            _release(signal, act=Act.EXPIRED, by=None)
        if signal.state == SignalState.OPEN:
            _take(signal, user)
        let_go(signal)
        signal.verdict = decision.verdict
        signal.reason = decision.reason
        signal.decided_by = user
        signal.decided_at = Now()
        _write(
            signal,
            act=Act.DECIDED,
            by=user,
            decision=decision,
            submission=submission,
        )
        Draft.objects.filter(signal=signal, user=user).delete()
    return Signal.objects.get(pk=signal_id)


def _was_submitted(signal: Signal, submission: UUID) -> bool:
    return HistoryEntry.objects.filter(signal=signal, submission=submission).exists()


def _check_may_decide(signal: Signal, user: User, base_version: int) -> None:
    if signal.state == SignalState.DECIDED:
        who = signal.decided_by.label if signal.decided_by else "Someone"
        raise Conflict(
            f"{who} has decided meanwhile: {Verdict(signal.verdict).label.lower()}. "
            "What you typed is kept as your draft."
        )
    if signal.claimed_by_id != user.pk and lease_is_live(signal):
        raise Conflict(
            who_has(signal, "signal") + " What you typed is kept as your draft."
        )
    entries = HistoryEntry.objects.filter(signal=signal)
    if has_moved_on(signal.version, base_version, entries):
        raise Conflict(
            "This signal has changed since you opened it. Look at its history, then "
            "decide again; what you typed is kept as your draft."
        )


def undo(*, signal_id: int, user: User, base_version: int) -> Signal:
    """Take the user's own last decision back; the signal is claimed by them again.

    Raises `Conflict` when the version moved on or someone else decided.
    """
    with transaction.atomic():
        signal = _locked(signal_id)
        if signal.state != SignalState.DECIDED:
            raise NotPossibleNow("There is no decision on this signal to undo.")
        if signal.decided_by_id != user.pk:
            raise Conflict("Only the reviewer who decided may undo it.")
        if signal.version != base_version:
            raise Conflict("This signal has changed since; nothing was undone.")
        _clear_decision(signal)
        hold(signal, user)
        _write(signal, act=Act.UNDONE, by=user)
    return Signal.objects.get(pk=signal_id)


def return_from_experiment(*, signal_id: int, said: str) -> bool:
    """Put a signal back into the queue with what its experiment gave; whether it was.

    Only one that is decided as “needs experiment” comes back: whoever has decided
    otherwise meanwhile is not overruled. The decision stays in the history. Safe to
    run twice.
    """
    with transaction.atomic():
        try:
            signal = _locked(signal_id)
        except Signal.DoesNotExist:
            # Its trace was read again or erased meanwhile.
            return False
        if signal.verdict != Verdict.NEEDS_EXPERIMENT:
            return False
        _clear_decision(signal)
        _write(signal, act=Act.RETURNED, by=None, decision=said)
        _follow_the_line_up(signal)
    return True


def _clear_decision(signal: Signal) -> None:
    signal.verdict = signal.reason = ""
    signal.decided_by = signal.decided_at = None


def save_draft(
    *, signal_id: int, user: User, fields: dict[str, str], now: datetime
) -> None:
    """Keep what a reviewer has typed so far. The last write wins."""
    Draft.objects.update_or_create(
        signal_id=signal_id, user=user, defaults={"fields": fields, "saved_at": now}
    )
