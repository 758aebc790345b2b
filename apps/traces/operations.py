"""Writing uploads and traces. Every write of a reader is fenced by its attempt.

Leases use the database's clock, so that workers on machines whose clocks differ agree
on who may write.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
from django.db import connection, transaction
from django.db.models import Case, F, Q, When
from django.db.models.functions import Now

from apps.engine.format import Progress, Rejected
from apps.traces.batches import Batch, Receipt
from apps.traces.codec import content_hash, counts_of
from apps.traces.copying import NewTrace, StoredTrace, copy_traces
from apps.traces.models import RejectedRecord, Task, Trace, Upload
from apps.traces.raw_bytes import create_upload as create_upload
from apps.traces.transitions import (
    MAX_TRIES,
    UploadState,
    check_can_follow,
)

_COUNTERS = (
    "trace_count",
    "step_count",
    "model_call_count",
    "tool_call_count",
    "usage_known",
    "error_count",
    "duplicate_count",
    "doubled_count",
    "signal_count",
)


class LostClaim(Exception):
    """Someone else reads this upload now; whatever this reader found is dropped."""


class Claim(msgspec.Struct, frozen=True):
    """The right to read one upload, until the lease ends or another attempt starts."""

    upload_id: int
    project_id: int
    attempt: int
    sha256: str
    name: str
    format_override: str
    lease_seconds: int
    reduced: dict[str, Any] | None = None
    rereads: bool = False


def claim_upload(*, upload_id: int, lease_seconds: int) -> Claim | None:
    """Claim an upload for reading by one conditional update; None if it is not free.

    Free means received, or reading with an expired lease. After three attempts in a row
    that stored nothing it is not claimed again (`give_up_stuck_uploads` fails it).
    """
    lease = Now() + timedelta(seconds=lease_seconds)
    free = Q(state=UploadState.RECEIVED.value) | Q(
        state=UploadState.READING.value, lease_until__lt=Now()
    )
    claimed = Upload.objects.filter(free, pk=upload_id, tries__lt=MAX_TRIES).update(
        state=UploadState.READING.value,
        attempt=F("attempt") + 1,
        tries=F("tries") + 1,
        lease_until=lease,
        # What is read again keeps its numbers until the new reading has found something.
        duplicate_count=_unless_rereading(F("duplicate_count")),
        doubled_count=_unless_rereading(F("doubled_count")),
    )
    if claimed != 1:
        return None
    upload = Upload.objects.get(pk=upload_id)
    return Claim(
        upload_id=upload.pk,
        project_id=upload.project_id,
        attempt=upload.attempt,
        sha256=upload.raw_sha256,
        name=upload.name,
        format_override=(
            upload.format_override if upload.reread_as is None else upload.reread_as
        ),
        lease_seconds=lease_seconds,
        reduced=upload.reduced,
        rereads=upload.reread_as is not None,
    )


def _unless_rereading(counter: F) -> Case:
    return Case(When(reread_as__isnull=True, then=0), default=counter)


def hold(claim: Claim) -> Upload:
    """Lock the upload's row for this transaction; raises `LostClaim`."""
    upload = (
        Upload.objects.select_for_update()
        .filter(
            pk=claim.upload_id,
            attempt=claim.attempt,
            state=UploadState.READING.value,
        )
        .first()
    )
    if upload is None:
        raise LostClaim
    return upload


def renew_claim(claim: Claim) -> None:
    """Extend the lease; raises `LostClaim` when another attempt has begun."""
    renewed = Upload.objects.filter(
        pk=claim.upload_id, attempt=claim.attempt, state=UploadState.READING.value
    ).update(lease_until=Now() + timedelta(seconds=claim.lease_seconds))
    if renewed != 1:
        raise LostClaim


def name_reader(*, claim: Claim, format_slug: str, reader_version: int) -> None:
    """Write down which reader reads this upload."""
    Upload.objects.filter(pk=claim.upload_id, attempt=claim.attempt).update(
        format=format_slug, reader_version=reader_version
    )


