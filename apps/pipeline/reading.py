"""Reading one claimed upload: detect, parse, store, screen, queue; batch by batch.

Traces become visible together with their screenings and signals, in one transaction
per batch, so a killed worker leaves whole traces or none and the next attempt goes on
from there.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from datetime import datetime

from django.conf import settings
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    ProgrammingError,
    transaction,
)

from apps.accounts.models import Project
from apps.engine.format import (
    Item,
    Note,
    Opened,
    Progress,
    Rejected,
    UnreadableTrace,
)
from apps.engine.formats import ARCHIVE, TooLarge, read_file
from apps.engine.privacy.structure import SENTENCE
from apps.engine.trace import Trace
from apps.pipeline.privacy import Origins, Privacy, add_to_receipt
from apps.pipeline.rereading import FoundNothing, Rereading, why_nothing
from apps.pipeline.scoring import wake_scoring
from apps.review.blind_sample import draw_blind_looks
from apps.review.erasing import lock_undecided
from apps.review.operations import open_signals
from apps.review.ranking import rank_all
from apps.screening.lineup import pin_new_checks
from apps.screening.operations import screen_traces
from apps.traces.batches import Batch, Receipt
from apps.traces.encryption import CannotOpen
from apps.traces.locking import lock_traces_of
from apps.traces.operations import (
    Claim,
    LostClaim,
    add_signal_counts,
    claim_upload,
    discard_traces,
    fail_upload,
    finish_upload,
    hold,
    name_reader,
    store_batch,
    stored_ordinals,
)
from apps.traces.raw_bytes import forget_raw
from apps.traces.storage import open_raw
from apps.traces.trials import find_trials_of_upload

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]
KeepAlive = Callable[[Claim], AbstractContextManager[object]]

BATCH_BYTES = 16 * 1024 * 1024

# What the database refuses today it refuses again in the next attempt.
_FAULTS_OF_CONTENT = (DataError, IntegrityError, ProgrammingError)


def read_upload(
    *, upload_id: int, clock: Clock, keep_alive: KeepAlive = nullcontext
) -> bool:
    """Read one upload if it is free; whether this call did.

    Safe to run any number of times and in parallel: the claim decides who reads, and
    what an earlier attempt stored is not stored again. `keep_alive` renews the claim
    while one long record is being parsed; each batch renews it too.
    """
    claim = claim_upload(upload_id=upload_id, lease_seconds=settings.LEASE_SECONDS)
    if claim is None:
        return False
    try:
        with keep_alive(claim), _rare_collections():
            _read_or_say_why_not(_Reading(claim, clock))
    except LostClaim:
        return False
    return True


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for garbage cycles less often: a reader makes many objects and no cycles."""
    usual = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _read_or_say_why_not(reading: _Reading) -> None:
    try:
        reading.run()
    except LostClaim:
        raise
    except _FAULTS_OF_CONTENT as error:
        reading.end_broken(error)
    except (DatabaseError, InterfaceError, OSError):
        # The machine failed, not the file: the lease ends and another attempt begins.
        raise
    except Exception as error:  # noqa: BLE001
        reading.keep_what_was_read()
        reading.end_broken(error)


class _ReaderName:
    """Which reader reads now, and what the upload's row says of it.

    The row names the reader when all traces came from one, else `ARCHIVE`.
    """

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._opened: Opened | None = None
        self._named: tuple[str, int] | None = None
        self._has_traces = False

    def open(self, opened: Opened) -> None:
        """Take what is read next; until there is a trace the row names its reader."""
        self._opened = opened
        if not self._has_traces:
            self._name(opened.format, opened.version)

    def of_a_trace(self) -> Opened:
        """Return what the trace that was just found was read from."""
        if self._opened is None:
            raise ValueError("A trace came before the name of its reader.")
        if self._has_traces and self._named != (
            self._opened.format,
            self._opened.version,
        ):
            self._name(ARCHIVE, 1)
        self._has_traces = True
        return self._opened

    def _name(self, slug: str, version: int) -> None:
        if self._named not in {(slug, version), (ARCHIVE, 1)}:
            self._named = (slug, version)
            name_reader(claim=self._claim, format_slug=slug, reader_version=version)


