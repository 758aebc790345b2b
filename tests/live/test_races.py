"""Late spans against people and against other workers: no act of a person is lost."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone

from apps.live import queries
from apps.live.models import LiveTrace
from apps.live.operations import MAX_TRIES, claim_live_trace
from apps.pipeline import live as pipeline_live
from apps.pipeline.live import assemble_due, give_up_hopeless
from apps.traces import streams
from apps.traces.models import FLAG_PLACEHOLDER, Step, Trace, Upload
from apps.traces.trials import place_trace
from tests.factories import NOW, make_project
from tests.formats.otlp_files import call
from tests.live.conftest import billing_run
from tests.live.test_concurrency import receive

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("at_once"),
]


def asked_run(number: int) -> list[dict]:
    """A trace of its own whose user asks what all of them ask."""
    messages = '[{"role": "user", "content": "Where is parcel A-1?"}]'
    asked = call(1, attributes={"gen_ai.input.messages": messages}, lasts=5)
    return [{**asked, "traceId": f"{number:032x}"}]


@pytest.fixture
def project():
    return make_project()


@pytest.fixture
def stored(project) -> Trace:
    receive(project, billing_run())
    assert assemble_due(clock=lambda: NOW) == 1
    return Trace.objects.get()


def test_a_correction_by_hand_while_late_spans_are_written_is_kept(
    project, stored, monkeypatch
):
    receive(project, [call(30, 2, 7)])
    in_between = streams._usage_states
    pool = ThreadPoolExecutor(1)
    acts = []

    def place():
        try:
            place_trace(trace=stored, task="refunds", trial=3)
        finally:
            connections.close_all()

    def act_meanwhile(*args):
        acts.append(pool.submit(place))
        done = in_between(*args)
        # Long enough for the act to be over, if nothing makes it wait.
        with suppress(TimeoutError):
            acts[0].result(timeout=1)
        return done

    monkeypatch.setattr(streams, "_usage_states", act_meanwhile)
    assert assemble_due(clock=lambda: NOW) == 1
    acts[0].result(timeout=10)
    now = Trace.objects.get()
    assert now.step_count == stored.step_count + 1
    assert (now.task.key, now.trial, now.is_task_set) == ("refunds", 3, True)


def test_one_trace_that_keeps_its_worker_busy_does_not_stop_all_senders(
    project, settings
):
    receive(project, billing_run())
    long_ago = timezone.now() - timedelta(seconds=settings.LIVE_MAX_DELAY_SECONDS + 9)
    LiveTrace.objects.update(
        due_at=long_ago, tries=1, lease_until=timezone.now() + timedelta(seconds=20)
    )
    assert queries.pressure(project_id=project.pk, now=timezone.now()) is None


def test_a_worker_killed_right_after_the_trace_was_stored_still_finds_its_trials(
    project, monkeypatch
):
    for number in (1, 2):
        receive(project, asked_run(number))

    class Killed(BaseException):
        pass

    def killed(**_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(pipeline_live, "find_trials", killed)
        for _ in range(2):
            with pytest.raises(Killed):
                assemble_due(clock=lambda: NOW)
    LiveTrace.objects.update(lease_until=None)
    assert assemble_due(clock=lambda: NOW) == 2
    assert sorted(Trace.objects.values_list("trial", flat=True)) == [0, 1]


def test_a_found_trial_keeps_its_number_when_late_spans_come(project):
    for number in (1, 2):
        receive(project, asked_run(number))
        assemble_due(clock=lambda: NOW)
    before = dict(Trace.objects.values_list("pk", "trial"))
    receive(project, [{**call(30, 1, 7), "traceId": f"{1:032x}"}])
    assert assemble_due(clock=lambda: NOW) == 1
    assert dict(Trace.objects.values_list("pk", "trial")) == before
    assert sorted(before.values()) == [0, 1]


def test_a_stream_in_use_and_a_trace_that_is_given_up_wait_for_each_other_in_order(
    project, stored
):
    """The worker that holds the stream still wants the row of the trace, and gets it."""
    receive(project, [call(30, 2, 7)])
    LiveTrace.objects.update(tries=MAX_TRIES, attempt=7)

    def give_up():
        try:
            give_up_hopeless()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Upload.objects.select_for_update().get()
            waiting = pool.submit(give_up)
            time.sleep(0.5)
            assert LiveTrace.objects.filter(attempt=7).update(tries=0, due_at=None)
        waiting.result(timeout=10)
    assert LiveTrace.objects.get().failure == ""
    assert Upload.objects.get().rejected_count == 0


def test_spans_that_come_between_claiming_and_reading_are_counted_once(project):
    receive(project, billing_run())
    claim = claim_live_trace(lease_seconds=20)
    receive(project, [call(30, 2, 7)])
    pipeline_live._store(claim, lambda: NOW)
    assert assemble_due(clock=lambda: NOW) == 1
    upload, row = Upload.objects.get(), LiveTrace.objects.get()
    assert upload.size == upload.bytes_read == row.byte_count == row.stored_bytes
    assert upload.trace_count == 1


def test_usage_of_placeholders_is_counted_once_however_often_late_spans_come(project):
    """A receipt says of how many calls the usage is known; placeholders are calls."""
    receive(project, billing_run())
    assemble_due(clock=lambda: NOW)
    Step.objects.filter(usage_state__isnull=False).update(flags=FLAG_PLACEHOLDER)
    receive(project, [call(30, 2, 7)])
    assemble_due(clock=lambda: NOW)
    upload = Upload.objects.get()
    assert sum(upload.usage_states.values()) == upload.model_call_count
