"""From live spans to stored traces: take what is due, read it, store it, screen it.

The kept spans of a trace are read by the reader of OTLP files, as if they had come in
one. A trace, its answers and its signals are written in one transaction that notes as
what it was stored, so a killed worker leaves all of it or nothing. Its trials are found
after that; whoever goes on with a claim that did not end finds them again.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable
from datetime import datetime

import msgspec
from django.conf import settings
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    ProgrammingError,
    transaction,
)

from apps.accounts.models import Project, RawBytes
from apps.engine.format import Opened, Source
from apps.engine.formats.otlp_protobuf import OtlpProtobuf
from apps.engine.trace import Trace
from apps.live.arrival import framed
from apps.live.operations import (
    GIVEN_UP,
    LiveClaim,
    LostClaim,
    claim_live_trace,
    fail,
    finish,
    give_up_live_trace,
    hopeless_live_traces,
    note_stored,
    put_back,
)
from apps.live.queries import span_data
from apps.pipeline.privacy import Privacy
from apps.pipeline.scoring import wake_scoring
from apps.review.blind_sample import draw_blind_looks
from apps.review.operations import open_signals
from apps.review.ranking import rank_all
from apps.review.rescreening import rescreen
from apps.screening.lineup import pin_new_checks
from apps.screening.operations import screen_traces
from apps.traces.encryption import CannotOpen
from apps.traces.storage import raw_policy
from apps.traces.streams import (
    Written,
    count_redactions,
    count_signals,
    live_upload,
    reject_live_trace,
    rewrite_live_trace,
    write_live_trace,
)
from apps.traces.trials import find_trials

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]

# The next tick goes on; so one task never keeps a worker from its other work for long.
LONGEST_SECONDS = 10.0
_FAULTS_OF_CONTENT = (DataError, ProgrammingError)


def give_up_hopeless() -> None:
    """Give up what was tried five times, with a line in the receipt of its stream."""
    for row in hopeless_live_traces():
        with transaction.atomic():
            # The stream before the trace, as whoever still works on it locks them.
            _write_into_receipt(row.project_id, row.first_seen, row.native_id, GIVEN_UP)
            if not give_up_live_trace(live_trace_id=row.pk):
                transaction.set_rollback(True)


def _write_into_receipt(
    project_id: int, first_seen: datetime, native_id: str, sentence: str
) -> None:
    upload = live_upload(project_id=project_id, moment=first_seen)
    place = f"trace {native_id}"
    reject_live_trace(upload_id=upload.pk, place=place, reason=sentence)


def assemble_due(*, clock: Clock) -> int:
    """Assemble the live traces that are due, one after another; returns how many.

    Safe to run any number of times and in parallel. Stops after ten seconds.
    """
    end = time.monotonic() + LONGEST_SECONDS
    count, projects = 0, set()
    while time.monotonic() < end:
        claim = claim_live_trace(lease_seconds=settings.LEASE_SECONDS)
        if claim is None:
            break
        if _assemble(claim, clock):
            count += 1
            projects.add(claim.project_id)
    for project_id in sorted(projects):
        rank_all(project_id)
    return count


def _assemble(claim: LiveClaim, clock: Clock) -> bool:
    """Assemble one claimed trace; whether it was stored."""
    try:
        _store_or_say_why_not(claim, clock)
    except LostClaim:
        return False
    return True


def _store_or_say_why_not(claim: LiveClaim, clock: Clock) -> None:
    try:
        _store(claim, clock)
    except LostClaim:
        raise
    except CannotOpen as error:
        _give_up(claim, str(error))
    except IntegrityError:
        # A file with the same trace was just being stored; next time it shows.
        put_back(claim=claim)
    except _FAULTS_OF_CONTENT as error:
        _give_up(claim, _broke(claim, error))
    except (DatabaseError, InterfaceError):
        # The database failed, not the trace: the lease ends, another attempt begins.
        raise
    except Exception as error:  # noqa: BLE001
        _give_up(claim, _broke(claim, error))


def _read(claim: LiveClaim) -> Trace:
    """The trace of the kept spans, with a note when some were not taken."""
    data = b"".join(framed(span_data(claim.live_trace_id)))
    source = Source(stream=io.BytesIO(data), head=b"", is_text=False, size=len(data))
    traces = [item for item in OtlpProtobuf().read(source) if isinstance(item, Trace)]
    [trace] = traces
    if claim.refused_count:
        note = (
            f"Spans that came live and were not taken, because the trace was too large "
            f"or closed already: {claim.refused_count}."
        )
        trace = msgspec.structs.replace(trace, notes=(*trace.notes, note))
    return trace


def _store(claim: LiveClaim, clock: Clock) -> None:
    project = Project.objects.get(pk=claim.project_id)
    privacy = Privacy.of(project)
    # Bodies and secrets end here: nothing below sees what the project keeps out.
    read = _read(claim)
    trace = privacy.keep(read)
    digest = privacy.input_hash(of=read, kept=trace)
    upload = live_upload(project_id=project.pk, moment=claim.first_seen)
    keeps_spans = raw_policy(project) is not RawBytes.NOT_KEPT
    with transaction.atomic():
        written = _write(claim, upload.pk, trace, digest)
        stored_as = claim.stored_as
        if written.stored is not None:
            stored_as = written.stored.trace_id
            _screen(claim, project, written, clock())
            wake_scoring(project_id=project.pk)
        count_redactions(
            upload_id=written.upload_id, before=claim.redactions, now=privacy.counts
        )
        note_stored(claim=claim, stored_as=stored_as, redactions=privacy.counts)
        if digest is None or stored_as is None:
            finish(claim=claim, keeps_spans=keeps_spans)
            return
    # Not with the locks from above: its trials lie in other uploads too.
    find_trials(project_id=project.pk, input_hashes=[digest])
    with transaction.atomic():
        finish(claim=claim, keeps_spans=keeps_spans)
        wake_scoring(project_id=project.pk)


def _write(
    claim: LiveClaim, upload_id: int, trace: Trace, digest: str | None
) -> Written:
    reader = OtlpProtobuf()
    opened = Opened(member="", format=reader.slug, version=reader.version)
    grown = claim.byte_count - claim.stored_bytes
    if claim.stored_as is not None:
        return rewrite_live_trace(
            trace_id=claim.stored_as,
            trace=trace,
            grown=grown,
            opened=opened,
            input_hash=digest,
        )
    return write_live_trace(
        upload_id=upload_id,
        trace=trace,
        size=claim.byte_count,
        opened=opened,
        input_hash=digest,
    )


def _screen(
    claim: LiveClaim, project: Project, written: Written, now: datetime
) -> None:
    stored = written.stored
    if stored is None:
        return
    if written.replaced:
        signals = rescreen(
            project_id=claim.project_id, stored=stored, moved=written.moved, now=now
        )
    else:
        queued = screen_traces(
            project_id=claim.project_id,
            traces=[stored],
            lineup=pin_new_checks(project_id=claim.project_id, now=now),
        )
        opened = open_signals(project_id=claim.project_id, queued=queued, now=now)
        signals = sum(opened.values())
    count_signals(trace_id=stored.trace_id, signals=signals)
    if not written.replaced:
        draw_blind_looks(
            project=project,
            trace_ids=[stored.trace_id],
            flagged=[stored.trace_id] if signals else [],
            now=now,
        )


def _broke(claim: LiveClaim, error: Exception) -> str:
    logger.error("Not assembled: live trace %s", claim.live_trace_id, exc_info=error)
    return (
        f"Evalsite's reader broke on this trace ({type(error).__name__}). That is our "
        "fault; its spans are kept."
    )


def _give_up(claim: LiveClaim, sentence: str) -> None:
    with transaction.atomic():
        _write_into_receipt(
            claim.project_id, claim.first_seen, claim.native_id, sentence
        )
        fail(claim=claim, sentence=sentence)
