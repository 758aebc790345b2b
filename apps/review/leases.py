"""Who has a signal or a blind look: claims that end by themselves, and who came first.

Both have the same columns for it. Everything here is asked while the row is locked.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.accounts.models import User
from apps.review.models import BlindEntry, BlindLook, HistoryEntry, Signal
from apps.review.transitions import Act, SignalState

Held = Signal | BlindLook
HeldRows = QuerySet[Signal] | QuerySet[BlindLook]

_CLAIMS = [act.value for act in (Act.CLAIMED, Act.EXPIRED, Act.RELEASED)]
_MOST_EXPIRED = 500


class Conflict(Exception):
    """Someone else acted first; the message says who and what."""


class AlreadySubmitted(Exception):
    """This very form was taken before; nothing is written a second time."""


def claim_until() -> Any:
    """The end of a lease that begins now, by the clock of the database."""
    return Now() + timedelta(seconds=settings.CLAIM_SECONDS)


def hold(row: Held, user: User) -> None:
    """Let `user` have the row until their lease ends; the caller saves it."""
    row.claimed_by = user
    row.claimed_until = claim_until()


def let_go(row: Held) -> None:
    """Let nobody have the row; the caller saves it."""
    row.claimed_by = None
    row.claimed_until = None


def is_held_by(row: Held, user: User) -> bool:
    """Whether `user` has claimed it, even if their lease has ended meanwhile."""
    return row.state == SignalState.CLAIMED and row.claimed_by_id == user.pk


def lease_is_live(row: Held) -> bool:
    """Whether somebody has claimed it and their lease has not ended."""
    if row.state != SignalState.CLAIMED or row.claimed_until is None:
        return False
    return row.claimed_until > _database_now()


def _database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


def renewed(rows: HeldRows, user: User) -> datetime | None:
    """Renew the user's own claim of one row; its new end, or None without a claim."""
    held = rows.filter(state=SignalState.CLAIMED, claimed_by=user)
    if held.update(claimed_until=claim_until()) != 1:
        return None
    return rows.values_list("claimed_until", flat=True).get()


def expired(rows: HeldRows) -> list[int]:
    """The ids of some rows whose reviewer let go without a word."""
    ended = rows.filter(state=SignalState.CLAIMED, claimed_until__lt=Now())
    return list(ended.values_list("pk", flat=True)[:_MOST_EXPIRED])


def who_has(row: Held, what: str) -> str:
    """A sentence that says who looks at `what` now."""
    who = row.claimed_by.label if row.claimed_by else "Someone"
    return f"{who} is looking at this {what} now."


def has_moved_on(
    version: int,
    base_version: int,
    entries: QuerySet[HistoryEntry] | QuerySet[BlindEntry],
) -> bool:
    """Whether its history says more since `base_version` than claims that came and went."""
    if version == base_version:
        return False
    since = entries.filter(base_version__gte=base_version)
    return since.exclude(act__in=_CLAIMS).exists()
