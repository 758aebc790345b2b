"""Uploads without kept bytes: what came live in one day, and the runs of a batch.

Their traces are written one by one, and again when late spans change them: a trace
keeps its id then, and the counters of its upload follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec
from django.db.models import Count, F, Max
from django.db.models.functions import Now

from apps.engine.format import Opened
from apps.engine.trace import Trace as EngineTrace
from apps.traces.codec import content_hash, counts_of
from apps.traces.copying import NewTrace, StoredTrace, copy_over, copy_traces
from apps.traces.models import (
    USAGE_STATES,
    RejectedRecord,
    Step,
    Task,
    Trace,
    Upload,
)
from apps.traces.trace_notes import TraceNotes
from apps.traces.transitions import RawKept, UploadSource, UploadState

_COUNTED = (
    "step_count",
    "model_call_count",
    "tool_call_count",
    "usage_known",
    "error_count",
)
MAX_REJECTED_KEPT = 100


class Written(msgspec.Struct, frozen=True):
    """What became of a trace that came live.

    `stored` is None when the very same trace is here already. With `replaced` a trace
    that was stored before has new content under its old id, and `moved` says where
    each of its steps stands now.
    """

    stored: StoredTrace | None
    upload_id: int
    replaced: bool = False
    moved: dict[int, int] = {}


def live_upload(*, project_id: int, moment: datetime) -> Upload:
    """The stream of the project for the day (UTC) of `moment`; made when missing."""
    day = moment.date().isoformat()
    upload, _ = Upload.objects.get_or_create(
        project_id=project_id,
        sha256=f"live-{day}",
        defaults={
            "name": f"Live OTLP {day}",
            "source": UploadSource.LIVE.value,
            "size": 0,
            "raw_kept": RawKept.GONE.value,
            "state": UploadState.DONE.value,
            "created_at": moment,
            "finished_at": moment,
        },
    )
    return upload


def write_live_trace(
    *,
    upload_id: int,
    trace: EngineTrace,
    size: int,
    opened: Opened,
    input_hash: str | None,
) -> Written:
    """Write a new live trace into its stream, inside the caller's transaction.

    Locks the stream. The same trace from a file is not written twice; a file's trace
    with the same id and other content stays, and this one is kept beside it without
    the id and with a note. `size` is in bytes. Raises `IntegrityError` when a trace
    with the same id is being written elsewhere.
    """
    upload = Upload.objects.select_for_update().get(pk=upload_id)
    if trace.native_id:
        twin = Trace.objects.filter(
            project_id=upload.project_id, native_id=trace.native_id
        ).first()
        if twin is not None and twin.content_hash == content_hash(trace):
            upload.duplicate_count += 1
            _save(upload, opened)
            return Written(None, upload_id)
        if twin is not None:
            trace = beside_a_file(trace)
    last = Trace.objects.filter(upload=upload).aggregate(last=Max("ordinal"))["last"]
    new = _new(0 if last is None else last + 1, trace, opened, input_hash)
    [stored] = copy_traces(upload=upload, new=[new], task_ids=_task_ids(upload, trace))
    upload.trace_count += 1
    _count(upload, new, size)
    _note(upload, added=trace.notes)
    _save(upload, opened)
    return Written(stored, upload_id)


def rewrite_live_trace(
    *,
    trace_id: int,
    trace: EngineTrace,
    grown: int,
    opened: Opened,
    input_hash: str | None,
) -> Written:
    """Give a stored live trace new content under its old id; the caller's transaction.

    Locks the stream and the trace. `grown` is by how many bytes its spans have grown.
    Only that is written when the content is the same.
    """
    upload_id = Trace.objects.values_list("upload_id", flat=True).get(pk=trace_id)
    upload = Upload.objects.select_for_update().get(pk=upload_id)
    # A person who places the trace meanwhile waits, or has been here before.
    old = Trace.objects.select_for_update().get(pk=trace_id)
    if old.native_id is None and trace.native_id is not None:
        trace = beside_a_file(trace)
    if old.content_hash == content_hash(trace):
        _grow(upload, grown)
        upload.save(update_fields=["size", "bytes_read"])
        return Written(None, upload_id)
    new = _new(old.ordinal, trace, opened, input_hash)
    states = _usage_states(trace_id)
    moved = moved_steps(trace_id, trace)
    stored = copy_over(
        trace_id=trace_id,
        upload=upload,
        new=new,
        task_ids=_task_ids(upload, trace),
        kept=columns_that_stay(old, new),
    )
    for name in _COUNTED:
        setattr(upload, name, getattr(upload, name) - getattr(old, name))
    _add_states(upload, {state: -count for state, count in states.items()})
    _count(upload, new, grown)
    _note(upload, added=trace.notes, removed=old.notes)
    _save(upload, opened)
    return Written(stored, upload_id, replaced=True, moved=moved)


def _usage_states(trace_id: int) -> dict[str, int]:
    """How many calls of a stored trace are in each state of usage, by its name."""
    calls = Step.objects.filter(trace_id=trace_id, usage_state__isnull=False)
    counts = calls.order_by().values("usage_state").annotate(n=Count("seq"))
    return {
        USAGE_STATES[state].value: number
        for state, number in counts.values_list("usage_state", "n")
        if state is not None
    }


def _add_states(upload: Upload, change: Mapping[str, int]) -> None:
    total = Counter(upload.usage_states)
    total.update(change)
    upload.usage_states = {state: count for state, count in total.items() if count > 0}


REPLAY_READER = Opened(member="", format="replay", version=1)
"""Stands for a reader: the recording of a replay was never a file."""


def replay_upload(
    *, project_id: int, batch_id: int, name: str, now: datetime
) -> Upload:
    """The stream of the recordings of a batch of replays; made when missing."""
    key = {"project_id": project_id, "sha256": f"replay-{batch_id}"}
    if found := Upload.everything.filter(**key).first():
        return found
    new = Upload(
        **key,
        name=name[:255],
        source=UploadSource.REPLAY.value,
        size=0,
        raw_kept=RawKept.GONE.value,
        state=UploadState.DONE.value,
        created_at=now,
        finished_at=now,
    )
    # Two workers may end the first runs of a batch at once: no error is to be logged.
    Upload.everything.bulk_create([new], ignore_conflicts=True)
    return Upload.everything.get(**key)


def write_replay_trace(
    *, upload_id: int, trace: EngineTrace, redactions: Mapping[str, int]
) -> StoredTrace:
    """Write the recording of a run into the stream of its batch, as the caller's part.

    Locks the stream. The trace names its task, which is one of replays and made when
    missing. It is never found as a trial by its input. `redactions` are the secrets
    that were replaced in it, by rule.
    """
    upload = Upload.everything.select_for_update().get(pk=upload_id)
    rows = Trace.everything.filter(upload=upload)
    last = rows.aggregate(last=Max("ordinal"))["last"]
    new = msgspec.structs.replace(
        _new(0 if last is None else last + 1, trace, REPLAY_READER, None),
        is_replay=True,
    )
    ids: dict[str, int] = {}
    if trace.task:
        task, _ = Task.everything.get_or_create(
            project_id=upload.project_id,
            key=trace.task,
            is_replay=True,
            defaults={"title": trace.name[:300]},
        )
        ids[trace.task] = task.pk
    [stored] = copy_traces(upload=upload, new=[new], task_ids=ids)
    upload.trace_count += 1
    _count(upload, new, 0)
    _note(upload, added=trace.notes)
    upload.redactions = dict(Counter(upload.redactions) + Counter(redactions))
    _save(upload, REPLAY_READER)
    return stored


def moved_steps(trace_id: int, trace: EngineTrace) -> dict[int, int]:
    """Where the stored steps of a trace stand in its new content, by their own ids."""
    now = {step.native_id: step.seq for step in trace.steps if step.native_id}
    rows = Step.objects.filter(trace_id=trace_id, native_id__in=list(now))
    return {
        seq: now[native]
        for seq, native in rows.values_list("seq", "native_id")
        if native is not None
    }


def columns_that_stay(old: Trace, new: NewTrace) -> set[str]:
    """The columns that a trace keeps when it is written over: its place, acts of people.

    A trial that was found by the input keeps its number as long as the input is the same.
    """
    kept = {"id", "project_id", "upload_id", "ordinal", "signal_count"}
    is_found = not new.trace.task and new.input_hash == old.input_hash
    if old.is_task_set or is_found:
        kept |= {"task_id", "trial", "is_task_set"}
    return kept


def beside_a_file(trace: EngineTrace) -> EngineTrace:
    """The trace without its id, which belongs to a file's trace, and a note of it."""
    sentence = (
        f"A trace with the id {trace.native_id} came in a file, with other content. Both "
        "are kept; this one came live and stands here without the id."
    )
    return msgspec.structs.replace(
        trace, native_id=None, notes=(*trace.notes, sentence)
    )


