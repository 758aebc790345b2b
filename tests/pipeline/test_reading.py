"""Reading an upload: once, to an end with words, whatever breaks on the way."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from django.db import OperationalError
from django.db.models.functions import Now

from apps.engine.format import Item, Note, Progress, Rejected, UnreadableTrace
from apps.pipeline import flow, reading, tasks
from apps.pipeline.flow import EmptyUpload, read_again, submit_upload
from apps.pipeline.reading import read_upload
from apps.pipeline.stuck import free_upload_ids
from apps.review.models import HistoryEntry, Signal
from apps.review.operations import DecisionInput, decide, undo
from apps.review.transitions import Verdict
from apps.screening.models import Screening
from apps.traces import operations
from apps.traces.models import RejectedRecord, Trace, Upload
from apps.traces.operations import claim_upload, give_up_stuck_uploads
from apps.traces.storage import path_of, receive
from apps.traces.transitions import MAX_ATTEMPTS, NotPossibleNow
from tests.factories import (
    CHAT,
    NOW,
    chat_bytes,
    decay_trace,
    upload_bytes,
    upload_traces,
)

FALLING = decay_trace(100, 90, 80, 70, 60)


def waiting(project, content: bytes = b'{"made": "up"}', name="x.json") -> Upload:
    """An upload that nobody has read yet."""
    received = receive([content], limit=10**9, name=name)
    upload, _ = submit_upload(project=project, received=received, user=None, now=NOW)
    return upload


def read(upload: Upload) -> bool:
    done = read_upload(upload_id=upload.pk, clock=lambda: NOW)
    upload.refresh_from_db()
    return done


class Reader:
    """A format whose reading is a function of the test."""

    slug = "made-up"
    label = "Made up"
    version = 7
    description = "For tests."

    def __init__(self, read: Callable[[], Iterator[Item]]) -> None:
        self._read = read

    def recognises(self, source) -> bool:
        return True

    def read(self, source) -> Iterator[Item]:
        return self._read()


@pytest.fixture
def reads(monkeypatch):
    """Let every upload be read by this function."""

    def use(function: Callable[[], Iterator[Item]]) -> None:
        monkeypatch.setattr(reading, "detect", lambda source: Reader(function))

    return use


def test_reading_twice_is_one_reading(project):
    upload = upload_traces(project, FALLING)
    before = (Trace.objects.count(), Screening.objects.count(), Signal.objects.count())
    assert read(upload) is False
    assert upload.attempt == 1
    assert before == (
        Trace.objects.count(),
        Screening.objects.count(),
        Signal.objects.count(),
    )


def test_the_task_may_run_twice_and_takes_arguments_of_later_versions(project):
    upload = waiting(project, chat_bytes(CHAT))
    tasks.parse_upload(upload_id=upload.pk, priority_of_a_later_version=3)
    tasks.parse_upload(upload_id=upload.pk)
    upload.refresh_from_db()
    assert (upload.state, upload.trace_count, upload.attempt) == ("done", 1, 1)


def test_what_the_reader_says_is_the_receipt(project, reads):
    def found():
        yield Note("odd", "Something was odd.")
        yield FALLING
        yield Rejected(place="line 2", reason="It was bad.", excerpt="{")
        yield Note("odd", "Something was odd.", count=2)
        yield Progress(bytes_read=50, bytes_total=100)

    reads(found)
    upload = waiting(project)
    assert read(upload)
    assert (upload.format, upload.reader_version) == ("made-up", 7)
    assert upload.notes == [
        {"code": "odd", "sentence": "Something was odd.", "count": 3}
    ]
    assert (upload.rejected_count, upload.signal_count) == (1, 1)
    assert (upload.bytes_read, upload.bytes_total) == (100, 100)
    assert RejectedRecord.objects.get().place == "line 2"


@pytest.mark.parametrize(
    "error", [ValueError("odd"), RecursionError(), MemoryError(), KeyError("x")]
)
def test_a_reader_that_breaks_ends_in_a_sentence_that_takes_the_blame(
    project, reads, error
):
    def breaks():
        raise error
        yield

    reads(breaks)
    upload = waiting(project)
    read(upload)
    assert upload.state == "failed"
    assert f"reader broke on this file ({type(error).__name__})" in upload.failure
    assert "our fault" in upload.failure
    assert path_of(upload.sha256).exists()
    assert upload.lease_until is None


def test_a_reader_that_breaks_after_some_traces_says_what_is_missing(
    project, reads, monkeypatch
):
    monkeypatch.setattr("apps.traces.batches.COPY_BATCH_STEPS", 5)

    def breaks_late():
        yield FALLING
        yield FALLING
        raise ValueError("odd")

    reads(breaks_late)
    upload = waiting(project)
    read(upload)
    assert (upload.state, upload.trace_count) == ("done", 2)
    line = RejectedRecord.objects.get()
    assert line.place == "the rest of the file"
    assert "reader broke" in line.reason
    assert upload.rejected_count == 1


def test_a_file_that_becomes_unreadable_keeps_what_came_before_and_says_so(
    project, reads
):
    def stops():
        yield FALLING
        raise UnreadableTrace("The rest is noise.")

    reads(stops)
    upload = waiting(project)
    read(upload)
    assert (upload.state, upload.trace_count, upload.rejected_count) == ("done", 1, 1)
    assert RejectedRecord.objects.get().reason == "The rest is noise."


def test_a_file_of_rejected_records_only_fails_with_the_first_reason(project, reads):
    reads(lambda: iter([Rejected("line 1", "It is red."), Rejected("line 2", "No.")]))
    upload = waiting(project)
    read(upload)
    assert upload.state == "failed"
    assert "None of the 2 records could be read" in upload.failure
    assert "line 1: It is red." in upload.failure
    assert RejectedRecord.objects.count() == 2


def test_a_file_in_which_a_reader_finds_nothing_fails_with_a_sentence(project, reads):
    reads(lambda: iter([Progress(1, 1)]))
    upload = waiting(project)
    read(upload)
    assert (upload.state, upload.failure) == ("failed", "There is no trace in this file.")


def test_a_hundred_rejected_records_are_kept_and_all_are_counted(project, reads):
    def many():
        yield FALLING
        for number in range(250):
            yield Rejected(f"line {number}", "It is bad.")

    reads(many)
    upload = waiting(project)
    read(upload)
    assert (upload.rejected_count, RejectedRecord.objects.count()) == (250, 100)


def test_bytes_that_are_gone_from_the_store_are_a_sentence(project):
    upload = waiting(project)
    path_of(upload.sha256).unlink()
    read(upload)
    assert (upload.state, upload.failure) == (
        "failed",
        "The bytes of this upload are gone from the store.",
    )


def expire(upload: Upload) -> None:
    Upload.objects.filter(pk=upload.pk).update(lease_until=Now() - timedelta(seconds=1))


class TestADatabaseThatFails:
    """The machine's fault is no fault of the file."""

    def test_its_error_leaves_the_upload_to_the_next_attempt(self, project, reads):
        failures = [OperationalError("the server closed the connection")]

        def fails_once():
            if failures:
                raise failures.pop()
            yield FALLING

        reads(fails_once)
        upload = waiting(project)
        with pytest.raises(OperationalError):
            read(upload)
        upload.refresh_from_db()
        assert (upload.state, upload.failure) == ("reading", "")
        assert read(upload) is False
        expire(upload)
        assert free_upload_ids() == [upload.pk]
        assert read(upload)
        assert (upload.state, upload.attempt, upload.trace_count) == ("done", 2, 1)

    def test_an_error_of_copy_counts_as_one_of_the_database(self, project, monkeypatch):
        upload = waiting(project, chat_bytes(CHAT))

        def full(*args, **kwargs):
            raise psycopg.errors.DiskFull("no space left on device")

        monkeypatch.setattr("psycopg.Copy.write_row", full)
        monkeypatch.setattr("apps.traces.copying.msgspec.json.encode", json.dumps)
        with pytest.raises(OperationalError, match="no space left"):
            read(upload)
        upload.refresh_from_db()
        assert upload.state == "reading"

    def test_a_value_that_no_column_holds_ends_in_a_sentence_at_once(
        self, project, reads
    ):
        reads(lambda: iter([decay_trace(2**70)]))
        upload = waiting(project)
        read(upload)
        assert (upload.state, upload.attempt) == ("failed", 1)
        assert "our fault" in upload.failure
        assert not Trace.objects.exists()

    def test_two_workers_with_the_same_trace_keep_it_once(self, project, monkeypatch):
        upload_traces(project, decay_trace(3, 2, native_id="same"))
        seen = operations._known_native_ids
        blind = [True]

        def sees_late(claim, batch):
            return {} if blind and blind.pop() else seen(claim, batch)

        monkeypatch.setattr(operations, "_known_native_ids", sees_late)
        second = upload_traces(
            project,
            decay_trace(3, 2, native_id="same"),
            decay_trace(9, native_id="new"),
        )
        assert not blind
        assert (second.state, second.trace_count) == ("done", 1)
        assert (second.duplicate_count, second.rejected_count) == (1, 0)


