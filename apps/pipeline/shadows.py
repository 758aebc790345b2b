"""Running a shadow batch by batch, and adopting, pausing and resuming keys of checks.

The answers of a batch and how far the shadow has come are one transaction, so a killed
worker leaves whole batches and the next one goes on from there. Adopting wakes the
catch-up, which settles the queue; nothing else here touches a signal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

import msgspec
from django.conf import settings
from django.db import transaction

from apps.accounts.models import Project
from apps.engine.check import Check
from apps.pipeline.lineups import (
    LONGEST_SECONDS,
    MOST_STEPS,
    MOST_TRACES,
    wake_catch_up,
)
from apps.pipeline.missing_answers import missing_answers
from apps.pipeline.waking import wake_on_commit
from apps.screening.lineup import AdoptedMeanwhile as AdoptedMeanwhile
from apps.screening.lineup import Choice, Entry, adopt, key_of, lineup_of
from apps.screening.models import Adoption, CheckState, Shadow
from apps.screening.operations import copy_answers
from apps.screening.regression import Failure, run_cases
from apps.screening.shadows import (
    LostShadow,
    ShadowClaim,
    advance,
    claim_shadow,
    finish,
    note_adopted,
    put_down,
    start_shadow,
)
from apps.traces.locking import wait_for_traces
from apps.traces.models import Trace


class CasesFail(Exception):
    """Regression cases stand against a key; `failures` says which, and why."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        count = len(failures)
        cases = (
            "1 regression case would be a signal"
            if count == 1
            else f"{count} regression cases would be signals"
        )
        super().__init__(
            f"Not adopted: with it {cases} again. There is no way round a case: retire "
            "it first, if it asks too much."
        )
        self.failures = list(failures)


class NothingToChange(Exception):
    """The line-up is as asked for already; the message is a sentence."""


def begin_shadow(
    *, project: Project, check: Check, user_id: int | None, now: datetime
) -> tuple[Shadow, bool]:
    """Begin to try a key and wake a worker; the shadow, and whether it is new.

    Raises `CannotShadow` with a sentence for the key that counts anyway.
    """
    with transaction.atomic():
        shadow, is_new = start_shadow(
            project=project, check=check, user_id=user_id, now=now
        )
        if is_new:
            wake_on_commit("pipeline.run_shadow", shadow_id=shadow.pk)
    return shadow, is_new


def run_shadow(*, shadow_id: int) -> bool:
    """Go on with a shadow for ten seconds at most; whether there is more to do.

    Safe to run any number of times and in parallel: the lease decides who works.
    """
    claim = claim_shadow(shadow_id=shadow_id, lease_seconds=settings.LEASE_SECONDS)
    if claim is None:
        return False
    end = time.monotonic() + LONGEST_SECONDS
    try:
        while time.monotonic() < end:
            ids = _next_ids(claim)
            if not ids:
                finish(claim)
                return False
            claim = _answer(claim, ids)
    except LostShadow:
        return False
    put_down(claim)
    return True


def _next_ids(claim: ShadowClaim) -> list[int]:
    """The next traces after the last one: at most 10,000 steps, a larger one alone."""
    rows = Trace.objects.filter(project_id=claim.project_id, pk__gt=claim.last_trace)
    ids: list[int] = []
    steps = 0
    for pk, step_count in rows.order_by("pk").values_list("pk", "step_count")[
        :MOST_TRACES
    ]:
        steps += step_count
        if ids and steps > MOST_STEPS:
            break
        ids.append(pk)
    return ids


def _answer(claim: ShadowClaim, ids: Sequence[int]) -> ShadowClaim:
    with transaction.atomic():
        # Late spans wait until this is stored, and then drop it with all the rest.
        traces = wait_for_traces(ids)
        copy_answers(
            project_id=claim.project_id,
            answered=list(missing_answers(traces, [claim.check])),
        )
        return advance(claim, last_trace=ids[-1], done=len(ids))


class Wish(msgspec.Struct, frozen=True):
    """The key that somebody wants to count, and why.

    `seen` is the number of the last adoption that they saw; 0 for none.
    """

    check: Check
    note: str = ""
    seen: int | None = None


def adopt_key(
    *, project_id: int, wish: Wish, user_id: int | None, now: datetime
) -> Adoption:
    """Make a key current, unless a regression case stands against it; wakes the catch-up.

    A paused check stays paused. Raises `CasesFail`, `NothingToChange` when it counts
    already, and `AdoptedMeanwhile` when somebody else was faster.
    """
    check = wish.check
    _see_a_change(project_id, check)
    if failures := run_cases(project_id=project_id, check=check):
        raise CasesFail(failures)
    with transaction.atomic():
        _lock(project_id)
        _see_nothing_new(project_id, wish)
        entry = _see_a_change(project_id, check)
        state = CheckState.PAUSED if entry.is_paused else CheckState.ACTIVE
        row = adopt(
            project_id=project_id,
            choice=Choice(check, state, wish.note),
            user_id=user_id,
            now=now,
        )
        note_adopted(project_id=project_id, key=key_of(check))
        wake_catch_up(project_id=project_id)
    return row


def _lock(project_id: int) -> None:
    """Let nobody else change the line-up until the caller's transaction ends."""
    Project.objects.select_for_update(no_key=True).get(pk=project_id)


def _see_a_change(project_id: int, check: Check) -> Entry:
    entry = lineup_of(project_id).by_slug[check.slug]
    if entry.key == key_of(check):
        raise NothingToChange("This version with these parameters counts already.")
    return entry


def _see_nothing_new(project_id: int, wish: Wish) -> None:
    """Of all who saw the same history only the first one goes on."""
    last = (
        Adoption.objects.filter(project_id=project_id, check_slug=wish.check.slug)
        .order_by("-number")
        .values_list("number", flat=True)
        .first()
    )
    if wish.seen is not None and wish.seen != (last or 0):
        raise AdoptedMeanwhile(
            "Somebody changed this check since you opened the page. Look at its history "
            "first."
        )


def set_paused(
    *,
    project_id: int,
    slug: str,
    is_paused: bool,
    user_id: int | None,
    now: datetime,
) -> Adoption:
    """Pause a check or let it go on; its key stays. Wakes the catch-up.

    A paused check answers about new traces, but nothing of it is queued. Raises
    `NothingToChange` and `AdoptedMeanwhile`.
    """
    with transaction.atomic():
        # After the lock: a key that was adopted a moment ago is the one that is paused.
        _lock(project_id)
        entry = lineup_of(project_id).by_slug[slug]
        _see_it_can_be(entry, is_paused=is_paused)
        state = CheckState.PAUSED if is_paused else CheckState.ACTIVE
        row = adopt(
            project_id=project_id,
            choice=Choice(entry.check, state),
            user_id=user_id,
            now=now,
        )
        wake_catch_up(project_id=project_id)
    return row


def _see_it_can_be(entry: Entry, *, is_paused: bool) -> None:
    if entry.is_defined_here:
        raise NothingToChange(
            "This check is defined in the project; it is paused on its own page."
        )
    if entry.is_paused == is_paused:
        words = "paused" if is_paused else "not paused"
        raise NothingToChange(f"This check is {words} already.")
