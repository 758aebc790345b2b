"""Requests and workers at the same time: nothing twice, nothing lost, no deadlock."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections
from django.utils import timezone

from apps.live.arrival import spans_of
from apps.live.encoding import PROTOBUF, decode
from apps.live.models import LiveSpan, LiveTrace
from apps.live.operations import LostClaim, claim_live_trace, note_stored, receive_spans
from apps.pipeline.live import assemble_due, give_up_hopeless
from apps.review.models import Signal
from apps.traces.models import Step, Trace, Upload
from tests.factories import NOW, make_project
from tests.formats.otlp_files import as_protobuf
from tests.live.conftest import billing_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("at_once"),
]
TRACES = 12


def receive(project, spans: list[dict]) -> None:
    arrival = spans_of(decode(as_protobuf(*spans), PROTOBUF))
    receive_spans(project=project, spans=arrival.spans, now=NOW)


def test_overlapping_requests_and_workers_store_each_trace_once(settings):
    settings.LIVE_QUIET_SECONDS = 0
    project = make_project()
    everything = [
        {**one, "traceId": f"{number:032x}"}
        for number in range(1, TRACES + 1)
        for one in billing_run()
    ]
    chance = random.Random(17)

    def send(seed: int) -> None:
        mine = random.Random(seed)
        spans = mine.sample(everything, len(everything))
        try:
            for start in range(0, len(spans), 20):
                receive(project, spans[start : start + 20])
        finally:
            connections.close_all()

    def assemble(_: int) -> None:
        try:
            for _ in range(4):
                assemble_due(clock=timezone.now)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(send, chance.randrange(999)) for _ in range(4)]
        done += [pool.submit(assemble, number) for number in range(4)]
        for one in done:
            one.result(timeout=60)
    assemble_due(clock=timezone.now)
    upload = Upload.objects.get()
    assert LiveSpan.objects.count() == 8 * TRACES
    assert Trace.objects.count() == upload.trace_count == TRACES
    assert Step.objects.count() == upload.step_count == 8 * TRACES
    assert Signal.objects.count() == upload.signal_count == TRACES
    assert upload.size == sum(LiveTrace.objects.values_list("byte_count", flat=True))
    assert not LiveTrace.objects.filter(due_at__isnull=False).exists()


def test_a_worker_that_lost_its_claim_writes_nothing_any_more():
    project = make_project()
    receive(project, billing_run())
    zombie = claim_live_trace(lease_seconds=0)
    assert zombie is not None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.05)")
    assert claim_live_trace(lease_seconds=60) is not None
    with pytest.raises(LostClaim):
        note_stored(claim=zombie, stored_as=None, redactions={})


def test_a_trace_that_ends_its_worker_five_times_is_given_up_in_words():
    project = make_project()
    receive(project, billing_run())
    for _ in range(5):
        assert claim_live_trace(lease_seconds=60) is not None
        LiveTrace.objects.update(lease_until=NOW)
    assert claim_live_trace(lease_seconds=60) is None
    give_up_hopeless()
    assert "could not be stored in 5 attempts" in LiveTrace.objects.get().failure
    assert Upload.objects.get().rejected_count == 1
    receive(project, billing_run(112, 100, 86, 78, 70, 43, 20))
    assert assemble_due(clock=timezone.now) == 1
    assert Trace.objects.get().step_count == 9
