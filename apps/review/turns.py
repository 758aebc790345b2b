"""Whose turn it is: blind looks come between signals, at a fixed rate.

A reviewer meets one blind look after each four signals, in the list and when asking
for the next one, whatever the checks said of its trace.
"""

from __future__ import annotations

from typing import Final

from apps.accounts.models import Project, User
from apps.review import blind, operations
from apps.review.blind_states import BlindAct
from apps.review.models import BlindEntry, BlindLook, HistoryEntry, Signal
from apps.review.queries import QueueFilter
from apps.review.transitions import Act

SIGNALS_BETWEEN: Final = 4


def has_blind_looks(where: QueueFilter) -> bool:
    """Whether a view holds blind looks: one that is narrowed would tell about them."""
    return where.view == "open" and not where.is_narrowed


def claim_next_turn(
    *, project: Project, user: User, where: QueueFilter
) -> Signal | BlindLook | None:
    """Claim what comes next in a view: a signal, or a blind look when it is its turn.

    None when nothing is open in this view.
    """
    if not has_blind_looks(where):
        return operations.claim_next(project=project, user=user, where=where)
    if is_turn_of_blind_look(project=project, user=user):
        look = blind.claim_next(project=project, user=user)
        if look is not None:
            return look
    signal = operations.claim_next(project=project, user=user, where=where)
    if signal is not None:
        return signal
    return blind.claim_next(project=project, user=user)


def is_turn_of_blind_look(*, project: Project, user: User) -> bool:
    """Whether `user` has claimed four signals here since the last blind look."""
    last = (
        BlindEntry.objects.filter(
            look__project=project, by=user, act=BlindAct.CLAIMED.value
        )
        .order_by("-at", "-id")
        .first()
    )
    claimed = HistoryEntry.objects.filter(
        signal__project=project, by=user, act=Act.CLAIMED.value
    )
    if last is not None:
        claimed = claimed.filter(at__gt=last.at)
    return len(claimed.order_by()[:SIGNALS_BETWEEN]) == SIGNALS_BETWEEN
