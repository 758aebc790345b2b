"""Reading an upload again over what was read before: nothing goes before it worked.

The upload keeps its traces and its numbers until the new reading has found something.
Then each of its traces keeps its id: untouched where the content is the same, else
written over. Every step may be done again by another worker after a kill.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from django.db import connection, transaction
from django.db.models import Count, F, Sum
from django.db.models.functions import Now

from apps.engine.format import Opened
from apps.engine.trace import Trace as EngineTrace
from apps.traces.batches import Receipt
from apps.traces.codec import content_hash, counts_of
from apps.traces.copying import NewTrace, StoredTrace, copy_over
from apps.traces.matching import Found, Known, Match, match
from apps.traces.models import (
    USAGE_STATES,
    RejectedRecord,
    Step,
    Task,
    Trace,
    Upload,
)
from apps.traces.operations import (
    Claim,
    allow_erasing_history,
    hold,
    write_receipt,
)
from apps.traces.streams import columns_that_stay, moved_steps
from apps.traces.transitions import (
    NotPossibleNow,
    RawKept,
    UploadState,
    check_can_follow,
)

_SUMMED = (
    "step_count",
    "model_call_count",
    "tool_call_count",
    "usage_known",
    "error_count",
    "signal_count",
)
_IDS_AT_ONCE = 5_000
STAYS = (
    "This trace was not found when its upload was read again. It stays because "
    "reviewers decided about it."
)
_FAR = 1_000_000_000


class Plan(msgspec.Struct, frozen=True):
    """What becomes of the traces of an upload: matched by place, or not found again."""

    matches: dict[int, Match]
    missing: list[int]


class Rewritten(msgspec.Struct, frozen=True):
    """A trace with new content under its old id, and where its steps stand now."""

    stored: StoredTrace
    moved: dict[int, int]


def reread_upload(*, upload: Upload, format_override: str) -> None:
    """Have the kept bytes read again, maybe as another format.

    What was read stays until the new reading has found something. Raises
    `NotPossibleNow` while it is being read, and when the bytes are gone.
    """
    with transaction.atomic():
        held = Upload.objects.select_for_update().get(pk=upload.pk)
        check_can_follow(UploadState(held.state), UploadState.RECEIVED)
        if held.raw_kept == RawKept.GONE:
            raise NotPossibleNow(
                "The bytes of this upload were removed once they were read, as this "
                "project wants it. It cannot be read again."
            )
        # What is kept of a structure is in our own format, whatever it was in.
        override = "" if held.stored_sha256 else format_override
        if Trace.objects.filter(upload=held).exists():
            held.state = UploadState.RECEIVED.value
            held.reread_as, held.reread_note, held.failure = override, "", ""
            held.tries, held.lease_until = 0, None
            held.save()
            return
        RejectedRecord.objects.filter(upload=held).delete()
        _as_received(held, override).save(force_update=True)


def _as_received(held: Upload, override: str) -> Upload:
    return Upload(
        pk=held.pk,
        project=held.project,
        sha256=held.sha256,
        size=held.size,
        name=held.name,
        created_by=held.created_by,
        created_at=held.created_at,
        state=UploadState.RECEIVED.value,
        attempt=held.attempt,
        format_override=override,
        raw_kept=held.raw_kept,
        stored_sha256=held.stored_sha256,
        reduced=held.reduced,
    )


def plan_rereading(*, claim: Claim, found: Sequence[Found]) -> Plan:
    """Match a whole new reading with what is stored, and number the traces anew.

    Traces that were not found get places below 0. Safe to run again: the same reading
    gives the same plan. Raises `LostClaim`.
    """
    with transaction.atomic():
        upload = hold(claim)
        rows = Trace.objects.select_for_update().filter(upload=upload).order_by("pk")
        known = [
            Known(*row)
            for row in rows.values_list("pk", "native_id", "content_hash", "ordinal")
        ]
        matches = match(known, found, elsewhere=_elsewhere(claim, found))
        matched = {one.known.trace_id for one in matches.values()}
        missing = [one.trace_id for one in known if one.trace_id not in matched]
        places = {m.known.trace_id: place for place, m in matches.items()}
        places |= {one: -1 - number for number, one in enumerate(missing)}
        if any(places[one.trace_id] != one.place for one in known):
            _number(upload.pk, places)
        upload.duplicate_count = upload.doubled_count = 0
        upload.save(update_fields=["duplicate_count", "doubled_count"])
    return Plan(matches, missing)


def _elsewhere(claim: Claim, found: Sequence[Found]) -> set[str]:
    ids = [one.native_id for one in found if one.native_id]
    here: set[str] = set()
    for start in range(0, len(ids), _IDS_AT_ONCE):
        rows = Trace.objects.filter(
            project_id=claim.project_id, native_id__in=ids[start : start + _IDS_AT_ONCE]
        ).exclude(upload_id=claim.upload_id)
        here.update(str(one) for one in rows.values_list("native_id", flat=True))
    return here


def _number(upload_id: int, places: Mapping[int, int]) -> None:
    """Write the places of all traces; far away first, so that no two ever meet."""
    with connection.cursor() as cursor:
        for shift in (_FAR, 0):
            cursor.execute(
                "UPDATE traces_trace SET ordinal = new.place - %s "
                "FROM unnest(%s::int8[], %s::int4[]) AS new (id, place) "
                "WHERE traces_trace.id = new.id AND traces_trace.upload_id = %s",
                [shift, list(places), list(places.values()), upload_id],
            )


class Writer:
    """Writes the traces of a batch over those that they are, in one transaction."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._upload = hold(claim)

    def _keep(self, match: Match, trace: EngineTrace, opened: Opened) -> None:
        """Leave a trace as it is, but for who read it; one that was missing is back."""
        row = Trace.objects.filter(pk=match.known.trace_id)
        row.exclude(format=opened.format).update(format=opened.format)
        if match.known.place < 0:
            row.update(notes=list(trace.notes))

    def write(
        self,
        *,
        match: Match,
        trace: EngineTrace,
        opened: Opened,
        input_hash: str | None,
    ) -> Rewritten | None:
        """Give a stored trace its new content; None where it is the same."""
        if match.is_same:
            self._keep(match, trace, opened)
            return None
        # A person who places the trace meanwhile waits, or has been here before.
        old = Trace.objects.select_for_update().get(pk=match.known.trace_id)
        new = NewTrace(
            ordinal=old.ordinal,
            content_hash=content_hash(trace),
            trace=trace,
            counts=counts_of(trace),
            reader=opened,
            input_hash=input_hash,
        )
        return self._write(old, new)

    def _write(self, old: Trace, new: NewTrace) -> Rewritten:
        moved = moved_steps(old.pk, new.trace)
        stored = copy_over(
            trace_id=old.pk,
            upload=self._upload,
            new=new,
            task_ids=self._task_ids(new.trace),
            kept=columns_that_stay(old, new),
        )
        # It lets itself be read: a kill later on is not the fault of what came before.
        Upload.objects.filter(pk=self._upload.pk).update(tries=0)
        return Rewritten(stored, moved)

    def _task_ids(self, trace: EngineTrace) -> dict[str, int]:
        if not trace.task:
            return {}
        task, _ = Task.objects.get_or_create(
            project_id=self._claim.project_id, key=trace.task
        )
        return {trace.task: task.pk}


