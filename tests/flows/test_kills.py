"""Killing the worker, its children or the broker loses nothing and doubles nothing."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.db.models.functions import Now

from apps.engine.format import Opened
from apps.engine.formats.evalsite_writer import dump
from apps.pipeline.flow import read_again, submit_upload
from apps.pipeline.heartbeat import kept_alive
from apps.pipeline.reading import read_upload
from apps.pipeline.stuck import free_upload_ids
from apps.review.models import HistoryEntry, Signal
from apps.screening.models import Screening
from apps.traces.batches import Batch
from apps.traces.models import BodyChunk, Step, Trace, Upload
from apps.traces.operations import (
    LostClaim,
    claim_upload,
    give_up_stuck_uploads,
    renew_claim,
    store_batch,
)
from apps.traces.storage import receive
from apps.traces.transitions import MAX_TRIES
from tests.benchmarks.corpus import results_file
from tests.factories import NOW, decay_trace, make_project
from tests.flows.conftest import wait_until
from tests.soak import times

KILLS = times(MAX_TRIES, soak=12)
COPIES = 2 * KILLS + 2
"""Writes of a reader, so that each of the kills finds it between two."""
TRACES_OF_A_COPY = 200


@pytest.fixture
def project(transactional_db):
    return make_project(name="Under fire")


def submit(project, content: bytes, name: str = "results.json") -> Upload:
    upload, _ = submit_upload(
        project=project,
        received=receive([content], limit=10**9, name=name),
        user=None,
        now=NOW,
    )
    return upload


def state(upload: Upload) -> str:
    return Upload.objects.values_list("state", flat=True).get(pk=upload.pk)


def stored(upload: Upload) -> int:
    return Trace.objects.filter(upload=upload).count()


def is_done(upload: Upload):
    return lambda: state(upload) in {"done", "failed"}


def is_read_now(upload: Upload):
    """Whether somebody holds it and keeps on holding it."""
    held = Upload.objects.filter(pk=upload.pk, state="reading", lease_until__gt=Now())
    return held.exists


def has_more_than(upload: Upload, count: int):
    return lambda: stored(upload) > count


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


def assert_everything_is_there_once(upload: Upload, *, copies: int) -> None:
    expected = copies * TRACES_OF_A_COPY
    upload.refresh_from_db()
    traces = Trace.objects.filter(upload=upload)
    assert (upload.state, upload.failure) == ("done", "")
    assert traces.count() == upload.trace_count == expected
    assert sorted(traces.values_list("ordinal", flat=True)) == list(range(expected))
    steps = Step.objects.filter(trace__upload=upload).count()
    assert steps == upload.step_count
    first = BodyChunk.objects.filter(trace__upload=upload, first_seq=0)
    assert first.count() == expected
    screened = Screening.objects.filter(trace__upload=upload)
    assert screened.values("trace").distinct().count() == expected
    signals = Signal.objects.filter(trace__upload=upload)
    assert signals.count() == upload.signal_count
    opened = HistoryEntry.objects.filter(signal__in=signals, act="opened")
    assert opened.count() == signals.count()


def test_a_worker_reads_what_was_uploaded_and_queues_its_signals(project, processes):
    processes.worker()
    upload = submit(project, dump(decay_trace(100, 90, 80, 70, 60)))
    wait_until(is_done(upload), seconds=30, what="the upload is read")
    assert Signal.objects.get(project=project).headline


@pytest.mark.slow
def test_killing_the_whole_worker_again_and_again_loses_and_doubles_nothing(
    project, processes, tmp_path
):
    processes.beat(tmp_path)
    upload = submit(project, results_file(copies=COPIES))
    for _ in range(KILLS):
        before = stored(upload)
        worker = processes.worker()
        wait_until(has_more_than(upload, before), seconds=60, what="it reads")
        processes.kill_at_work(worker, is_read_now(upload))
    processes.worker()
    wait_until(is_done(upload), seconds=90, what="the upload is read after all")
    assert_everything_is_there_once(upload, copies=COPIES)
    # More kills than tries in a row are allowed: each attempt stored something.
    assert Upload.objects.get(pk=upload.pk).attempt > MAX_TRIES


@pytest.mark.slow
def test_killing_the_child_that_reads_hands_the_upload_to_another(
    project, processes, tmp_path
):
    processes.beat(tmp_path)
    worker = processes.worker()
    upload = submit(project, results_file(copies=4))
    wait_until(lambda: stored(upload) > 0, seconds=60, what="it reads")
    for child in children_of(worker.pid):
        os.kill(child, signal.SIGKILL)
    wait_until(is_done(upload), seconds=90, what="the upload is read after all")
    assert_everything_is_there_once(upload, copies=4)
    assert upload.attempt > 1, "The kill came too late to tell anything."


@pytest.mark.slow
def test_a_broker_that_forgets_everything_loses_nothing(
    project, processes, broker, tmp_path
):
    upload = submit(project, results_file(copies=1))
    # So long an upload is left to its own message.
    received = upload.created_at - timedelta(seconds=10)
    Upload.objects.filter(pk=upload.pk).update(created_at=received)
    broker.flushall()
    processes.worker()
    processes.beat(tmp_path)
    wait_until(is_done(upload), seconds=90, what="the upload is read after all")
    assert_everything_is_there_once(upload, copies=1)


@pytest.mark.parametrize("where", ["nowhere.sock", "stopped"])
def test_an_upload_is_accepted_while_the_broker_is_away(
    project, processes, start, broker, tmp_path, where
):
    stopped = int(broker.info("server")["process_id"]) if where == "stopped" else None
    environment = dict(processes.environment)
    if stopped is None:
        environment["REDIS_URL"] = f"redis+socket://{tmp_path}/nowhere.sock"
    else:
        os.kill(stopped, signal.SIGSTOP)
    begun = time.monotonic()
    try:
        words = ("tests.flows.submitting", project.slug)
        submitting = start(*words, environment=environment, log=processes.log)
        assert submitting.wait(60) == 0
    finally:
        if stopped is not None:
            os.kill(stopped, signal.SIGCONT)
    assert time.monotonic() - begun < 30
    upload = Upload.objects.get(project=project)
    assert upload.state == "received"


def test_a_file_that_always_ends_its_reader_is_given_up_after_three_tries(project):
    upload = submit(project, results_file())
    for attempt in range(1, 4):
        claim = claim_upload(upload_id=upload.pk, lease_seconds=60)
        assert claim is not None
        assert claim.attempt == attempt
        assert claim_upload(upload_id=upload.pk, lease_seconds=60) is None
        Upload.objects.filter(pk=upload.pk).update(lease_until=Now())
    assert free_upload_ids() == []
    assert give_up_stuck_uploads() == 1
    upload.refresh_from_db()
    assert upload.state == "failed"
    assert "ended the worker 3 times" in upload.failure


def test_reading_again_does_not_let_an_old_reader_back_in(project):
    upload = submit(project, results_file())
    zombie = claim_upload(upload_id=upload.pk, lease_seconds=60)
    Upload.objects.filter(pk=upload.pk).update(lease_until=Now())
    read_upload(upload_id=upload.pk, clock=lambda: NOW)
    upload.refresh_from_db()
    read_again(upload=upload, format_override="")
    claim_upload(upload_id=upload.pk, lease_seconds=60)
    with pytest.raises(LostClaim):
        renew_claim(zombie)


def test_a_claim_is_kept_alive_while_one_record_takes_long(project):
    upload = submit(project, results_file())
    claim = claim_upload(upload_id=upload.pk, lease_seconds=1)
    with kept_alive(claim):
        time.sleep(1.5)
        assert claim_upload(upload_id=upload.pk, lease_seconds=1) is None
    wait_until(
        lambda: claim_upload(upload_id=upload.pk, lease_seconds=1),
        seconds=10,
        what="its lease has run out",
    )


def test_a_reader_that_lost_its_claim_writes_nothing_any_more(project):
    upload = submit(project, results_file())
    zombie = claim_upload(upload_id=upload.pk, lease_seconds=60)
    Upload.objects.filter(pk=upload.pk).update(lease_until=Now())
    assert claim_upload(upload_id=upload.pk, lease_seconds=60) is not None
    batch = Batch()
    batch.add_trace(0, decay_trace(5, 4, 3, 2, 1), Opened("", "evalsite-jsonl", 1))
    with pytest.raises(LostClaim), transaction.atomic():
        store_batch(claim=zombie, batch=batch)
    assert stored(upload) == 0
