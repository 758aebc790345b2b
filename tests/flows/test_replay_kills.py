"""Killing workers, broker and database in the middle of a batch repeats no finished run."""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection

from apps.engine.replay.run import Limits, TargetKind
from apps.pipeline.replays import wake_runs
from apps.replays.allowed import allowed_here
from apps.replays.models import Batch, Run, RunAttempt
from apps.replays.stopping import cancel_batch
from apps.replays.targets import NewTarget, add_target
from tests.factories import NOW, make_project
from tests.flows.conftest import Processes
from tests.flows.test_kills import children_of
from tests.isolation.sandbox.runs import ended_within, processes_with
from tests.model_server import model_server
from tests.replays.alone import assert_whole, batch_at, states, target_at
from tests.replays.rows import make_agent, make_case
from tests.servers import crash_broker
from tests.soak import times

ROUNDS = times(1, soak=6)
OF_A_ROUND = 80
"""So many runs end while each is killed once: the worker first, the broker last."""
RUNS = times(200, soak=1_200)
"""Half of them are of the batch whose runs are counted: it outlasts all rounds."""
AT_ONCE = 2
"""As many runs as the worker of these tests has children."""
STANDSTILL = 60
"""Seconds without the end of a run after which nobody works on any."""


class Fire:
    """A batch under fire: how far it is, and what is done to those who run it."""

    def __init__(self, batch: Batch, processes: Processes, broker) -> None:
        self.batch = batch
        self.processes = processes
        self.broker = broker
        self.worker = processes.worker()
        self.interrupted = 0

    def executed(self) -> int:
        return steady(Run.objects.filter(batch=self.batch, trace__isnull=False).count)

    def wait_for(self, count: int) -> None:
        self.wait_until(lambda: self.executed() >= count, f"{count} runs are done")

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Wait as long as any run still ends: a machine that is busy is no fault."""
        seen, end = -1, 0.0
        while not condition():
            ended = steady(Run.objects.filter(finished_at__isnull=False).count)
            if ended > seen:
                seen, end = ended, time.monotonic() + STANDSTILL
            if time.monotonic() > end:
                pytest.fail(f"No run ended for {STANDSTILL} s, and not yet: {what}")
            time.sleep(0.2)

    def is_done(self, batch: Batch) -> object:
        return steady(
            Batch.objects.filter(pk=batch.pk, finished_at__isnull=False).exists
        )

    def kill_the_worker(self) -> None:
        self.processes.kill(self.worker)
        self.interrupted += AT_ONCE
        self.broker.flushall()
        self.worker = self.processes.worker()

    def kill_the_children(self) -> None:
        for child in children_of(self.worker.pid):
            os.kill(child, signal.SIGKILL)
        self.interrupted += AT_ONCE

    def crash_the_database(self) -> None:
        """One dead backend makes PostgreSQL end all of them and recover from its log."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            [pid] = cursor.fetchone()
        os.kill(pid, signal.SIGKILL)
        self.interrupted += AT_ONCE
        self.broker.flushall()

    def crash_the_broker(self) -> None:
        """It comes back with what was on disk; no run is interrupted by that.

        One that is not ours we could not start again: it only forgets everything.
        """
        if not crash_broker():
            self.broker.flushall()


def steady(ask: Callable[[], Any]) -> Any:
    """What the database says once it is there; nothing while it is not."""
    try:
        return ask()
    except (OperationalError, InterfaceError):
        connection.close()
        return 0


def napping(agent, settings, processes: Processes) -> tuple[Batch, str]:
    """A batch of one run of local code that sleeps, and the word it is known by."""
    mark = f"nap-{uuid.uuid4().hex}"
    settings.REPLAY_COMMANDS = [sys.executable]
    processes.environment["EVALSITE_REPLAY_COMMANDS"] = sys.executable
    sleep = ["-c", "import time; time.sleep(600)", mark]
    chosen = {"command": sys.executable, "arguments": sleep, "seconds": 600}
    new = NewTarget(name="Naps", kind=TargetKind.COMMAND, settings=chosen)
    target = add_target(
        agent=agent, new=new, allowed=allowed_here(), user_id=None, now=NOW
    )
    return batch_at(target, runs=1, limits=Limits(seconds=600)), mark


def half_of_the_runs(target, name: str) -> Batch:
    """A batch of as many cases as it takes; each is run a hundred times."""
    texts = [f"Is order {name}{number} open?" for number in range(RUNS // 200)]
    cases = [make_case(target.agent, text) for text in texts]
    return batch_at(target, cases=cases, runs=100)


@pytest.mark.slow
def test_hundreds_of_runs_end_once_each_whoever_is_killed(
    processes, broker, settings, tmp_path
):
    with model_server(delay=0.02) as server:
        agent = make_agent(make_project(name="Under fire"))
        target = target_at(agent, server, settings, concurrency=AT_ONCE)
        batch, second = (half_of_the_runs(target, name) for name in "ab")
        processes.environment["EVALSITE_REPLAY_HOSTS"] = server.host
        # The servers of tests may forget the last commits in a crash; real ones do not.
        processes.environment["PGOPTIONS"] = "-c synchronous_commit=on"
        processes.beat(tmp_path)
        nap, mark = napping(agent, settings, processes)
        fire = Fire(batch, processes, broker)
        wake_runs(count=AT_ONCE)
        fire.wait_until(lambda: processes_with(mark), "local code runs")
        fire.kill_the_worker()
        assert ended_within(mark, 5), "an orphan is left"
        cancel_batch(batch=nap, user_id=None)
        for done in range(0, ROUNDS * OF_A_ROUND, OF_A_ROUND):
            fire.wait_for(done + 15)
            fire.kill_the_worker()
            fire.wait_for(done + 40)
            fire.kill_the_children()
            fire.wait_for(done + 60)
            fire.crash_the_database()
            fire.wait_for(done + OF_A_ROUND)
            fire.crash_the_broker()
        for one in (nap, batch, second):
            fire.wait_until(lambda one=one: fire.is_done(one), f"{one} is done")
        calls = server.stats.calls
    assert_whole(nap)
    assert states(nap) == {"cancelled": 1}
    for one in (batch, second):
        assert_whole(one)
        assert (one.state, states(one)) == ("done", {"finished": RUNS // 2})
    attempts = RunAttempt.objects.exclude(run__batch=nap)
    assert attempts.filter(ending="finished").count() == RUNS
    lost = attempts.filter(ending="lost")
    assert attempts.count() == RUNS + lost.count()
    # Each kill interrupts what was at work, and nothing that had ended is called again.
    assert lost.count() <= fire.interrupted
    assert RUNS <= calls <= RUNS + lost.count()
    counted = batch.spent_calls + second.spent_calls
    assert calls <= counted <= RUNS + lost.count()
    doubtful = Run.objects.filter(is_billed_twice=True).exclude(batch=nap)
    called = set(lost.filter(calls__gt=0).values_list("run", flat=True))
    assert called >= set(doubtful.values_list("pk", flat=True))
