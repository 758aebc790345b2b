"""What a batch may cost: reserved before a call, settled after it.

A reservation is one conditional update of the batch's row, so that no number of workers
passes a cap together. What a call may cost at worst is reserved; where its usage or its
price stays unknown, the worst counts as spent. Providers may bill otherwise than they
report: that is not seen here.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Final

import msgspec
from django.conf import settings
from django.db import DataError, connection, transaction
from django.db.models import (
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    Value,
)
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from apps.replays.models import Batch, DaySpending, RunAttempt, Target
from apps.replays.transitions import BatchState

_NOTHING: Final = Decimal(0)


class Cost(msgspec.Struct, frozen=True):
    """Tokens and money of one call; `money` is None where the price is not known."""

    tokens: int
    money: Decimal | None = None


class Payer(msgspec.Struct, frozen=True):
    """The attempt at a run that makes a call, and whose budget it is."""

    batch_id: int
    project_id: int
    run_id: int
    attempt: int


class Reserved(msgspec.Struct, frozen=True):
    """What was reserved for one call, until it is settled; `day` is a date as text."""

    payer: Payer
    worst: Cost
    day: str


class CapReached(Exception):
    """No further call fits; the message names the cap in a sentence."""


class NotYet(Exception):
    """A call may fit in so many `seconds`: others may give back what they reserved."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class NotHeld(Exception):
    """The attempt or its batch has ended, so that it makes no further call."""


def reserve(payer: Payer, worst: Cost) -> Reserved:
    """Reserve what the next call costs at worst.

    Raises `CapReached`, `NotYet` while the target has asked all to wait or only what
    others have reserved stands in the way, and `NotHeld`.
    """
    money = worst.money or _NOTHING
    with transaction.atomic():
        granted = _with_room(payer.batch_id, worst).update(
            reserved_calls=F("reserved_calls") + 1,
            reserved_tokens=F("reserved_tokens") + worst.tokens,
            reserved_money=F("reserved_money") + money,
        )
        if granted != 1:
            raise _why_not(payer.batch_id, worst)
        noted = _open(payer).update(
            calls=F("calls") + 1,
            reserved_calls=F("reserved_calls") + 1,
            reserved_tokens=F("reserved_tokens") + worst.tokens,
            reserved_money=F("reserved_money") + money,
        )
        if noted != 1:
            raise NotHeld
        return Reserved(payer, worst, _reserve_today(payer.project_id, money))


def _with_room(batch_id: int, worst: Cost) -> QuerySet[Batch]:
    """The batch, where it runs and a call of this cost fits under all of its caps.

    All conditions but that on the target stand on the row itself: PostgreSQL sees them
    again once it has waited for another update of the row.
    """
    rows = Batch.objects.filter(
        ~Exists(_paused(batch_id)),
        Q(max_calls=None) | Q(max_calls__gt=F("spent_calls") + F("reserved_calls")),
        Q(max_tokens=None)
        | Q(max_tokens__gte=F("spent_tokens") + F("reserved_tokens") + worst.tokens),
        Q(max_seconds=None) | Q(started_at__gt=Now() - _allowed_time()),
        pk=batch_id,
        state=BatchState.RUNNING.value,
    )
    if worst.money is None:
        return rows.filter(max_money=None)
    return rows.filter(
        Q(max_money=None)
        | Q(max_money__gte=F("spent_money") + F("reserved_money") + worst.money)
    )


def _allowed_time() -> ExpressionWrapper[CombinedExpression]:
    return ExpressionWrapper(
        F("max_seconds") * Value(timedelta(seconds=1)), output_field=DurationField()
    )


def _paused(batch_id: int) -> QuerySet[Target]:
    return Target.objects.filter(versions__batch=batch_id, paused_until__gt=Now())


def _open(payer: Payer) -> QuerySet[RunAttempt]:
    return RunAttempt.objects.filter(
        run_id=payer.run_id, number=payer.attempt, ended_at=None
    )


def _why_not(batch_id: int, worst: Cost) -> Exception:
    """Why a call did not fit a moment ago, as the exception that says so."""
    batch = Batch.objects.filter(pk=batch_id, state=BatchState.RUNNING.value).first()
    if batch is None:
        return NotHeld()
    if sentence := cap_reached(batch, worst):
        return CapReached(sentence)
    paused = _paused(batch_id).annotate(left=_left()).values_list("left", flat=True)
    left = paused.first()
    return NotYet(_SOON if left is None else left.total_seconds())


def _left() -> ExpressionWrapper[CombinedExpression]:
    return ExpressionWrapper(F("paused_until") - Now(), output_field=DurationField())


_SOON: Final = 0.5
"""Seconds after which others may have settled what they had reserved."""


def cap_reached(batch: Batch, worst: Cost, *, is_time_new: bool = False) -> str:
    """Which cap a call passes even if nothing else were reserved, as a sentence; or "".

    With `is_time_new` the time of the batch is about to begin anew.
    """
    if batch.max_calls is not None and batch.spent_calls >= batch.max_calls:
        return f"The cap of {batch.max_calls:,} calls is reached."
    if (
        batch.max_tokens is not None
        and batch.spent_tokens + worst.tokens > batch.max_tokens
    ):
        return (
            f"The cap of {batch.max_tokens:,} tokens is reached: {batch.spent_tokens:,} "
            f"are spent, and the next call may use {worst.tokens:,}."
        )
    reached = _money_reached(batch, worst)
    return reached if reached or is_time_new else time_reached(batch)