def stored_ordinals(claim: Claim) -> frozenset[int]:
    """Places in the upload whose traces an earlier attempt has written already."""
    rows = Trace.objects.filter(upload_id=claim.upload_id)
    return frozenset(rows.values_list("ordinal", flat=True))


def _known_native_ids(claim: Claim, batch: Batch) -> dict[str, tuple[str, int]]:
    ids = [trace.native_id for _, trace in batch.traces if trace.native_id]
    if not ids:
        return {}
    rows = Trace.objects.filter(project_id=claim.project_id, native_id__in=ids)
    return {
        str(native): (digest, upload_id)
        for native, digest, upload_id in rows.values_list(
            "native_id", "content_hash", "upload_id"
        )
    }


def _sort_out_known(claim: Claim, batch: Batch) -> tuple[list[NewTrace], Counter[bool]]:
    """Traces that are new, and how many were here already with the same content.

    Those that stood in this very upload before are counted under True. The same id with other content is rejected: the first one is kept.
    """
    known = _known_native_ids(claim, batch)
    new: list[NewTrace] = []
    here: Counter[bool] = Counter()
    for ordinal, trace in batch.traces:
        digest = content_hash(trace)
        if trace.native_id is None or trace.native_id not in known:
            reader = batch.readers[ordinal]
            asked = batch.input_hashes[ordinal]
            new.append(
                NewTrace(ordinal, digest, trace, counts_of(trace), reader, asked)
            )
            if trace.native_id:
                known[trace.native_id] = (digest, claim.upload_id)
        elif known[trace.native_id][0] == digest:
            here[known[trace.native_id][1] == claim.upload_id] += 1
        else:
            batch.rejected.append(
                Rejected(
                    place=f"trace {ordinal + 1}",
                    reason=(
                        f"A trace with the id {trace.native_id} is in this project "
                        "already, with other content. The first one was kept."
                    ),
                    excerpt=trace.name[:200],
                )
            )
    return new, here


def _in_natural_order(key: str) -> list[tuple[int, str]]:
    """Sort task 2 before task 10: pages list tasks as they were made."""
    return [
        (int(part), "") if part.isdecimal() and len(part) < 19 else (0, part)
        for part in re.split(r"(\d+)", key)
    ]


def _task_ids(claim: Claim, new: Sequence[NewTrace]) -> dict[str, int]:
    named = {item.trace.task for item in new if item.trace.task}
    keys = sorted(named, key=_in_natural_order)
    if not keys:
        return {}
    Task.objects.bulk_create(
        [Task(project_id=claim.project_id, key=key) for key in keys],
        ignore_conflicts=True,
    )
    rows = Task.objects.filter(project_id=claim.project_id, key__in=keys)
    return dict(rows.values_list("key", "id"))


def _count(upload: Upload, new: Sequence[NewTrace]) -> None:
    models: set[str] = set(upload.models_seen)
    agents: set[str] = set(upload.agents_seen)
    states = Counter(upload.usage_states)
    for item in new:
        upload.trace_count += 1
        upload.error_count += item.counts.errors
        states.update(item.counts.usage_states)
        upload.step_count += item.counts.steps
        upload.model_call_count += item.counts.model_calls
        upload.tool_call_count += item.counts.tool_calls
        upload.usage_known += item.counts.usage_known
        models.update(item.counts.models)
        agents.update(item.counts.agents)
    upload.models_seen, upload.agents_seen = sorted(models), sorted(agents)
    upload.usage_states = dict(states)


def _note_progress(upload: Upload, progress: Progress | None) -> None:
    if progress is not None:
        upload.bytes_read = progress.bytes_read
        upload.bytes_total = progress.bytes_total


def store_batch(*, claim: Claim, batch: Batch) -> list[StoredTrace]:
    """Write a batch of traces and renew the lease, inside the caller's transaction.

    The caller adds what else belongs to these traces (their screenings) before it
    commits, so that a trace is visible only with its answers. Raises `LostClaim`.
    """
    upload = hold(claim)
    new, here = _sort_out_known(claim, batch)
    tasks = _task_ids(claim, new)
    stored = copy_traces(upload=upload, new=new, task_ids=tasks) if new else []
    _count(upload, new)
    upload.duplicate_count += here.total()
    upload.doubled_count += here[True]
    if stored:
        # Whatever ended the attempts before, the file lets itself be read.
        upload.tries = 0
    _note_progress(upload, batch.progress)
    upload.lease_until = Now() + timedelta(seconds=claim.lease_seconds)
    upload.save()
    return stored


