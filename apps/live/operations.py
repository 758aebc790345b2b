"""Writing live spans: taking them, giving traces to workers, forgetting spans.

Leases and due times use the database's clock. Whoever takes spans locks the rows of
their traces in the order of their ids, so two requests with the same traces wait for
each other and never in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.functions import Length, Now

from apps.accounts.models import Project, RawBytes
from apps.live.arrival import ArrivedSpan, Refused
from apps.live.models import LiveSpan, LiveTrace, Refusal
from apps.traces.copying import copy_rows
from apps.traces.encryption import seal_bytes, site_key
from apps.traces.storage import CannotKeep, raw_policy, size_in_words

MAX_TRIES = 5
LATE = "late"
FULL = "full"
_SPAN_COLUMNS = (
    ("live_trace_id", "int8"),
    ("span_id", "text"),
    ("fullness", "int8"),
    ("data", "bytea"),
)
GIVEN_UP = (
    f"This trace could not be stored in {MAX_TRIES} attempts, which ended the worker or "
    "were refused by the database. Its spans are kept."
)
# A trace is parsed and written at this rate or faster; its lease grows by its size.
_BYTES_PER_LEASE_SECOND = 1_000_000
_FORGOTTEN_AT_ONCE = 500

Known = dict[tuple[int, str], tuple[int, int, int]]


class LostClaim(Exception):
    """Someone else assembles this trace now; what this worker made is dropped."""


class LiveClaim(msgspec.Struct, frozen=True):
    """The right to assemble one live trace, until the lease ends."""

    live_trace_id: int
    project_id: int
    native_id: str
    stored_as: int | None
    attempt: int
    generation: int
    byte_count: int
    stored_bytes: int
    refused_count: int
    first_seen: datetime
    redactions: dict[str, int]


def receive_spans(
    *, project: Project, spans: Sequence[ArrivedSpan], now: datetime
) -> Refused:
    """Keep spans durably; returns how many were not taken, with the reasons in words.

    When this returns everything else is committed. The same span again changes
    nothing unless it is fuller than the copy that was kept. Raises `CannotKeep`.
    """
    refused = Refused()
    if not spans:
        return refused
    seal = _seal_of(project)
    by_trace: dict[str, dict[str, ArrivedSpan]] = {}
    for span in spans:
        copies = by_trace.setdefault(span.trace_id, {})
        known = copies.get(span.span_id)
        if known is None or span.fullness > known.fullness:
            copies[span.span_id] = span
    with transaction.atomic():
        rows = _locked_rows(project.pk, sorted(by_trace), now)
        known_spans = _known_spans(rows, spans)
        for row in rows:
            taker = _Taker(row, known_spans, refused, seal)
            taker.take(by_trace[row.native_id].values())
            taker.write()
    return refused


def _seal_of(project: Project) -> Callable[[bytes], bytes]:
    """What is done to the bytes of a span before they are written."""
    policy = raw_policy(project)
    if policy is RawBytes.KEPT:
        return bytes
    if policy is RawBytes.ENCRYPTED and site_key() is None:
        raise CannotKeep(
            f"The project “{project.slug}” keeps what it receives encrypted only, and "
            "EVALSITE_RAW_KEY is not set."
        )
    return seal_bytes


def _locked_rows(
    project_id: int, native_ids: Sequence[str], now: datetime
) -> list[LiveTrace]:
    fresh = [
        LiveTrace(
            project_id=project_id, native_id=native_id, first_seen=now, last_seen=now
        )
        for native_id in native_ids
    ]
    LiveTrace.objects.bulk_create(
        fresh,
        update_conflicts=True,
        unique_fields=["project", "native_id"],
        update_fields=["last_seen"],
    )
    rows = LiveTrace.objects.filter(project_id=project_id, native_id__in=native_ids)
    return list(rows.order_by("native_id"))


def _known_spans(rows: Sequence[LiveTrace], spans: Sequence[ArrivedSpan]) -> Known:
    found = LiveSpan.objects.filter(
        live_trace__in=rows, span_id__in={span.span_id for span in spans}
    ).annotate(size=Length("data"))
    return {
        (trace, span): (pk, fullness, size)
        for trace, span, pk, fullness, size in found.values_list(
            "live_trace_id", "span_id", "pk", "fullness", "size"
        )
    }


class _Taker:
    """Takes the spans of one request that belong to one trace, whose row is locked."""

    def __init__(
        self,
        row: LiveTrace,
        known: Known,
        refused: Refused,
        seal: Callable[[bytes], bytes],
    ) -> None:
        self.row = row
        self._seal = seal
        self._known = known
        self._refused = refused
        self._new: list[tuple[int, str, int, bytes]] = []
        self._fuller: list[LiveSpan] = []
        self._refused_here = 0

    def take(self, spans: Iterable[ArrivedSpan]) -> None:
        for span in spans:
            known = self._known.get((self.row.pk, span.span_id))
            if known is not None and span.fullness <= known[1]:
                continue
            if self.row.is_settled:
                self._refuse(LATE, _late())
                continue
            data = self._seal(span.data)
            grown = len(data) - (known[2] if known else 0)
            if self._is_too_much(grown, is_new=known is None):
                self._refuse(FULL, _full())
                continue
            self._keep(span, data, known[0] if known else None)
            self.row.byte_count += grown

    def _keep(self, span: ArrivedSpan, data: bytes, pk: int | None) -> None:
        if span.is_ended_root:
            self.row.has_ended_root = True
        if pk is None:
            self.row.span_count += 1
            self._new.append((self.row.pk, span.span_id, span.fullness, data))
        else:
            kept = LiveSpan(pk=pk, fullness=span.fullness, data=data)
            self._fuller.append(kept)

    def _is_too_much(self, grown: int, *, is_new: bool) -> bool:
        row = self.row
        is_long = is_new and row.span_count >= settings.LIVE_MAX_TRACE_SPANS
        return is_long or row.byte_count + grown > settings.LIVE_MAX_TRACE_BYTES

    def _refuse(self, code: str, sentence: str) -> None:
        self._refused.add(code, sentence)
        self._refused_here += 1

    def write(self) -> None:
        """Write what was taken, and when the trace is to be assembled."""
        row = self.row
        if self._new:
            copy_rows("live_livespan", _SPAN_COLUMNS, iter(self._new))
        if self._fuller:
            LiveSpan.objects.bulk_update(self._fuller, ["fullness", "data"])
        changes: dict[str, object] = {}
        if self._new or self._fuller:
            changes = self._changes()
        if self._refused_here:
            changes["refused_count"] = F("refused_count") + self._refused_here
        if changes:
            LiveTrace.objects.filter(pk=row.pk).update(**changes)

    def _changes(self) -> dict[str, object]:
        row = self.row
        pause = (
            settings.LIVE_SETTLE_SECONDS
            if row.has_ended_root
            else settings.LIVE_QUIET_SECONDS
        )
        return {
            "span_count": row.span_count,
            "byte_count": row.byte_count,
            "has_ended_root": row.has_ended_root,
            "generation": F("generation") + 1,
            "due_at": Now() + timedelta(seconds=pause),
            "tries": 0,
            "failure": "",
        }


def _late() -> str:
    return (
        "Spans that came after their trace was closed were not taken: it stays as it "
        "was screened."
    )


def _full() -> str:
    return (
        f"A live trace holds {settings.LIVE_MAX_TRACE_SPANS:,} spans and "
        f"{size_in_words(settings.LIVE_MAX_TRACE_BYTES)} at most; spans beyond that "
        "were not taken."
    )


def note_refusals(*, project_id: int, refused: Refused, now: datetime) -> None:
    """Count what was not taken today, by reason, for the people of the project."""
    with transaction.atomic():
        for code, sentence in sorted(refused.sentences.items()):
            row, is_new = Refusal.objects.get_or_create(
                project_id=project_id,
                day=now.date(),
                code=code,
                defaults={
                    "count": refused.counts[code],
                    "sentence": sentence,
                    "last_at": now,
                },
            )
            if not is_new:
                Refusal.objects.filter(pk=row.pk).update(
                    count=F("count") + refused.counts[code],
                    sentence=sentence,
                    last_at=now,
                )


def claim_live_trace(*, lease_seconds: int) -> LiveClaim | None:
    """Claim the live trace that has been due longest; None when nothing is due.

    One that somebody else is about to claim is passed over. After five attempts in a
    row that stored nothing it is not claimed again (`give_up_live_trace`).
    """
    free = Q(lease_until=None) | Q(lease_until__lt=Now())
    with transaction.atomic():
        row = (
            LiveTrace.objects.select_for_update(skip_locked=True)
            .filter(free, due_at__lte=Now(), tries__lt=MAX_TRIES)
            .order_by("due_at")
            .first()
        )
        if row is None:
            return None
        lease = lease_seconds + row.byte_count // _BYTES_PER_LEASE_SECOND
        row.attempt += 1
        LiveTrace.objects.filter(pk=row.pk).update(
            attempt=row.attempt,
            tries=F("tries") + 1,
            lease_until=Now() + timedelta(seconds=lease),
        )
    return LiveClaim(
        live_trace_id=row.pk,
        project_id=row.project_id,
        native_id=row.native_id,
        stored_as=row.trace_id,
        attempt=row.attempt,
        generation=row.generation,
        byte_count=row.byte_count,
        stored_bytes=row.stored_bytes,
        refused_count=row.refused_count,
        first_seen=row.first_seen,
        redactions=row.redactions,
    )


def note_stored(
    *, claim: LiveClaim, stored_as: int | None, redactions: Mapping[str, int]
) -> None:
    """Note as what a trace was stored, inside the transaction that wrote it.

    Whoever goes on after a kill finds it stored and counts nothing twice. `LostClaim`.
    """
    _change(
        claim,
        {
            "trace_id": stored_as,
            "stored_bytes": claim.byte_count,
            "redactions": redactions,
        },
    )


def finish(*, claim: LiveClaim, keeps_spans: bool) -> None:
    """End an assembly inside the caller's transaction, after `note_stored`.

    What came meanwhile keeps the trace due. Without `keeps_spans` the spans are
    forgotten at once, unless more came. Raises `LostClaim`.
    """
    _end(
        claim,
        {
            "tries": 0,
            "failure": "",
            "due_at": Case(
                When(generation=claim.generation, then=Value(None)),
                default=F("due_at"),
            ),
        },
    )
    if not keeps_spans:
        done = LiveTrace.objects.filter(pk=claim.live_trace_id, due_at=None)
        _forget(list(done.values_list("pk", flat=True)))


def put_back(*, claim: LiveClaim) -> None:
    """Give a claim up so that the next worker takes it at once. Raises `LostClaim`."""
    _end(claim, {})


def fail(*, claim: LiveClaim, sentence: str) -> None:
    """End an assembly that cannot succeed; the spans are kept. Raises `LostClaim`."""
    _end(claim, {"due_at": None, "failure": sentence})


def _end(claim: LiveClaim, changes: Mapping[str, object]) -> None:
    _change(claim, {"lease_until": None, **changes})


def _change(claim: LiveClaim, changes: Mapping[str, object]) -> None:
    held = LiveTrace.objects.filter(pk=claim.live_trace_id, attempt=claim.attempt)
    if held.update(**changes) != 1:
        raise LostClaim


def hopeless_live_traces() -> list[LiveTrace]:
    """What was claimed five times, stored nothing and is nobody's now."""
    return list(_hopeless().order_by("pk"))


