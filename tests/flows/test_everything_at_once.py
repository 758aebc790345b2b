"""Everybody who writes traces, or what is about them, at work at the same time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from django.db import close_old_connections, connection, transaction
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.accounts.permissions import Role
from apps.engine.trace import Body
from apps.engine.trace import Trace as EngineTrace
from apps.live.arrival import spans_of
from apps.live.encoding import PROTOBUF, decode
from apps.live.operations import receive_spans
from apps.pipeline import lineups
from apps.pipeline.flow import read_again
from apps.pipeline.lineups import catch_up
from apps.pipeline.live import assemble_due
from apps.pipeline.reading import read_upload
from apps.pipeline.scoring import score_project
from apps.pipeline.shadows import (
    NothingToChange,
    Wish,
    adopt_key,
    begin_shadow,
    run_shadow,
)
from apps.review import operations as review
from apps.review.models import Signal
from apps.review.operations import Conflict, DecisionInput
from apps.review.ranking import rank_all
from apps.review.transitions import NotPossibleNow, Verdict
from apps.screening.shadows import CannotShadow
from apps.traces.locking import lock_traces_of
from apps.traces.models import Task, Trace, Upload
from apps.traces.trials import WrongPlace, find_trials, join_tasks, part_tasks
from tests.adopting import caught_up, key
from tests.factories import (
    NOW,
    make_member,
    make_project,
    model_call,
    trace_of,
    upload_traces,
)
from tests.formats.otlp_files import as_protobuf
from tests.live.conftest import billing_run
from tests.soak import times
from tests.whole_review import (
    assert_always,
    assert_caught_up,
    assert_ranked,
)

SECONDS = float(times(8, soak=120))
AGAIN = 4
"""Uploads that are read again and again; what comes meanwhile is left alone."""

REFUSALS = (
    Conflict,
    NotPossibleNow,
    NothingToChange,
    CannotShadow,
    IndexError,
    WrongPlace,
)


class Work:
    """What each thread does until the time is over, and what went wrong."""

    def __init__(self, project: Project, reviewer: User) -> None:
        self.project = project
        self.reviewer = reviewer
        self.random = Random(7)
        self.uploads = 0
        self.done: Counter[str] = Counter()
        self.errors: list[str] = []
        self.decided: set[int] = set()

    def upload(self, count: int = 8) -> None:
        self.uploads += 1
        traces = []
        for number in range(count):
            outputs = self.random.sample(range(1, 300), self.random.randint(4, 8))
            name = f"{self.uploads} {number}"
            traces.append(self.run(name, sorted(outputs, reverse=True), number))
        upload_traces(self.project, *traces, name=f"{self.uploads}.jsonl")

    def run(self, name: str, outputs: list[int], number: int) -> EngineTrace:
        """Every other one names its task, the others are trials by what they are asked."""
        task = f"desk {number % 6}" if number % 2 else None
        first, *others = (model_call(seq, one) for seq, one in enumerate(outputs))
        asked = Body(input=f"Where is parcel number {number % 6}?", output="In Graz.")
        first = msgspec.structs.replace(first, body=asked)
        return trace_of([first, *others], name=name, task=task)

    def read_again(self) -> None:
        uploads = Upload.objects.order_by("pk")[:AGAIN]
        upload = self.random.choice(list(uploads))
        # Everything is written over, as if a newer reader had found something else.
        with transaction.atomic():
            lock_traces_of(upload_id=upload.pk)
            Trace.objects.filter(upload=upload).update(content_hash="0" * 64)
        read_again(upload=upload, format_override="")
        read_upload(upload_id=upload.pk, clock=lambda: NOW)
        upload.refresh_from_db()
        assert (upload.state, upload.rejected_count) == ("done", 0)

    def adopt(self) -> None:
        check = key(self.project, last_percent=self.random.choice([20, 40, 60, 80]))
        wish = Wish(check)
        adopt_key(project_id=self.project.pk, wish=wish, user_id=None, now=NOW)
        time.sleep(0.2)

    def catch_up(self) -> None:
        catch_up(project_id=self.project.pk, clock=lambda: NOW)
        time.sleep(0.02)

    def rank(self) -> None:
        rank_all(self.project.pk)

    def shadow(self) -> None:
        check = key(self.project, last_percent=self.random.choice([30, 50, 70]))
        shadow, _ = begin_shadow(
            project=self.project, check=check, user_id=None, now=NOW
        )
        while run_shadow(shadow_id=shadow.pk):
            pass

    def score(self) -> None:
        score_project(project_id=self.project.pk, clock=lambda: NOW)
        time.sleep(0.02)

    def find_trials(self) -> None:
        held = Trace.objects.filter(project=self.project, is_task_set=False)
        held = held.filter(input_hash__isnull=False, task__isnull=False)
        hashes = list(held.values_list("input_hash", flat=True)[:50])
        # Out of their tasks, as if they had just been stored.
        found = list(held.values_list("pk", flat=True))
        for pk in self.random.sample(found, min(5, len(found))):
            Trace.objects.filter(pk=pk).update(task=None, trial=None)
        find_trials(project_id=self.project.pk, input_hashes=hashes)

    def join(self) -> None:
        tasks = list(Task.objects.filter(project=self.project, key__startswith="desk"))
        task, into = self.random.sample(tasks, 2)
        part_tasks(task=task, into=into, moved=join_tasks(task=task, into=into))
        time.sleep(0.1)

    def live(self) -> None:
        outputs = self.random.sample(range(1, 300), 5)
        trace = f"{self.random.randint(1, 9):032x}"
        spans = [{**one, "traceId": trace} for one in billing_run(*outputs)]
        arrival = spans_of(decode(as_protobuf(*spans), PROTOBUF))
        receive_spans(project=self.project, spans=arrival.spans, now=NOW)
        assemble_due(clock=timezone.now)
        time.sleep(0.02)

    def decide(self) -> None:
        signal = self.random.choice(list(Signal.objects.filter(state="open")[:50]))
        try:
            review.decide(
                signal_id=signal.pk,
                user=self.reviewer,
                decision=DecisionInput(verdict=Verdict.CONFIRM),
                base_version=signal.version,
            )
        except Signal.DoesNotExist:
            # Read again meanwhile, and nothing of it is left; nobody had decided it.
            assert not Signal.objects.filter(pk=signal.pk).exists()
            return
        self.decided.add(signal.pk)
        time.sleep(0.1)

    def until(self, end: float, act: Callable[[], None]) -> None:
        close_old_connections()
        with connection.execute_wrapper(self.pause):
            self.work(end, act)
        connection.close()

    def pause(self, execute: Any, *args: Any) -> Any:
        """Hold locks a little longer, so that others come between two statements."""
        if connection.in_atomic_block and self.random.random() < 0.2:
            time.sleep(self.random.random() / 100)
        return execute(*args)

    def work(self, end: float, act: Callable[[], None]) -> None:
        while time.monotonic() < end:
            try:
                act()
                self.done[act.__name__] += 1
            except REFUSALS:
                continue
            except Exception as error:  # noqa: BLE001
                self.errors.append(f"{act.__name__}: {type(error).__name__}: {error}")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_everything_at_once_ends_in_the_same_queue_without_a_deadlock(
    monkeypatch, settings
):
    settings.LIVE_QUIET_SECONDS = 0
    monkeypatch.setattr("celery.current_app.send_task", lambda *_, **__: None)
    monkeypatch.setattr(lineups, "MOST_STEPS", 100)
    project = make_project()
    work = Work(project, make_member(project, Role.REVIEWER))
    for _ in range(AGAIN):
        work.upload(30)
    acts = [work.upload, work.read_again, work.adopt, work.catch_up, work.catch_up]
    acts += [work.rank, work.shadow, work.decide, work.score, work.find_trials]
    acts += [work.join, work.live]
    end = time.monotonic() + SECONDS
    threads = [threading.Thread(target=work.until, args=(end, act)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert work.errors == []
    assert len(work.done) == len({act.__name__ for act in acts})
    caught_up(project)
    assert_always(project)
    assert_caught_up(project)
    assert_ranked(project)
    decided = Signal.objects.filter(state="decided", verdict="confirm")
    assert set(decided.values_list("pk", flat=True)) == work.decided
