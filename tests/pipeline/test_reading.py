"""Reading an upload: once, to an end with words, whatever breaks on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import psycopg
import pytest
from django.db import OperationalError

from apps.engine import formats
from apps.engine.format import Item, Note, Progress, Rejected, UnreadableTrace
from apps.pipeline import tasks
from apps.pipeline.stuck import free_upload_ids
from apps.review.models import Signal
from apps.screening.models import Screening
from apps.traces import operations
from apps.traces.models import RejectedRecord, Trace
from apps.traces.operations import claim_upload, give_up_stuck_uploads
from apps.traces.storage import path_of
from apps.traces.transitions import MAX_TRIES
from tests.factories import (
    CHAT,
    chat_bytes,
    decay_trace,
    upload_traces,
)
from tests.pipeline.waiting import expire, read, waiting

FALLING = decay_trace(100, 90, 80, 70, 60)


class Reader:
    """A format whose reading is a function of the test."""

    slug = "made-up"
    label = "Made up"
    version = 7
    description = "For tests."

    def __init__(self, read: Callable[[], Iterator[Item]]) -> None:
        self._read = read

    def recognises(self, _source) -> bool:
        return True

    def read(self, _source) -> Iterator[Item]:
        return self._read()


@pytest.fixture
def reads(monkeypatch):
    """Let every upload be read by this function."""

    def use(function: Callable[[], Iterator[Item]]) -> None:
        monkeypatch.setattr(formats, "FORMATS", (Reader(function),))

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
    assert (upload.state, upload.failure) == (
        "failed",
        "There is no trace in this file.",
    )


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
        for _ in range(MAX_TRIES):
            assert claim_upload(upload_id=upload.pk, lease_seconds=60)
            expire(upload)
        assert claim_upload(upload_id=upload.pk, lease_seconds=60) is None
        assert free_upload_ids() == []
        assert give_up_stuck_uploads() == 1
        upload.refresh_from_db()
        assert upload.state == "failed"
        assert "ended the worker 3 times" in upload.failure
