"""Acts on blind looks: claim, release, decide, undo, reveal.

As for signals each is one transaction that writes the new state and one line of
history, based on the version that was seen.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from apps.accounts.models import Project, User
from apps.review.blind_sample import is_blind_to, offered_to
from apps.review.blind_states import BlindAct, following
from apps.review.leases import (
    AlreadySubmitted,
    Conflict,
    expired,
    has_moved_on,
    hold,
    is_held_by,
    lease_is_live,
    let_go,
    renewed,
    who_has,
)
from apps.review.models import BlindDraft, BlindEntry, BlindLook
from apps.review.transitions import BlindVerdict, NotPossibleNow, SignalState
from apps.traces.locking import keep_trace

NOT_BLIND = (
    "You have decided a signal of this trace before, so you know what the checks say "
    "of it. Somebody else looks at it."
)


class BlindInput(msgspec.Struct, frozen=True):
    """What a reviewer says of a trace without knowing what the checks said."""

    verdict: BlindVerdict
    note: str = ""
    failure_kind: str = ""
    where_agent: str = ""
    where_step: int | None = None


def look_of(*, project: Project, look_id: int) -> BlindLook:
    """One blind look of this project; raises `BlindLook.DoesNotExist`."""
    return BlindLook.objects.select_related(
        "trace", "trace__task", "claimed_by", "decided_by"
    ).get(project=project, pk=look_id)


def history_of(look: BlindLook) -> QuerySet[BlindEntry]:
    """Everything that happened to a blind look, oldest first."""
    entries = BlindEntry.objects.filter(look=look)
    return entries.select_related("by").order_by("base_version")


def draft_of(*, look: BlindLook, user: User) -> BlindDraft | None:
    """What this reviewer typed and did not submit, or None."""
    return BlindDraft.objects.filter(look=look, user=user).first()


def is_revealed(look: BlindLook) -> bool:
    """Whether the reviewer who decided has been shown what the checks said."""
    return BlindEntry.objects.filter(look=look, act=BlindAct.REVEALED.value).exists()


def last_decided_by(*, project: Project, user: User) -> BlindLook | None:
    """The look that this reviewer decided last and may still undo; None if none."""
    revealed = BlindEntry.objects.filter(
        look_id=OuterRef("pk"), act=BlindAct.REVEALED.value
    )
    return (
        BlindLook.objects.filter(
            ~Exists(revealed),
            project=project,
            state=SignalState.DECIDED,
            decided_by=user,
        )
        .order_by("-decided_at", "-id")
        .first()
    )


def _locked(look_id: int) -> BlindLook:
    # Alone: what is joined stands as it did before the wait for the lock.
    # In the order of everybody who locks: traces before what is about them.
    of = BlindLook.objects.filter(pk=look_id).values_list("trace_id", flat=True).first()
    if of is not None:
        keep_trace(of)
    return BlindLook.objects.select_for_update().get(pk=look_id)


def _write(
    look: BlindLook,
    *,
    act: BlindAct,
    by: User | None,
    decision: BlindInput | None = None,
    submission: UUID | None = None,
) -> None:
    after = following(SignalState(look.state), act)
    said = msgspec.structs.asdict(decision) if decision else {}
    BlindEntry.objects.create(
        look=look,
        base_version=look.version,
        act=act.value,
        at=Now(),
        by=by,
        submission=submission,
        **said,
    )
    look.state = after
    look.version += 1
    look.save()


def _take(look: BlindLook, user: User) -> None:
    hold(look, user)
    _write(look, act=BlindAct.CLAIMED, by=user)


def _release(look: BlindLook, *, act: BlindAct, by: User | None) -> None:
    let_go(look)
    _write(look, act=act, by=by)


def _check_is_blind(look: BlindLook, user: User) -> None:
    if not is_blind_to(look=look, user=user):
        raise NotPossibleNow(NOT_BLIND)


def claim(*, look_id: int, user: User) -> BlindLook:
    """Claim one blind look for `user`; the user's own claim is renewed.

    Raises `Conflict` while someone else's lease lives, `NotPossibleNow` when it is
    decided or withdrawn, or when `user` has decided a signal of the trace. Safe to run
    twice.
    """
    with transaction.atomic():
        look = _locked(look_id)
        _check_is_blind(look, user)
        if is_held_by(look, user):
            renewed(BlindLook.objects.filter(pk=look_id), user)
            return BlindLook.objects.get(pk=look_id)
        if lease_is_live(look):
            raise Conflict(who_has(look, "trace"))
        if look.state == SignalState.CLAIMED:
            _release(look, act=BlindAct.EXPIRED, by=None)
        _take(look, user)
    return BlindLook.objects.get(pk=look_id)


def claim_next(*, project: Project, user: User) -> BlindLook | None:
    """Claim the first open look that `user` may be offered; None when there is none.

    One statement picks and locks (`FOR UPDATE SKIP LOCKED`), so two reviewers never
    get the same look.
    """
    release_expired_looks()
    with transaction.atomic():
        look = (
            offered_to(project=project, user=user)
            .filter(state=SignalState.OPEN)
            .select_for_update(of=("self",), skip_locked=True)
            .first()
        )
        if look is None:
            return None
        _take(look, user)
    return BlindLook.objects.get(pk=look.pk)


def renew(*, look_id: int, user: User) -> datetime | None:
    """Renew the user's own claim; the new end of the lease, or None without a claim."""
    return renewed(BlindLook.objects.filter(pk=look_id), user)