class TestAWorkerThatDies:
    """A claim ends with its lease; whoever lost it writes nothing more."""

    def test_the_next_attempt_goes_on_behind_what_is_stored(
        self, project, reads, monkeypatch
    ):
        monkeypatch.setattr("apps.traces.batches.COPY_BATCH_STEPS", 1)
        dies = [True]

        def many():
            for number in range(6):
                if number == 4 and dies and dies.pop():
                    raise OSError("the machine went away")
                yield decay_trace(9, 8, 7, 6, 5, 4, name=f"run {number}")

        reads(many)
        upload = waiting(project)
        with pytest.raises(OSError, match="went away"):
            read(upload)
        assert Trace.objects.count() == 4
        expire(upload)
        assert read(upload)
        names = Trace.objects.order_by("ordinal").values_list("name", flat=True)
        assert list(names) == [f"run {number}" for number in range(6)]
        assert (upload.trace_count, upload.step_count) == (6, 36)
        assert upload.signal_count == Signal.objects.count() == 6

    @pytest.mark.parametrize("ends", ["well", "broken"])
    def test_a_reader_that_lost_its_claim_changes_nothing(self, project, reads, ends):
        upload = waiting(project)

        def slow():
            expire(upload)
            assert claim_upload(upload_id=upload.pk, lease_seconds=60)
            if ends == "broken":
                raise ValueError("odd")
            yield FALLING

        reads(slow)
        assert read(upload) is False
        assert (upload.state, upload.attempt, upload.failure) == ("reading", 2, "")
        assert not Trace.objects.exists()

    def test_after_three_attempts_it_fails_with_a_sentence(self, project):
        upload = waiting(project)
        for _ in range(MAX_ATTEMPTS):
            assert claim_upload(upload_id=upload.pk, lease_seconds=60)
            expire(upload)
        assert claim_upload(upload_id=upload.pk, lease_seconds=60) is None
        assert free_upload_ids() == []
        assert give_up_stuck_uploads() == 1
        upload.refresh_from_db()
        assert upload.state == "failed"
        assert "ended the worker 3 times" in upload.failure


