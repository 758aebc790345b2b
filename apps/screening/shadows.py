"""Shadows: a key of a check tried on the traces that are here, without the queue.

The answers are rows of `Screening` under the shadow's own key, which is not current, so
no list and no count shows them. Who works on a shadow holds a lease on the database's
clock; whatever is written with it is refused once the lease is another's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from apps.accounts.models import Project
from apps.engine.check import Check, configured
from apps.engine.checks import versions_of
from apps.screening.lineup import (
    CheckKey,
    LineUp,
    key_of,
    lineup_of,
    parameters_hash,
    with_stored_parameters,
)
from apps.screening.models import Shadow, ShadowState
from apps.traces.models import Trace

MAX_TRIES = 3
AT_ONCE = 20


class CannotShadow(Exception):
    """This key cannot be tried in shadow; the message is a sentence."""


class LostShadow(Exception):
    """The shadow was cancelled, or someone else works on it now."""


class ShadowClaim(msgspec.Struct, frozen=True):
    """The right to go on with one shadow until `held_until`."""

    shadow_id: int
    project_id: int
    check: Check
    last_trace: int
    held_until: datetime
    lease_seconds: int


def versions_here(lineup: LineUp, slug: str) -> tuple[Check, ...]:
    """The versions of a check that may be tried in a project, the newest first.

    That of the line-up is as the project has it now, with its parameters and baseline.
    What a project defines itself has one version only.
    """
    entry = lineup.by_slug.get(slug)
    if entry is None or entry.is_defined_here:
        return ()
    current = entry.check
    return tuple(
        current if one.version == current.version else one for one in versions_of(slug)
    )


def candidate(
    lineup: LineUp, slug: str, *, version: int, values: Mapping[str, Any]
) -> Check:
    """A registered version of a check with these parameters.

    Raises `CannotShadow` for a version that is not here, and `ValueError`, both with a
    sentence, for a parameter that may not be so.
    """
    for check in versions_here(lineup, slug):
        if check.version == version:
            return configured(check, values)
    raise CannotShadow("There is no such version of this check.")


def start_shadow(
    *, project: Project, check: Check, user_id: int | None, now: datetime
) -> tuple[Shadow, bool]:
    """Begin to try a key; returns the shadow and whether it is new.

    A key that is being tried already is not tried twice. Raises `CannotShadow` for the
    key that counts anyway.
    """
    entry = lineup_of(project.pk).by_slug.get(check.slug)
    if entry is not None and entry.key == key_of(check):
        raise CannotShadow(
            "This version with these parameters is the one that counts already. Change "
            "something first."
        )
    found = {
        "project": project,
        "check_slug": check.slug,
        "check_version": check.version,
        "parameters_hash": parameters_hash(check),
        "state": ShadowState.RUNNING,
    }
    try:
        with transaction.atomic():
            shadow = Shadow.objects.create(
                **found,
                parameters=msgspec.to_builtins(check.parameters),
                traces_total=Trace.objects.filter(project=project).count(),
                created_by_id=user_id,
                created_at=now,
            )
    except IntegrityError:
        return Shadow.objects.get(**found), False
    return shadow, True


def shadow_key(shadow: Shadow) -> CheckKey:
    """The key under which the answers of a shadow are stored."""
    return shadow.check_slug, shadow.check_version, shadow.parameters_hash


def check_of(shadow: Shadow, lineup: LineUp) -> Check | None:
    """The check that a shadow tries; None when this version is no longer here."""
    for check in versions_here(lineup, shadow.check_slug):
        if check.version == shadow.check_version:
            found = with_stored_parameters(check, shadow.parameters)
            return found if key_of(found) == shadow_key(shadow) else None
    return None


def claim_shadow(*, shadow_id: int, lease_seconds: int) -> ShadowClaim | None:
    """Claim a running shadow by one conditional update; None if it is not free.

    After three claims in a row that stored nothing it is not claimed again. A shadow
    whose version is no longer here fails with a sentence.
    """
    free = Q(claimed_until=None) | Q(claimed_until__lt=Now())
    running = Shadow.objects.filter(pk=shadow_id, state=ShadowState.RUNNING)
    claimed = running.filter(free, tries__lt=MAX_TRIES).update(
        tries=F("tries") + 1, claimed_until=Now() + timedelta(seconds=lease_seconds)
    )
    if claimed != 1:
        return None
    shadow = Shadow.objects.get(pk=shadow_id)
    check = check_of(shadow, lineup_of(shadow.project_id))
    if check is None or shadow.claimed_until is None:
        _fail(
            running,
            "This version of the check is not part of Evalsite any more, or it may not "
            "have these parameters.",
        )
        return None
    return ShadowClaim(
        shadow_id=shadow.pk,
        project_id=shadow.project_id,
        check=check,
        last_trace=shadow.last_trace,
        held_until=shadow.claimed_until,
        lease_seconds=lease_seconds,
    )


def _held(claim: ShadowClaim) -> QuerySet[Shadow]:
    return Shadow.objects.filter(
        pk=claim.shadow_id,
        state=ShadowState.RUNNING,
        claimed_until=claim.held_until,
    )


def advance(claim: ShadowClaim, *, last_trace: int, done: int) -> ShadowClaim:
    """Write how far the shadow has come and renew the lease; raises `LostShadow`.

    Belongs into the transaction that stores the answers of these `done` traces.
    """
    moved = _held(claim).update(
        last_trace=last_trace,
        traces_done=F("traces_done") + done,
        tries=0,
        claimed_until=Now() + timedelta(seconds=claim.lease_seconds),
    )
    if moved != 1:
        raise LostShadow
    shadow = Shadow.objects.get(pk=claim.shadow_id)
    if shadow.claimed_until is None:
        raise LostShadow
    return msgspec.structs.replace(
        claim, last_trace=last_trace, held_until=shadow.claimed_until
    )


def put_down(claim: ShadowClaim) -> None:
    """Let another worker go on."""
    _held(claim).update(claimed_until=None)


def finish(claim: ShadowClaim) -> None:
    """End a shadow that has come to the last trace."""
    _held(claim).update(
        state=ShadowState.DONE,
        claimed_until=None,
        finished_at=Now(),
        traces_total=F("traces_done"),
    )


def cancel_shadow(*, shadow_id: int) -> bool:
    """Stop a running shadow; its answers so far stay. Whether it was running."""
    stopped = Shadow.objects.filter(pk=shadow_id, state=ShadowState.RUNNING).update(
        state=ShadowState.CANCELLED, claimed_until=None, finished_at=Now()
    )
    return stopped == 1


def note_adopted(*, project_id: int, key: CheckKey) -> None:
    """Say of the shadows of a key that it was adopted; running ones are stopped."""
    slug, version, parameters = key
    Shadow.objects.filter(
        project_id=project_id,
        check_slug=slug,
        check_version=version,
        parameters_hash=parameters,
        state__in=[ShadowState.RUNNING, ShadowState.DONE],
    ).update(
        state=ShadowState.ADOPTED,
        claimed_until=None,
        finished_at=Now(),
    )


def _fail(shadows: QuerySet[Shadow], sentence: str) -> int:
    return shadows.update(
        state=ShadowState.FAILED,
        failure=sentence,
        claimed_until=None,
        finished_at=Now(),
    )


def give_up_stuck_shadows() -> int:
    """End what was claimed three times and stored nothing; returns how many."""
    stuck = Shadow.objects.filter(
        state=ShadowState.RUNNING, claimed_until__lt=Now(), tries__gte=MAX_TRIES
    )
    return _fail(
        stuck,
        f"This shadow ended its worker {MAX_TRIES} times. What it had answered is "
        "kept, and the queue was never touched.",
    )


def free_shadow_ids() -> list[int]:
    """Ids of shadows that a worker should take now, oldest first, 20 at most.

    One that was begun in the last ten seconds is left to its own message.
    """
    waiting = Q(claimed_until=None, created_at__lt=Now() - timedelta(seconds=10))
    rows = Shadow.objects.filter(
        waiting | Q(claimed_until__lt=Now()),
        state=ShadowState.RUNNING,
        tries__lt=MAX_TRIES,
    )
    return list(rows.order_by("pk").values_list("pk", flat=True)[:AT_ONCE])


def shadows_of(project_id: int, slug: str) -> QuerySet[Shadow]:
    """The shadows of a check in a project, the newest first."""
    rows = Shadow.objects.filter(project_id=project_id, check_slug=slug)
    return rows.select_related("created_by").order_by("-pk")
