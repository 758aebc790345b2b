"""Reading the queue: filters, orders and keyset pages; one signal; its history."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Value

from apps.accounts.models import Project, User
from apps.engine.check import Answer, Level
from apps.replays.batch_queries import experiment_state
from apps.review.models import Draft, HistoryEntry, Signal
from apps.review.transitions import Act, SignalState
from apps.scoring.queries import is_noted
from apps.screening.lineup import LineUp
from apps.screening.models import Screening

PAGE_SIZE = 50

ORDERS: dict[str, tuple[str, ...]] = {
    "masked": ("-is_masked", "rank", "chance", "id"),
    "rarest": ("rank", "chance", "id"),
    "largest": ("-effect", "id"),
    "newest": ("-id",),
    "oldest": ("id",),
}


class QueueFilter(msgspec.Struct, frozen=True):
    """What a view of the queue shows; every field comes from the URL.

    `masked` leaves only signals at agents that are red while the outcome is green.
    """

    view: str = "open"
    check: str = ""
    agent: str = ""
    outcome: str = ""
    usage: str = ""
    upload: int | None = None
    masked: bool = False
    sort: str = "masked"

    @property
    def is_narrowed(self) -> bool:
        """Whether anything beyond the view is filtered."""
        return self != QueueFilter(view=self.view, sort=self.sort)


class QueueCounts(msgspec.Struct, frozen=True):
    """How many signals of a project are open, claimed, mine, decided, superseded.

    `masked` counts those of the open and claimed ones that are masked.
    """

    open: int
    claimed: int
    masked: int
    mine: int
    decided: int
    superseded: int

    @property
    def total(self) -> int:
        """All signals of the project."""
        return self.open + self.claimed + self.decided + self.superseded


_VIEW_STATES: dict[str, tuple[SignalState, ...]] = {
    "open": (SignalState.OPEN, SignalState.CLAIMED),
    "decided": (SignalState.DECIDED,),
    "all": tuple(SignalState),
}


def counts(*, project: Project, user: User) -> QueueCounts:
    """The counts of a project's queue, for tabs and empty states."""
    row = Signal.objects.filter(project=project).aggregate(
        open=Count("id", filter=Q(state=SignalState.OPEN)),
        claimed=Count("id", filter=Q(state=SignalState.CLAIMED)),
        masked=Count("id", filter=Q(is_masked=True, state__in=_VIEW_STATES["open"])),
        mine=Count("id", filter=Q(state=SignalState.CLAIMED, claimed_by=user)),
        decided=Count("id", filter=Q(state=SignalState.DECIDED)),
        superseded=Count("id", filter=Q(state=SignalState.SUPERSEDED)),
    )
    return QueueCounts(**row)


def open_count(*, project: Project) -> int:
    """How many signals of a project nobody has claimed: one count of one index."""
    return Signal.objects.filter(project=project, state=SignalState.OPEN).count()


def _conditions(where: QueueFilter) -> Iterator[Q]:
    if where.check:
        yield Q(check_slug=where.check)
    if where.agent:
        yield Q(agent=where.agent)
    if where.outcome:
        yield Q(outcome=where.outcome)
    if where.usage:
        yield Q(usage_missing=where.usage == "missing")
    if where.upload:
        yield Q(trace__upload_id=where.upload)
    if where.masked:
        yield Q(is_masked=True)


def queue_signals(
    *,
    project: Project,
    where: QueueFilter,
    state: SignalState | None = None,
    user: User | None = None,
) -> QuerySet[Signal]:
    """The signals of a view in its order; every order ends in the id.

    With `state` only signals in it; the view `mine` needs `user`.
    """
    signals = Signal.objects.filter(*_conditions(where), project=project)
    if state is not None:
        signals = signals.filter(state=state)
    elif where.view == "mine" and user is not None:
        signals = signals.filter(state=SignalState.CLAIMED, claimed_by=user)
    else:
        states = _VIEW_STATES.get(where.view, _VIEW_STATES["open"])
        signals = signals.filter(state__in=states)
    return signals.order_by(*order_of(where))


def order_of(where: QueueFilter) -> tuple[str, ...]:
    """The columns by which a view is sorted: the masked first, unless it says otherwise.

    Where all are masked an index gives the rest of the order.
    """
    order = ORDERS.get(where.sort, ORDERS["masked"])
    return ORDERS["rarest"] if where.masked and order == ORDERS["masked"] else order


def parts_in_order(
    signals: QuerySet[Signal], *, where: QueueFilter
) -> list[QuerySet[Signal]]:
    """The signals of a view in parts, one after the other in its order.

    An index gives each part sorted, so whoever wants the first reads one row.
    """
    if order_of(where) != ORDERS["masked"]:
        return [signals]
    by_rank = signals.order_by(*ORDERS["rarest"])
    return [by_rank.filter(is_masked=True), by_rank.filter(is_masked=False)]