class _Reading:
    """One attempt at reading one upload."""

    def __init__(self, claim: Claim, clock: Clock) -> None:
        self.claim = claim
        self.clock = clock
        self.receipt = Receipt()
        self.batch = Batch()
        self.again = Rereading(claim, clock) if claim.rereads else None
        self.stored_before = frozenset() if self.again else stored_ordinals(claim)
        self.traces = len(self.stored_before)
        self.bytes_written = 0
        self.reader = _ReaderName(claim)
        self.ordinal = 0
        self.project = Project.objects.get(pk=claim.project_id)
        self.privacy = Privacy.of(self.project)
        self.origins = Origins(claim.reduced)
        if claim.reduced is not None:
            add_to_receipt(claim.reduced, self.receipt)

    def run(self) -> None:
        """Read to the end: finished with a receipt, or failed with a sentence."""
        try:
            if self.again is not None:
                with self._items() as items:
                    self.again.look(items, Privacy.of(self.project))
            with self._items() as items:
                self._read(items)
        except FoundNothing as error:
            self._end(str(error))
            return
        except TooLarge as error:
            self._discard()
            self._end(str(error))
            return
        except UnreadableTrace as error:
            self._write()
            self._end(str(error))
            return
        except CannotOpen as error:
            self._end(str(error))
            return
        except FileNotFoundError:
            self._end("The bytes of this upload are gone from the store.")
            return
        self._write()
        self._end("")

    @contextmanager
    def _items(self) -> Iterator[Iterator[Item]]:
        with open_raw(self.claim.sha256) as raw:
            items = read_file(
                raw,
                name=self.claim.name,
                format_override=self.claim.format_override,
                max_unpacked_bytes=settings.MAX_UNPACKED_BYTES,
            )
            with closing(items):
                yield items

    def keep_what_was_read(self) -> None:
        """Write the traces before the one that broke the reader."""
        try:
            self._write()
        except _FAULTS_OF_CONTENT:
            logger.exception("Not written: upload %s", self.claim.upload_id)

    def end_broken(self, error: Exception) -> None:
        """End with a sentence for what no reader should do: break on its input."""
        logger.error(
            "The reader broke on upload %s", self.claim.upload_id, exc_info=error
        )
        self._end(
            f"Evalsite's reader broke on this file ({type(error).__name__}). That is "
            "our fault; the bytes are kept, so it can be read again by a later version."
        )

    def _discard(self) -> None:
        """Drop what a bomb held so far: no trace that anyone meant to send.

        What reviewers have decided meanwhile stays, with the rest of it, and so does
        what an earlier reading had found.
        """
        if self.again is not None:
            return
        with transaction.atomic():
            hold(self.claim)
            lock_traces_of(upload_id=self.claim.upload_id)
            if lock_undecided(upload_id=self.claim.upload_id):
                discard_traces(claim=self.claim)
                self.traces = 0

    def _end(self, failure: str) -> None:
        if not failure and not self.traces:
            failure = why_nothing(self.receipt)
        failure = self.privacy.keep_sentence(failure)
        if self.again is not None and not self.again.has_begun:
            self.again.keep_as_it_was(failure)
            return
        self.receipt.redactions = self.privacy.counts
        if failure and not self.traces and self.again is None:
            fail_upload(claim=self.claim, sentence=failure, receipt=self.receipt)
            return
        if failure:
            self.receipt.reject(Rejected(place="the rest of the file", reason=failure))
        find_trials_of_upload(
            project_id=self.claim.project_id, upload_id=self.claim.upload_id
        )
        rank_all(self.claim.project_id)
        wake_scoring(project_id=self.claim.project_id)
        if self.again is not None:
            self.again.finish(self.receipt, is_whole=not failure)
            rank_all(self.claim.project_id)
        else:
            finish_upload(claim=self.claim, receipt=self.receipt)
        if not failure:
            forget_raw(upload_id=self.claim.upload_id)

    def _read(self, items: Iterator[Item]) -> None:
        for item in items:
            if isinstance(item, Trace):
                self._take_trace(item)
            else:
                self._take(item)
            if self.batch.is_full or self._has_read_much():
                self._write()

    def _take_trace(self, trace: Trace) -> None:
        if origin := self.origins.of(self.ordinal):
            self.reader.open(origin)
        opened = self.reader.of_a_trace()
        # Bodies and secrets end here: nothing below sees what the project keeps out.
        kept = self.privacy.keep(trace)
        if self.ordinal not in self.stored_before:
            asked = self.privacy.input_hash(of=trace, kept=kept)
            self.batch.add_trace(self.ordinal, kept, opened, asked)
        self._note_traces(kept)
        self.receipt.read_by(opened, traces=1)
        self.ordinal += 1

    def _note_traces(self, trace: Trace) -> None:
        for sentence in trace.notes:
            # The receipt says this once of the whole upload.
            if self.claim.reduced is None or sentence != SENTENCE:
                self.receipt.trace_notes.add(sentence)

    def _take(self, item: Rejected | Note | Progress | Opened) -> None:
        if isinstance(item, Rejected):
            self.receipt.reject(self.privacy.keep_words(item))
        elif isinstance(item, Note):
            self.receipt.note(self.privacy.keep_words(item))
        elif isinstance(item, Opened):
            if self.origins:
                return
            self.reader.open(item)
            self.receipt.read_by(item, files=item.files)
        else:
            self.batch.progress = item

    def _has_read_much(self) -> bool:
        """Whether a batch of few but heavy traces holds enough bytes to be written."""
        progress = self.batch.progress
        return (
            progress is not None
            and progress.bytes_read - self.bytes_written > BATCH_BYTES
        )

    def _write(self) -> None:
        batch, self.batch = self.batch, Batch()
        if not batch.traces and batch.progress is None:
            return
        try:
            self._store(batch)
        except IntegrityError:
            # Another worker has just written a trace with the same id; now it shows.
            batch.rejected.clear()
            self._store(batch)
        self.traces += len(batch.traces) - len(batch.rejected)
        for item in batch.rejected:
            self.receipt.reject(item)
        if batch.progress is not None:
            self.bytes_written = batch.progress.bytes_read

    def _store(self, batch: Batch) -> None:
        with transaction.atomic():
            wake_scoring(project_id=self.claim.project_id)
            if self.again is not None:
                batch = self.again.write_over(batch)
            stored = store_batch(claim=self.claim, batch=batch)
            queued = screen_traces(
                project_id=self.claim.project_id,
                traces=stored,
                lineup=pin_new_checks(
                    project_id=self.claim.project_id, now=self.clock()
                ),
            )
            per_trace = open_signals(
                project_id=self.claim.project_id, queued=queued, now=self.clock()
            )
            add_signal_counts(claim=self.claim, per_trace=per_trace)
            draw_blind_looks(
                project=self.project,
                trace_ids=[one.trace_id for one in stored],
                flagged=per_trace,
                now=self.clock(),
            )
