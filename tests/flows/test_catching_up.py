"""Killing the worker that catches up, or runs a shadow, loses nothing and doubles nothing."""

from __future__ import annotations

import pytest
from django.db.models.functions import Now

from apps.engine.check import configured
from apps.pipeline.reading import read_upload
from apps.pipeline.shadows import Wish, adopt_key, begin_shadow
from apps.review.models import HistoryEntry, Signal
from apps.screening.lineup import lineup_of
from apps.screening.models import Screening, Shadow
from apps.traces.behind import behind_count
from apps.traces.models import Trace, Upload
from tests.benchmarks.corpus import results_file
from tests.factories import NOW, make_project
from tests.flows.conftest import is_held, wait_until
from tests.flows.test_kills import submit
from tests.soak import times

KILLS = times(1, soak=6)
COPIES = KILLS + 2
"""More batches of a worker than there are kills, so that none comes too late."""


@pytest.fixture
def project(transactional_db):
    """A project with traces that this process has read, and no worker yet."""
    project = make_project(name="Under fire")
    upload = submit(project, results_file(copies=COPIES))
    read_upload(upload_id=upload.pk, clock=lambda: NOW)
    return project


def other_key(project):
    drift = lineup_of(project.pk).by_slug["tool-drift"].check
    return configured(drift, {"window": 5, "max_chance": 1.0})


def answered(project, key) -> int:
    slug, version, parameters = key
    rows = Screening.objects.filter(
        project=project,
        check_slug=slug,
        check_version=version,
        parameters_hash=parameters,
    )
    return rows.values("trace").distinct().count()


def assert_the_queue_is_whole(project) -> None:
    lineup = lineup_of(project.pk)
    queued = Screening.objects.filter(
        lineup.current(), project=project, answer="signal", level="review_signal"
    )
    standing = Signal.objects.exclude(state="superseded")
    assert set(standing.values_list("screening", flat=True)) == set(
        queued.values_list("pk", flat=True)
    )
    [upload] = Upload.objects.all()
    assert upload.signal_count == standing.count()
    entries = HistoryEntry.objects.filter(signal__project=project)
    assert entries.count() == entries.values("signal", "base_version").count()
    opened = entries.filter(act="opened")
    assert opened.count() == Signal.objects.count()


@pytest.mark.slow
def test_killing_the_worker_that_catches_up_loses_and_doubles_nothing(
    project, processes, tmp_path
):
    processes.beat(tmp_path)
    total = Trace.objects.count()
    wish = Wish(other_key(project))
    adopt_key(project_id=project.pk, wish=wish, user_id=None, now=NOW)
    name = lineup_of(project.pk).name
    for _ in range(KILLS):
        before = behind_count(project.pk, name)
        worker = processes.worker()
        wait_until(
            lambda before=before: behind_count(project.pk, name) < before,
            seconds=60,
            what="it catches up",
        )
        processes.kill_at_work(
            worker,
            lambda: is_held("catch_up", project.pk) and behind_count(project.pk, name),
        )
        assert behind_count(project.pk, name), "The kill came too late."
    processes.worker()
    wait_until(
        lambda: behind_count(project.pk, name) == 0, seconds=120, what="it is done"
    )
    assert answered(project, lineup_of(project.pk).by_slug["tool-drift"].key) == total
    assert_the_queue_is_whole(project)


@pytest.mark.slow
def test_killing_the_worker_of_a_shadow_loses_and_doubles_nothing(
    project, processes, tmp_path
):
    processes.beat(tmp_path)
    signals = list(Signal.objects.order_by("pk").values("pk", "state", "version"))
    shadow, _ = begin_shadow(
        project=project, check=other_key(project), user_id=None, now=NOW
    )

    held = Shadow.objects.filter(pk=shadow.pk, claimed_until__gt=Now())

    def done() -> int:
        return Shadow.objects.values_list("traces_done", flat=True).get(pk=shadow.pk)

    for _ in range(KILLS):
        before = done()
        worker = processes.worker()
        wait_until(lambda before=before: done() > before, seconds=60, what="it runs")
        processes.kill_at_work(worker, held.exists)
        assert done() < Trace.objects.count(), "The kill came too late."
    processes.worker()
    wait_until(
        lambda: Shadow.objects.get(pk=shadow.pk).state != "running",
        seconds=120,
        what="it has ended",
    )
    shadow.refresh_from_db()
    total = Trace.objects.count()
    assert (shadow.state, shadow.failure) == ("done", "")
    assert shadow.traces_done == total
    key = (shadow.check_slug, shadow.check_version, shadow.parameters_hash)
    assert answered(project, key) == total
    now = list(Signal.objects.order_by("pk").values("pk", "state", "version"))
    assert now == signals