class TestResumeStuck:
    """What no message points at any more is found in the database."""

    @pytest.fixture
    def sent(self, monkeypatch):
        ids: list[int] = []
        monkeypatch.setattr(
            tasks.parse_upload, "delay", lambda *, upload_id: ids.append(upload_id)
        )
        return ids

    def test_it_sends_what_was_received_and_what_was_let_go(self, project, sent):
        lost, dead, alive = (waiting(project, b"[%d]" % n) for n in range(3))
        for upload in (dead, alive):
            claim_upload(upload_id=upload.pk, lease_seconds=60)
        expire(dead)
        done = upload_bytes(project, chat_bytes(CHAT))
        tasks.resume_stuck(of_a_later_version=True)
        assert sent == [lost.pk, dead.pk]
        assert alive.pk not in sent
        assert done.pk not in sent

    def test_it_leaves_what_has_just_arrived_to_its_own_message(self, project, sent):
        upload = waiting(project)
        Upload.objects.filter(pk=upload.pk).update(created_at=Now())
        tasks.resume_stuck()
        assert sent == []

    def test_it_fails_what_has_killed_three_workers(self, project, sent):
        upload = waiting(project)
        for _ in range(MAX_ATTEMPTS):
            claim_upload(upload_id=upload.pk, lease_seconds=60)
            expire(upload)
        tasks.resume_stuck()
        upload.refresh_from_db()
        assert (sent, upload.state) == ([], "failed")

    def test_a_broker_that_is_away_costs_nothing(
        self, project, monkeypatch, django_capture_on_commit_callbacks
    ):
        def away(*, upload_id):
            raise flow.OperationalError("connection refused")

        monkeypatch.setattr(tasks.parse_upload, "delay", away)
        with django_capture_on_commit_callbacks(execute=True) as callbacks:
            upload = waiting(project)
        assert len(callbacks) == 1
        assert upload.state == "received"
        assert free_upload_ids() == [upload.pk]