def _new(
    ordinal: int, trace: EngineTrace, opened: Opened, input_hash: str | None
) -> NewTrace:
    return NewTrace(
        ordinal=ordinal,
        content_hash=content_hash(trace),
        trace=trace,
        counts=counts_of(trace),
        reader=opened,
        input_hash=input_hash,
    )


def _task_ids(upload: Upload, trace: EngineTrace) -> dict[str, int]:
    if not trace.task:
        return {}
    task, _ = Task.objects.get_or_create(project_id=upload.project_id, key=trace.task)
    return {trace.task: task.pk}


def _grow(upload: Upload, size: int) -> None:
    upload.size += size
    upload.bytes_read += size


def _count(upload: Upload, new: NewTrace, size: int) -> None:
    counts = new.counts
    _grow(upload, size)
    upload.step_count += counts.steps
    upload.model_call_count += counts.model_calls
    upload.tool_call_count += counts.tool_calls
    upload.usage_known += counts.usage_known
    upload.error_count += counts.errors
    _add_states(upload, counts.usage_states)
    upload.models_seen = sorted({*upload.models_seen, *counts.models})
    upload.agents_seen = sorted({*upload.agents_seen, *counts.agents})


def _note(upload: Upload, *, added: Iterable[str], removed: Iterable[str] = ()) -> None:
    """Count what was decided about traces, like the receipt of a file does."""
    notes = TraceNotes(upload.notes)
    notes.change(added=added, removed=removed)
    upload.notes = notes.all()