def _money_reached(batch: Batch, worst: Cost) -> str:
    if batch.max_money is None:
        return ""
    if worst.money is None:
        return (
            f"A cap of {_amount(batch.max_money)} is set, and the price of this model is "
            "not known, so that the cap could not be held. The operator gives prices in "
            "EVALSITE_REPLAY_PRICES."
        )
    if batch.spent_money + worst.money <= batch.max_money:
        return ""
    return (
        f"The cap of {_amount(batch.max_money)} is reached: {_amount(batch.spent_money)} "
        f"is spent, and the next call may cost {_amount(worst.money)}."
    )


def time_reached(batch: Batch) -> str:
    """Whether the time of a batch is over, as a sentence; or "". One query."""
    over = Batch.objects.filter(
        pk=batch.pk, max_seconds__isnull=False, started_at__lte=Now() - _allowed_time()
    )
    if not over.exists():
        return ""
    return f"The cap of {batch.max_seconds:,} seconds is reached."


def _amount(money: Decimal) -> str:
    return f"{money.normalize():,f}"


_TODAY = """
INSERT INTO replays_dayspending AS today (project_id, day, calls, money)
SELECT %(project)s, (now() AT TIME ZONE 'UTC')::date, 1, %(money)s
WHERE %(most_money)s = 0 OR %(money)s <= %(most_money)s
ON CONFLICT (project_id, day) DO UPDATE
SET calls = today.calls + 1, money = today.money + %(money)s
WHERE (%(most_calls)s = 0 OR today.calls < %(most_calls)s)
  AND (%(most_money)s = 0 OR today.money + %(money)s <= %(most_money)s)
RETURNING day::text
"""


def _reserve_today(project_id: int, money: Decimal) -> str:
    """Count a call among those of the project today (UTC); the day, as text."""
    most_money = Decimal(str(settings.REPLAY_MAX_MONEY_PER_DAY))
    with connection.cursor() as cursor:
        cursor.execute(
            _TODAY,
            {
                "project": project_id,
                "money": money,
                "most_calls": settings.REPLAY_MAX_CALLS_PER_DAY,
                "most_money": most_money,
            },
        )
        row = cursor.fetchone()
    if row is None:
        caps = f"{settings.REPLAY_MAX_CALLS_PER_DAY:,} calls"
        if most_money:
            caps += f" or {_amount(most_money)}"
        raise CapReached(
            f"What a project may use in one day is used up: {caps}. Resume tomorrow, or "
            "ask the operator for more."
        )
    day: str = row[0]
    return day


def settle(reserved: Reserved, used: Cost | None) -> None:
    """Take what a call cost out of what was reserved for it.

    `None` is a usage that is not known: the worst counts as spent then, as it does
    where a price is not known. A cost that no column can hold is not known either.
    Raises `NotHeld` where that was done already, because the worker was taken for dead.
    """
    try:
        _settle(reserved, used)
    except DataError:
        if used is None:
            raise
        _settle(reserved, None)


def _settle(reserved: Reserved, used: Cost | None) -> None:
    payer, worst = reserved.payer, reserved.worst
    spent = worst if used is None else used
    money = spent.money or _NOTHING
    held = worst.money or _NOTHING
    is_known = used is not None and used.money is not None
    change = {
        "reserved_calls": F("reserved_calls") - 1,
        "reserved_tokens": F("reserved_tokens") - worst.tokens,
        "reserved_money": F("reserved_money") - held,
        "spent_tokens": F("spent_tokens") + spent.tokens,
        "spent_money": F("spent_money") + money,
    }
    with transaction.atomic():
        batches = Batch.objects.filter(pk=payer.batch_id)
        batches.update(**change, spent_calls=F("spent_calls") + 1)
        if not is_known:
            batches.filter(is_money_known=True).update(is_money_known=False)
        if _open(payer).update(**change) != 1:
            raise NotHeld
        if money != held:
            DaySpending.objects.filter(
                project_id=payer.project_id, day=reserved.day
            ).update(money=F("money") - (held - money))


def keep_as_spent(*, batch_id: int, attempt_id: int) -> None:
    """Take everything that an attempt has reserved as spent; the caller holds the batch.

    Whether such calls were answered is not known, and so is what they cost.
    """
    attempt = RunAttempt.objects.select_for_update().get(pk=attempt_id)
    tokens, money = attempt.reserved_tokens, attempt.reserved_money
    change = {
        "reserved_calls": F("reserved_calls") - attempt.reserved_calls,
        "reserved_tokens": F("reserved_tokens") - tokens,
        "reserved_money": F("reserved_money") - money,
        "spent_tokens": F("spent_tokens") + tokens,
        "spent_money": F("spent_money") + money,
    }
    Batch.objects.filter(pk=batch_id).update(
        **change,
        spent_calls=F("spent_calls") + attempt.reserved_calls,
        is_money_known=False,
    )
    RunAttempt.objects.filter(pk=attempt_id).update(**change)