class TestReadingAgain:
    """The kept bytes may be read again while nobody's decision depends on them."""

    def confirmed(self, project, reviewer) -> Signal:
        signal = Signal.objects.get(project=project)
        return decide(
            signal_id=signal.pk,
            user=reviewer,
            decision=DecisionInput(verdict=Verdict.CONFIRM),
            base_version=0,
        )

    def test_it_forgets_and_finds_the_same_again(self, project):
        upload = upload_traces(project, FALLING)
        first = Trace.objects.get()
        read_again(upload=upload, format_override="")
        upload.refresh_from_db()
        assert (upload.state, upload.trace_count, upload.attempt) == ("received", 0, 0)
        assert not Trace.objects.exists()
        assert read(upload)
        assert Trace.objects.get().content_hash == first.content_hash
        assert upload.signal_count == Signal.objects.count() == 1

    def test_it_is_refused_once_a_reviewer_has_decided(self, project, reviewer):
        upload = upload_traces(project, FALLING)
        signal = self.confirmed(project, reviewer)
        with pytest.raises(NotPossibleNow, match="would lose their decisions"):
            read_again(upload=upload, format_override="")
        undo(signal_id=signal.pk, user=reviewer, base_version=signal.version)
        with pytest.raises(NotPossibleNow):
            read_again(upload=upload, format_override="")
        assert HistoryEntry.objects.filter(signal=signal).count() == 4

    def test_it_is_refused_while_it_is_being_read(self, project):
        upload = waiting(project)
        claim_upload(upload_id=upload.pk, lease_seconds=60)
        with pytest.raises(NotPossibleNow, match="is reading"):
            read_again(upload=upload, format_override="")

    def test_an_unknown_format_is_an_error_before_anything_is_forgotten(self, project):
        upload = upload_traces(project, FALLING)
        with pytest.raises(KeyError):
            read_again(upload=upload, format_override="xml")
        assert Trace.objects.count() == 1


class TestABomb:
    """A small file that unpacks to very much leaves nothing behind but a sentence."""

    def test_everything_that_was_read_before_the_limit_is_dropped(
        self, project, settings, monkeypatch
    ):
        monkeypatch.setattr("apps.traces.batches.COPY_BATCH_STEPS", 1_000)
        settings.MAX_UNPACKED_BYTES = 2_000_000
        stored: list[int] = []
        store = reading.store_batch

        def watched(**kwargs):
            written = store(**kwargs)
            stored.extend(item.trace_id for item in written)
            return written

        monkeypatch.setattr(reading, "store_batch", watched)
        words = random.Random(1)
        chats = [
            [*CHAT, {"role": "user", "content": words.randbytes(200).hex()}]
            for _ in range(4_000)
        ]
        content = gzip.compress(chat_bytes(*chats))
        upload = upload_bytes(project, content, name="bomb.jsonl.gz")
        assert len(stored) > 50, upload.failure
        assert upload.state == "failed"
        assert "limit" in upload.failure
        assert not Trace.objects.exists()
        assert not Screening.objects.exists()
        assert (upload.trace_count, upload.step_count, upload.signal_count) == (0, 0, 0)
        assert upload.models_seen == upload.agents_seen == []

    def test_a_file_that_just_fits_is_read_whole(self, project, settings):
        content = chat_bytes(*[CHAT] * 50)
        settings.MAX_UNPACKED_BYTES = len(content)
        assert upload_bytes(project, gzip.compress(content)).trace_count == 50


def test_an_empty_file_is_refused_and_leaves_nothing(project, uploads_dir):
    received = receive([], limit=10, name="e.json")
    with pytest.raises(EmptyUpload, match="“e.json” is empty"):
        submit_upload(project=project, received=received, user=None, now=NOW)
    assert [path for path in uploads_dir.rglob("*") if path.is_file()] == []