def finish_rereading(
    *, claim: Claim, receipt: Receipt, gone: Collection[int], stays: Collection[int]
) -> None:
    """End a reading that found something: drop the traces `gone`, write the receipt.

    The traces `stays` get a note that they were not found. Runs inside the caller's
    transaction, which has locked all these traces and made sure that nobody decided
    about what goes. `LostClaim`.
    """
    upload = hold(claim)
    check_can_follow(UploadState(upload.state), UploadState.DONE)
    allow_erasing_history()
    Trace.objects.filter(upload=upload, pk__in=gone).delete()
    for trace in Trace.objects.filter(upload=upload, pk__in=stays):
        if STAYS not in trace.notes:
            trace.notes = [*trace.notes, STAYS]
            trace.save(update_fields=["notes"])
    _recount(upload)
    write_receipt(upload, receipt)
    upload.format_override = upload.reread_as or ""
    _end(upload, note="")


def keep_as_it_was(*, claim: Claim, sentence: str) -> None:
    """End a reading that found nothing: all stays, the receipt says why. `LostClaim`."""
    with transaction.atomic():
        _end(hold(claim), note=sentence)


def _end(upload: Upload, *, note: str) -> None:
    upload.state = UploadState.DONE.value
    upload.reread_as, upload.reread_note = None, note
    upload.lease_until = None
    if not note:
        upload.bytes_read = upload.bytes_total or upload.bytes_read
        upload.finished_at = Now()
    upload.save()


def _recount(upload: Upload) -> None:
    """Count what an upload has from its traces, which a kill cannot make wrong."""
    traces = Trace.objects.filter(upload=upload)
    sums = {name: Sum(name, default=0) for name in _SUMMED}
    for name, value in traces.aggregate(trace_count=Count("pk"), **sums).items():
        setattr(upload, name, value)
    upload.models_seen = _seen(traces.values_list("models_seen", flat=True))
    upload.agents_seen = _seen(traces.values_list("agents_seen", flat=True))
    upload.usage_states = _usage_states(upload)


def _seen(rows: Iterable[Sequence[str]]) -> list[str]:
    return sorted({name for names in rows for name in names})


def _usage_states(upload: Upload) -> dict[str, Any]:
    calls = Step.objects.filter(trace__upload=upload, usage_state__isnull=False)
    counts = calls.order_by().values("usage_state").annotate(n=Count(F("seq")))
    return {
        USAGE_STATES[state].value: number
        for state, number in counts.values_list("usage_state", "n")
        if state is not None
    }
