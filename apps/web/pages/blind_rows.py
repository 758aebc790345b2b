"""Blind looks among the rows of the review queue, at fixed places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from django.db.models import QuerySet

from apps.review.blind_sample import offered_to
from apps.review.models import BlindLook
from apps.review.queries import PAGE_SIZE
from apps.review.transitions import SignalState
from apps.review.turns import SIGNALS_BETWEEN, has_blind_looks
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.queue import QueuePage, QueueRow


class MixedRow(msgspec.Struct, frozen=True):
    """One row of the queue: a signal, or a blind look."""

    signal: QueueRow | None = None
    look: BlindLook | None = None


class MixedRows(msgspec.Struct, frozen=True):
    """The rows of a page; `waiting` looks are offered, `next_query` leads on."""

    rows: list[MixedRow]
    waiting: int
    next_query: str


def mixed_rows(place: Place, page: QueuePage, query: Mapping[str, str]) -> MixedRows:
    """The signals of a page with a blind look after each four of them.

    A page goes on with the looks where the last one stopped (`looks` in the address),
    and the last page has all that are left. Two queries.
    """
    looks = _looks(place, page)
    if looks is None:
        return MixedRows(
            [MixedRow(signal=row) for row in page.rows], 0, page.next_query
        )
    start = whole(query.get("looks", "")) or 0
    number = len(page.rows) // SIGNALS_BETWEEN if page.next_query else PAGE_SIZE
    shown = list(looks[start : start + number])
    return MixedRows(
        rows=_interleaved(page.rows, shown),
        waiting=looks.count(),
        next_query=(
            f"{page.next_query}&looks={start + len(shown)}" if page.next_query else ""
        ),
    )


def _looks(place: Place, page: QueuePage) -> QuerySet[BlindLook] | None:
    """The looks that belong to a view; None where it holds none."""
    if has_blind_looks(page.where):
        return offered_to(project=place.project, user=place.user)
    mine = BlindLook.objects.filter(project=place.project).select_related(
        "trace", "trace__task"
    )
    if page.where.is_narrowed:
        return None
    if page.where.view == "mine":
        held = mine.filter(state=SignalState.CLAIMED, claimed_by=place.user)
        return held.order_by("place", "id")
    if page.where.view == "decided":
        decided = mine.filter(state=SignalState.DECIDED, decided_by=place.user)
        return decided.order_by("-decided_at", "-id")
    return None


def _interleaved(
    signals: Sequence[QueueRow], looks: Sequence[BlindLook]
) -> list[MixedRow]:
    rows: list[MixedRow] = []
    waiting = list(looks)
    for number, signal in enumerate(signals, start=1):
        rows.append(MixedRow(signal=signal))
        if number % SIGNALS_BETWEEN == 0 and waiting:
            rows.append(MixedRow(look=waiting.pop(0)))
    return rows + [MixedRow(look=look) for look in waiting]
