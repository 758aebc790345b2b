"""What a shadow would change in the queue, with the decisions that people already took.

Both keys are compared on the traces that both have answered. A signal of one key is that
of the other where trace and scope are the same; where what they read differs, that is
said. A decision counts for a key where it gives a signal on the very fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec
from django.db.models import (
    Count,
    Exists,
    F,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
)

from apps.accounts.models import Project
from apps.engine.check import Answer, Check, Level
from apps.engine.nulls import Interval, wilson
from apps.review.models import Signal
from apps.review.transitions import SignalState, Verdict
from apps.screening.chance_counts import ChanceCount, chance_count
from apps.screening.lineup import Entry, LineUp, key_of
from apps.screening.models import Screening
from apps.screening.queries import counts_per_check
from apps.traces.models import Trace

PAGE_SIZE = 25


class Change(StrEnum):
    """What becomes of a signal when the shadow's key is adopted."""

    APPEAR = "appear"
    VANISH = "vanish"
    PERSIST = "persist"


class Decided(msgspec.Struct, frozen=True):
    """How people decided some signals: confirmed, dismissed by reason, others."""

    total: int = 0
    confirmed: int = 0
    dismissed: dict[str, int] = {}
    others: int = 0

    @property
    def dismissals(self) -> int:
        """All that were dismissed."""
        return sum(self.dismissed.values())

    @property
    def precision(self) -> Interval | None:
        """Confirmed of confirmed and dismissed, with its Wilson interval; None for 0/0."""
        judged = self.confirmed + self.dismissals
        return wilson(self.confirmed, judged) if judged else None


class Side(msgspec.Struct, frozen=True):
    """One key on the compared traces: its signals, chance, and the decisions on them."""

    check: Check
    queued: int
    telemetry: int
    applicable: int
    chance: ChanceCount | None
    decided: Decided


class ShadowResult(msgspec.Struct, frozen=True):
    """Both keys side by side, and what would change.

    `unanswered` counts traces about which the shadow's key has no answer: they came or
    changed since.
    """

    current: Side
    shadow: Side
    changes: dict[Change, Decided]
    compared: int
    unanswered: int


class Pair(msgspec.Struct, frozen=True):
    """The key that counts and the shadow's key of one check, in one project."""

    project: Project
    current: Check
    shadow: Check

    def rows(self, check: Check) -> QuerySet[Screening]:
        """The answers of one of the two."""
        slug, version, parameters = key_of(check)
        return Screening.objects.filter(
            project=self.project,
            check_slug=slug,
            check_version=version,
            parameters_hash=parameters,
        )

    def other(self, check: Check) -> Check:
        """The other one of the two."""
        return self.current if check is self.shadow else self.shadow

    def queued(self, check: Check) -> QuerySet[Screening]:
        """The review signals of one on traces that the other has answered about."""
        there = self.rows(self.other(check)).filter(trace_id=OuterRef("trace_id"))
        return self.rows(check).filter(
            Exists(there), answer=Answer.SIGNAL, level=Level.REVIEW_SIGNAL
        )

    def changed(self, change: Change) -> QuerySet[Screening]:
        """The signals that appear, vanish or persist, with how they were decided."""
        check = self.current if change is Change.VANISH else self.shadow
        twins = self.rows(self.other(check)).filter(
            trace_id=OuterRef("trace_id"),
            scope=OuterRef("scope"),
            answer=Answer.SIGNAL,
            level=Level.REVIEW_SIGNAL,
        )
        rows = with_decisions(self.queued(check))
        if change is Change.PERSIST:
            same = twins.filter(input_hash=OuterRef("input_hash"))
            return rows.filter(Exists(twins)).annotate(reads_the_same=Exists(same))
        return rows.filter(~Exists(twins)).annotate(reads_the_same=Value(value=True))


def with_decisions(rows: QuerySet[Screening]) -> QuerySet[Screening]:
    """Answers with the signal on their fingerprint: its id, and how it was decided."""
    on_it = Signal.objects.filter(
        trace_id=OuterRef("trace_id"),
        check_slug=OuterRef("check_slug"),
        screening__scope=OuterRef("scope"),
        screening__input_hash=OuterRef("input_hash"),
    ).order_by("pk")
    decided = on_it.filter(state=SignalState.DECIDED)
    return rows.annotate(
        decided_verdict=Subquery(decided.values("verdict")[:1]),
        decided_reason=Subquery(decided.values("reason")[:1]),
        signal_there=Subquery(on_it.values("pk")[:1]),
    )


def decided_of(rows: QuerySet[Screening]) -> Decided:
    """How the signals in `rows` (`with_decisions`) were decided: one query."""
    groups = (
        rows.order_by()
        .values(verdict=F("decided_verdict"), reason=F("decided_reason"))
        .annotate(number=Count("pk"))
    )
    total = confirmed = others = 0
    dismissed: dict[str, int] = {}
    for group in groups:
        number: int = group["number"]
        total += number
        if group["verdict"] == Verdict.CONFIRM:
            confirmed += number
        elif group["verdict"] == Verdict.DISMISS:
            dismissed[group["reason"]] = number
        elif group["verdict"]:
            others += number
    return Decided(total, confirmed, dismissed, others)


def compare(pair: Pair) -> ShadowResult:
    """Both keys on the traces that both have answered about.

    The same number of queries however many traces there are.
    """
    both = (
        pair.rows(pair.shadow)
        .filter(Exists(pair.rows(pair.current).filter(trace_id=OuterRef("trace_id"))))
        .order_by()
        .values_list("trace_id", flat=True)
    )
    answered = pair.rows(pair.shadow).filter(trace_id=OuterRef("pk"))
    without = Trace.objects.filter(~Exists(answered), project=pair.project)
    return ShadowResult(
        current=_side(pair, pair.current, both),
        shadow=_side(pair, pair.shadow, both),
        changes={change: decided_of(pair.changed(change)) for change in Change},
        compared=both.distinct().count(),
        unanswered=without.count(),
    )


def _side(pair: Pair, check: Check, both: Iterable[int]) -> Side:
    alone = LineUp([Entry(check, key_of(check))])
    [counts] = counts_per_check(pair.project, trace_ids=both, lineup=alone)
    return Side(
        check=check,
        queued=counts.queued,
        telemetry=counts.signals - counts.queued,
        applicable=counts.applicable,
        chance=chance_count(counts),
        decided=decided_of(with_decisions(pair.queued(check))),
    )


def changed_page(pair: Pair, change: Change, *, after: int = 0) -> list[Screening]:
    """Up to 26 of the signals that change, by id after `after`, with their traces.

    The 26th says that there are more.
    """
    rows = pair.changed(change).filter(pk__gt=after).select_related("trace")
    return list(rows.defer("evidence").order_by("pk")[: PAGE_SIZE + 1])