def _hopeless() -> QuerySet[LiveTrace]:
    free = Q(lease_until=None) | Q(lease_until__lt=Now())
    return LiveTrace.objects.filter(free, due_at__isnull=False, tries__gte=MAX_TRIES)


def give_up_live_trace(*, live_trace_id: int) -> bool:
    """Fail a trace that is still hopeless; whether this call did."""
    ended = _hopeless().filter(pk=live_trace_id)
    return ended.update(due_at=None, lease_until=None, failure=GIVEN_UP) == 1


def forget_spans() -> int:
    """Forget spans whose traces are stored and too old for late ones; returns traces.

    Spans of a trace that could not be assembled are kept.
    """
    late = Now() - timedelta(seconds=settings.LIVE_LATE_SECONDS)
    with transaction.atomic():
        old = (
            LiveTrace.objects.select_for_update(skip_locked=True)
            .filter(is_settled=False, due_at=None, failure="", last_seen__lt=late)
            .order_by("last_seen")[:_FORGOTTEN_AT_ONCE]
        )
        ids = [row.pk for row in old]
        _forget(ids)
    return len(ids)


def _forget(ids: Sequence[int]) -> None:
    LiveSpan.objects.filter(live_trace_id__in=ids).delete()
    LiveTrace.objects.filter(pk__in=ids).update(is_settled=True)