def _save(upload: Upload, opened: Opened) -> None:
    upload.format, upload.reader_version = opened.format, opened.version
    upload.readers = [
        {
            "format": opened.format,
            "version": opened.version,
            "files": 1,
            "traces": upload.trace_count,
        }
    ]
    upload.finished_at = Now()
    upload.save()


def reject_live_trace(*, upload_id: int, place: str, reason: str) -> None:
    """Write into the receipt of a stream what could not be made a trace."""
    Upload.objects.filter(pk=upload_id).update(rejected_count=F("rejected_count") + 1)
    if RejectedRecord.objects.filter(upload_id=upload_id).count() < MAX_REJECTED_KEPT:
        RejectedRecord.objects.create(
            upload_id=upload_id, place=place[:120], reason=reason
        )


def count_signals(*, trace_id: int, signals: int) -> None:
    """Write how many signals a live trace has now, on its row and on its stream."""
    trace = Trace.objects.get(pk=trace_id)
    grown = signals - trace.signal_count
    if not grown:
        return
    Trace.objects.filter(pk=trace_id).update(signal_count=signals)
    Upload.objects.filter(pk=trace.upload_id).update(
        signal_count=F("signal_count") + grown
    )


def write_signal_counts(counts: Mapping[int, int]) -> None:
    """Write how many signals each of these traces has now, and on their uploads.

    Runs inside the caller's transaction, which holds the uploads and the traces.
    """
    rows = Trace.objects.filter(pk__in=counts).values_list(
        "pk", "upload_id", "signal_count"
    )
    grown: Counter[int] = Counter()
    by_count: dict[int, list[int]] = {}
    for trace_id, upload_id, before in rows:
        if counts[trace_id] != before:
            grown[upload_id] += counts[trace_id] - before
            by_count.setdefault(counts[trace_id], []).append(trace_id)
    for count, ids in by_count.items():
        Trace.objects.filter(pk__in=ids).update(signal_count=count)
    for upload_id, change in grown.items():
        if change:
            Upload.objects.filter(pk=upload_id).update(
                signal_count=F("signal_count") + change
            )


def count_redactions(
    *, upload_id: int, before: Mapping[str, int], now: Mapping[str, int]
) -> None:
    """Count the secrets that were replaced in a live trace on its stream, by rule."""
    if before == now:
        return
    upload = Upload.objects.select_for_update().get(pk=upload_id)
    total = Counter(upload.redactions)
    total.update(now)
    total.subtract(before)
    upload.redactions = {slug: count for slug, count in total.items() if count > 0}
    upload.save(update_fields=["redactions"])