def release(*, look_id: int, user: User) -> None:
    """Give the user's own claim back. Safe to run twice."""
    with transaction.atomic():
        look = _locked(look_id)
        if is_held_by(look, user):
            _release(look, act=BlindAct.RELEASED, by=user)


def release_expired_looks() -> int:
    """Open again what was claimed and let go without a word; returns how many."""
    released = 0
    for look_id in expired(BlindLook.objects.all()):
        with transaction.atomic():
            look = _locked(look_id)
            if look.state == SignalState.CLAIMED and not lease_is_live(look):
                _release(look, act=BlindAct.EXPIRED, by=None)
                released += 1
    return released


def decide(
    *,
    look_id: int,
    user: User,
    decision: BlindInput,
    base_version: int,
    submission: UUID | None = None,
) -> BlindLook:
    """Write what `user` says of the trace; an open look is claimed on the way.

    Raises `Conflict` when it was decided since or someone else has the claim,
    `NotPossibleNow` when it was withdrawn or `user` is not blind to it,
    `AlreadySubmitted` when the same `submission` came before.
    """
    if decision.verdict is not BlindVerdict.FAILURE:
        decision = BlindInput(verdict=decision.verdict, note=decision.note)
    with transaction.atomic():
        look = _locked(look_id)
        if submission and _was_submitted(look, submission):
            raise AlreadySubmitted
        _check_is_blind(look, user)
        _check_may_decide(look, user, base_version)
        if look.state == SignalState.CLAIMED and look.claimed_by_id != user.pk:
            _release(look, act=BlindAct.EXPIRED, by=None)
        if look.state == SignalState.OPEN:
            _take(look, user)
        let_go(look)
        look.verdict = decision.verdict
        look.decided_by = user
        look.decided_at = Now()
        _write(
            look,
            act=BlindAct.DECIDED,
            by=user,
            decision=decision,
            submission=submission,
        )
        BlindDraft.objects.filter(look=look, user=user).delete()
    return BlindLook.objects.get(pk=look_id)


def _was_submitted(look: BlindLook, submission: UUID) -> bool:
    return BlindEntry.objects.filter(look=look, submission=submission).exists()


def _check_may_decide(look: BlindLook, user: User, base_version: int) -> None:
    if look.state == SignalState.DECIDED:
        who = look.decided_by.label if look.decided_by else "Someone"
        raise Conflict(
            f"{who} has decided meanwhile. What you typed is kept as your draft."
        )
    if look.claimed_by_id != user.pk and lease_is_live(look):
        raise Conflict(
            who_has(look, "trace") + " What you typed is kept as your draft."
        )
    entries = BlindEntry.objects.filter(look=look)
    if has_moved_on(look.version, base_version, entries):
        raise Conflict(
            "This look has changed since you opened it. Look at its history, then "
            "decide again; what you typed is kept as your draft."
        )


def undo(*, look_id: int, user: User, base_version: int) -> BlindLook:
    """Take the user's own decision back; the look is claimed by them again.

    Raises `Conflict` when the version moved on or someone else decided, and
    `NotPossibleNow` when the user has seen what the checks said.
    """
    with transaction.atomic():
        look = _own_decision(look_id, user, base_version)
        if is_revealed(look):
            raise NotPossibleNow(
                "You have seen what the checks said, so this decision stays as it is."
            )
        look.verdict = ""
        look.decided_by = look.decided_at = None
        hold(look, user)
        _write(look, act=BlindAct.UNDONE, by=user)
    return BlindLook.objects.get(pk=look_id)


def reveal(*, look_id: int, user: User) -> None:
    """Show the reviewer who decided what the checks said; the decision is final then.

    Safe to run twice. Raises `Conflict` when someone else decided.
    """
    with transaction.atomic():
        look = _own_decision(look_id, user, None)
        if not is_revealed(look):
            _write(look, act=BlindAct.REVEALED, by=user)


def _own_decision(look_id: int, user: User, base_version: int | None) -> BlindLook:
    look = _locked(look_id)
    if look.state != SignalState.DECIDED:
        raise NotPossibleNow("There is no decision on this blind look.")
    if look.decided_by_id != user.pk:
        raise Conflict("Only the reviewer who decided may do this.")
    if base_version is not None and look.version != base_version:
        raise Conflict("This look has changed since; nothing was undone.")
    return look


def save_draft(
    *, look_id: int, user: User, fields: dict[str, str], now: datetime
) -> None:
    """Keep what a reviewer has typed so far. The last write wins."""
    BlindDraft.objects.update_or_create(
        look_id=look_id, user=user, defaults={"fields": fields, "saved_at": now}
    )
