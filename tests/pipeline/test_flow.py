"""What follows what: waking, resuming, reading again, and giving up."""

from __future__ import annotations

import gzip
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from apps.pipeline import reading, tasks
from apps.pipeline.flow import EmptyUpload, read_again, submit_upload
from apps.pipeline.stuck import free_upload_ids
from apps.screening.models import Screening
from apps.traces.models import Trace, Upload
from apps.traces.operations import claim_upload
from apps.traces.storage import path_of, receive
from apps.traces.transitions import MAX_TRIES, NotPossibleNow
from tests.factories import (
    CHAT,
    NOW,
    chat_bytes,
    decay_trace,
    upload_bytes,
    upload_traces,
)
from tests.pipeline.waiting import expire, waiting

FALLING = decay_trace(100, 90, 80, 70, 60)


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
        for _ in range(MAX_TRIES):
            claim_upload(upload_id=upload.pk, lease_seconds=60)
            expire(upload)
        tasks.resume_stuck()
        upload.refresh_from_db()
        assert (sent, upload.state) == ([], "failed")

    def test_a_broker_that_is_away_costs_nothing(
        self, project, monkeypatch, django_capture_on_commit_callbacks
    ):
        def away(*_, **__):
            raise OperationalError("connection refused")

        monkeypatch.setattr("celery.current_app.send_task", away)
        with django_capture_on_commit_callbacks(execute=True) as callbacks:
            upload = waiting(project)
        assert len(callbacks) == 1
        assert upload.state == "received"
        assert free_upload_ids() == [upload.pk]


class TestReadingAgain:
    """What stands in the way of reading again; test_reading_again has the rest."""

    def test_it_is_refused_while_it_is_being_read(self, project):
        upload = waiting(project)
        claim_upload(upload_id=upload.pk, lease_seconds=60)
        with pytest.raises(NotPossibleNow, match="is reading"):
            read_again(upload=upload, format_override="")

    def test_an_unknown_format_is_an_error_before_anything_is_done(self, project):
        upload = upload_traces(project, FALLING)
        with pytest.raises(KeyError):
            read_again(upload=upload, format_override="xml")
        upload.refresh_from_db()
        assert upload.state == "done"


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
    with pytest.raises(EmptyUpload, match=r"“e\.json” is empty"):
        submit_upload(project=project, received=received, user=None, now=NOW)
    assert [path for path in uploads_dir.rglob("*") if path.is_file()] == []


@pytest.mark.django_db(transaction=True)
def test_the_same_bytes_sent_by_twelve_at_once_are_one_upload(
    project, monkeypatch, uploads_dir
):
    sent: list[tuple[str, dict[str, int]]] = []
    monkeypatch.setattr(
        "celery.current_app.send_task",
        lambda name, *, kwargs: sent.append((name, kwargs)),
    )
    start = threading.Barrier(12)

    def submit(number: int) -> tuple[int, bool]:
        received = receive([chat_bytes(CHAT)], limit=10**6, name=f"{number}.jsonl")
        start.wait()
        try:
            upload, is_new = submit_upload(
                project=project, received=received, user=None, now=NOW
            )
            return upload.pk, is_new
        finally:
            connection.close()

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(submit, range(12)))
    [upload] = Upload.objects.all()
    assert {pk for pk, _ in answers} == {upload.pk}
    assert [is_new for _, is_new in answers].count(True) == 1
    assert sent == [("pipeline.parse_upload", {"upload_id": upload.pk})]
    assert path_of(upload.sha256).read_bytes() == chat_bytes(CHAT)
    assert not list((uploads_dir / "incoming").glob("*"))
