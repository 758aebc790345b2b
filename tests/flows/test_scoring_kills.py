"""Killing the worker that scores loses nothing and doubles nothing; nor do two workers."""

from __future__ import annotations

from itertools import islice

import pytest

from apps.agents.models import Agent
from apps.agents.operations import Asked, define_agent
from apps.pipeline import scoring
from apps.pipeline.scoring import is_behind, score_project
from apps.scoring.models import Conduct, TaskScore, TraceScore
from apps.traces.behind import behind_count
from apps.traces.models import Trace
from apps.verdicts.progress import asked_at_present
from tests.at_once import at_once
from tests.benchmarks.desk_runs import desk_runs
from tests.factories import NOW, make_project, upload_traces
from tests.flows.conftest import is_held, wait_until
from tests.soak import times
from tests.whole_scores import assert_scores_are_whole

KILLS = times(1, soak=6)
TASKS = 20 * (KILLS + 2)
"""Each 20 are a batch of a worker: more than there are kills, so that none is late."""
CONTRACT = {"name": "knows the card", "kind": "regex", "pattern": "ends in 27"}


@pytest.fixture
def project(transactional_db):
    return make_project(name="Under fire")


def upload_runs(project, *, tasks: int) -> None:
    runs = desk_runs(tasks=tasks)
    while some := list(islice(runs, 400)):
        upload_traces(project, *some)


def left(project) -> int:
    name = asked_at_present(project.pk).name
    return behind_count(project.pk, name, work="scored_as")


@pytest.mark.slow
def test_killing_the_worker_that_scores_loses_and_doubles_nothing(
    project, processes, broker, tmp_path
):
    upload_runs(project, tasks=TASKS)
    # No message is left that would say what waits: the clock has to find it.
    broker.flushall()
    processes.beat(tmp_path)
    for _ in range(KILLS):
        before = left(project)
        worker = processes.worker()
        wait_until(
            lambda before=before: left(project) < before, seconds=60, what="it scores"
        )
        processes.kill_at_work(
            worker, lambda: is_held("score", project.pk) and left(project)
        )
        assert left(project), "The kill came too late."
        broker.flushall()
    processes.worker()
    wait_until(lambda: not is_behind(project.pk), seconds=120, what="it is done")
    assert TraceScore.objects.count() == Trace.objects.count() == TASKS * 10
    assert TaskScore.objects.count() == TASKS
    assert Conduct.objects.count() == TASKS * 30
    assert_scores_are_whole(project)


def test_workers_that_score_one_project_at_once_double_nothing(project, monkeypatch):
    monkeypatch.setattr("celery.current_app.send_task", lambda *_, **__: None)
    monkeypatch.setattr(scoring, "MOST_TRACES", 7)
    upload_runs(project, tasks=5)

    def work() -> None:
        while score_project(project_id=project.pk, clock=lambda: NOW):
            pass

    def ask() -> None:
        memory = Agent.objects.filter(project=project, name="memory").first()
        if memory is not None:
            asked = Asked(held=(CONTRACT,))
            define_agent(agent=memory, asked=asked, user_id=None, now=NOW)

    def upload() -> None:
        upload_runs(project, tasks=2)

    def batches() -> None:
        """As a worker whose lock went with its connection: it scores beside another."""
        waiting = scoring.behind(project.pk, "", most=30, work="scored_as")
        waiting += scoring.behind(project.pk, "0", most=30, work="scored_as")
        scoring.score_batch(waiting, project_id=project.pk, now=NOW)

    found = at_once(work, work, batches, batches, ask, upload)
    assert not [one for one in found if isinstance(one, Exception)], found
    work()
    assert Conduct.objects.count() == 3 * Trace.objects.count()
    assert_scores_are_whole(project)