def finish_upload(*, claim: Claim, receipt: Receipt) -> None:
    """Write the receipt: what was rejected, what the reader noted, and the end.

    Raises `LostClaim`.
    """
    with transaction.atomic():
        upload = hold(claim)
        check_can_follow(UploadState(upload.state), UploadState.DONE)
        write_receipt(upload, receipt)
        upload.state = UploadState.DONE.value
        upload.bytes_read = upload.bytes_total or upload.bytes_read
        upload.lease_until = None
        upload.finished_at = Now()
        upload.save()


def fail_upload(*, claim: Claim, sentence: str, receipt: Receipt) -> None:
    """End an upload of which nothing could be read, with a sentence. `LostClaim`."""
    with transaction.atomic():
        upload = hold(claim)
        check_can_follow(UploadState(upload.state), UploadState.FAILED)
        write_receipt(upload, receipt)
        upload.state = UploadState.FAILED.value
        upload.failure = sentence
        upload.lease_until = None
        upload.finished_at = Now()
        upload.save()


def write_receipt(upload: Upload, receipt: Receipt) -> None:
    """Put what a reading had to say on the upload's row; the caller saves it."""
    RejectedRecord.objects.filter(upload=upload).delete()
    RejectedRecord.objects.bulk_create(
        [
            RejectedRecord(
                upload=upload,
                place=item.place[:120],
                reason=item.reason,
                excerpt=item.excerpt[:500],
            )
            for item in receipt.rejected
        ]
    )
    upload.rejected_count = receipt.rejected_count
    upload.redactions = receipt.redactions
    upload.readers = receipt.readers_seen()
    upload.notes = receipt.notes()


def add_signal_counts(*, claim: Claim, per_trace: dict[int, int]) -> None:
    """Count the signals of freshly stored traces on their rows and on the upload."""
    total = sum(per_trace.values())
    if not total:
        return
    by_count: dict[int, list[int]] = {}
    for trace_id, count in per_trace.items():
        by_count.setdefault(count, []).append(trace_id)
    for count, ids in by_count.items():
        Trace.objects.filter(pk__in=ids).update(signal_count=count)
    Upload.objects.filter(pk=claim.upload_id).update(
        signal_count=F("signal_count") + total
    )


def discard_traces(*, claim: Claim) -> None:
    """Drop what was stored of an upload that must not be kept in part. `LostClaim`."""
    with transaction.atomic():
        upload = hold(claim)
        allow_erasing_history()
        Trace.objects.filter(upload=upload).delete()
        for name in _COUNTERS:
            setattr(upload, name, 0)
        upload.models_seen, upload.agents_seen = [], []
        upload.usage_states = {}
        upload.save()


def give_up_stuck_uploads() -> int:
    """End what was claimed three times and stored nothing; returns how many.

    It fails; what was being read again is done, with the traces that it had.
    """
    stuck = Upload.objects.filter(
        state=UploadState.READING.value,
        lease_until__lt=Now(),
        tries__gte=MAX_TRIES,
    )
    reread = stuck.filter(reread_as__isnull=False).update(
        state=UploadState.DONE.value,
        lease_until=None,
        reread_as=None,
        reread_note=(
            f"Reading this file again ended the worker {MAX_TRIES} times. The traces "
            "that it had are kept."
        ),
    )
    return reread + stuck.filter(reread_as__isnull=True).update(
        state=UploadState.FAILED.value,
        finished_at=Now(),
        lease_until=None,
        failure=(
            f"Reading this file ended the worker {MAX_TRIES} times. Its bytes are "
            "kept; traces that were read before are kept too. Read it again, or split it."
        ),
    )


def allow_erasing_history() -> None:
    """Let this transaction remove history together with the traces it belongs to."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('evalsite.erasing', 'yes', true)")