def with_rows(signals: QuerySet[Signal]) -> QuerySet[Signal]:
    """The same signals with everything that a row of the queue shows.

    `experiment` is the state of the newest batch that was made for it, None for none;
    `came_back` says if one has brought it back into the queue.
    """
    back = HistoryEntry.objects.filter(signal=OuterRef("pk"), act=Act.RETURNED.value)
    return signals.select_related(
        "screening", "trace", "trace__task", "claimed_by", "decided_by"
    ).annotate(experiment=experiment_state(), came_back=Exists(back))


def after(
    signals: QuerySet[Signal], *, where: QueueFilter, last: Signal
) -> QuerySet[Signal]:
    """The signals that come after `last` in the view's order (keyset)."""
    return signals.filter(_beyond(where, last, forward=True))


def _beyond(where: QueueFilter, edge: Signal, *, forward: bool) -> Q:
    """What comes after `edge` in the view's order, or before it: any number of columns.

    Of (a, b): a beyond, or a equal and b beyond. All that lies beyond has a first
    column at or beyond the edge's; saying so lets the database walk its index.
    """
    order = order_of(where)
    beyond, same = Q(pk__in=[]), Q()
    for name in order:
        field = name.lstrip("-")
        compare = "lt" if name.startswith("-") == forward else "gt"
        value = getattr(edge, field)
        beyond |= same & Q(**{f"{field}__{compare}": value})
        same &= Q(**{field: value})
    first = order[0].lstrip("-")
    least = "lte" if order[0].startswith("-") == forward else "gte"
    return Q(**{f"{first}__{least}": getattr(edge, first)}) & beyond


def neighbours(
    *, project: Project, where: QueueFilter, signal: Signal, user: User
) -> tuple[int | None, int | None]:
    """The ids before and after `signal` in the view's order; None at the ends."""
    signals = queue_signals(project=project, where=where, user=user).exclude(
        pk=signal.pk
    )
    following = signals.filter(_beyond(where, signal, forward=True))
    preceding = signals.filter(_beyond(where, signal, forward=False)).reverse()
    sides = [
        side.annotate(is_after=Value(is_after)).values_list("is_after", "pk")[:1]
        for side, is_after in ((preceding, False), (following, True))
    ]
    # Each side walks its index to one row; both in one statement.
    found = dict(sides[0].union(sides[1], all=True))
    return found.get(False), found.get(True)


def signal_of(*, project: Project, signal_id: int) -> Signal:
    """One signal of this project with its trace and how settled that project's verdicts are.

    Raises `Signal.DoesNotExist`.
    """
    rows = with_rows(Signal.objects.filter(project=project))
    return (
        rows.select_related("trace__project__projectverdict")
        .annotate(is_noted=is_noted("trace_id"))
        .get(pk=signal_id)
    )


def history_of(signal: Signal) -> QuerySet[HistoryEntry]:
    """Everything that happened to a signal, oldest first."""
    return (
        HistoryEntry.objects.filter(signal=signal)
        .select_related("by")
        .order_by("base_version")
    )


def draft_of(*, signal: Signal, user: User) -> Draft | None:
    """What this reviewer typed and did not submit, or None."""
    return Draft.objects.filter(signal=signal, user=user).first()


def last_decided_by(*, project: Project, user: User) -> Signal | None:
    """The signal that this reviewer decided last, for undo; None if none."""
    return (
        Signal.objects.filter(
            project=project, state=SignalState.DECIDED, decided_by=user
        )
        .order_by("-decided_at", "-id")
        .first()
    )


def check_precision(
    *, project: Project, lineup: LineUp, check_slug: str = ""
) -> dict[str, tuple[int, int, int]]:
    """Per check slug: signals, decided, confirmed. A check without decisions is 0, 0.

    A decision is about what a check saw, whichever version of it: those count where the
    current key of the check gives a review signal on the same evidence. With
    `check_slug` that check alone; nothing else is read then.
    """
    signals = Signal.objects.filter(project=project)
    if check_slug:
        signals = signals.filter(check_slug=check_slug)
        lineup = LineUp([one for one in lineup.entries if one.key[0] == check_slug])
    given = signals.filter(_is_given(lineup))
    rows = given.values("check_slug").annotate(
        fired=Count("id"),
        decided=Count("id", filter=Q(verdict__in=["confirm", "dismiss"])),
        confirmed=Count("id", filter=Q(verdict="confirm")),
    )
    return {
        row["check_slug"]: (row["fired"], row["decided"], row["confirmed"])
        for row in rows
    }


def _is_given(lineup: LineUp) -> Exists:
    """Whether a current key gives a review signal on the evidence of the signal."""
    same = Screening.objects.filter(
        lineup.current(),
        trace_id=OuterRef("trace_id"),
        check_slug=OuterRef("check_slug"),
        scope=OuterRef("screening__scope"),
        input_hash=OuterRef("screening__input_hash"),
        answer=Answer.SIGNAL,
        level=Level.REVIEW_SIGNAL,
    )
    return Exists(same)
