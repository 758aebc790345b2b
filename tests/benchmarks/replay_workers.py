"""How long many runs take over several worker processes, beside bare calls as many at once.

The workers are the product's own, as `run` starts them, on the real database and broker.
The agent is a model endpoint on loopback that takes a while to answer, and each run is
claimed, watched, written down as a trace and accounted for once at the end. Every call
of the floor and of the runs goes to one server in this process.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.test.utils import override_settings

from apps.agents.models import Agent
from apps.pipeline.replays import wake_runs
from apps.replays.models import Batch, ReplayCase, Run, RunAttempt, Target
from apps.replays.planning import MOST_REPEATS
from tests.benchmarks.replay_kinds import bare_call
from tests.factories import make_project
from tests.flows.conftest import Processes, database_url
from tests.flows.warm import Start, anew
from tests.model_server import ModelServer, model_server
from tests.replays.alone import assert_whole, batch_at, states, target_at
from tests.replays.rows import make_agent, make_case

STANDSTILL_SECONDS = 60
OF_THE_FLOOR = 5
"""One bare call is made for so many runs: each takes as long as any other."""


@dataclass(frozen=True)
class Many:
    """Seconds that so many runs and so many bare calls took, `at_once` of them at a time."""

    at_once: int
    runs: int
    seconds: float
    calls: int
    seconds_bare: float

    @property
    def each(self) -> float:
        """Milliseconds for which a run keeps a process."""
        return 1_000 * self.seconds * self.at_once / self.runs

    @property
    def alone(self) -> float:
        """Milliseconds of a bare call among as many others."""
        return 1_000 * self.seconds_bare * self.at_once / self.calls

    def in_words(self) -> str:
        return (
            f"  {self.at_once} processes: {self.runs:,} runs in {self.seconds:.1f} s, "
            f"{self.runs / self.seconds:.1f} a second; a run {self.each:.0f} ms of a "
            f"process, agent alone {self.alone:.0f} ms: {self.each - self.alone:.0f} ms "
            f"more, {self.each / self.alone:.2f} times; each is accounted for once"
        )


def report(
    *, runs: int, processes: Sequence[int], delay: float, start: Start = anew
) -> Iterator[str]:
    """A line for each number of processes; fails where a run is lost or counted twice."""
    yield f"Runs of a model endpoint that takes {1_000 * delay:.0f} ms, by workers"
    with ExitStack() as stack:
        server = stack.enter_context(model_server("deterministic", delay=delay))
        stack.enter_context(override_settings(REPLAY_HOSTS=[server.host]))
        agent = make_agent(make_project(name="Many replays"))
        target = target_at(agent, server, settings, concurrency=max(processes))
        for count in processes:
            calls = max(count, runs // OF_THE_FLOOR)
            seconds_bare = _bare(server, count, calls)
            with _workers(server, count, start):
                made, seconds = _measured(server, target, count, runs)
            yield Many(count, made, seconds, calls, seconds_bare).in_words()


def _measured(
    server: ModelServer, target: Target, count: int, runs: int
) -> tuple[int, float]:
    """How many runs were made on workers that are warm, and their seconds."""
    # The first runs of a process wait for it to start and to load what it needs.
    _run_through(_batch(target, 2 * count), count)
    batch, before = _batch(target, runs), server.stats.calls
    seconds = _run_through(batch, count)
    _check_account(batch, server.stats.calls - before)
    return batch.run_count, seconds


def _bare(server: ModelServer, count: int, calls: int) -> float:
    begun = time.perf_counter()
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda _: bare_call(server), range(calls)))
    return time.perf_counter() - begun


def _batch(target: Target, runs: int) -> Batch:
    """So many runs, rounded down where several cases cannot have as many each."""
    cases = math.ceil(runs / MOST_REPEATS)
    return batch_at(
        target,
        runs=runs // cases,
        cases=[_case(target.agent, number) for number in range(cases)],
    )


def _case(agent: Agent, number: int) -> ReplayCase:
    return make_case(agent, f"Is order {number} open?")


def _run_through(batch: Batch, count: int) -> float:
    """The seconds until the batch has ended; gives up once no run ends any more."""
    begun = seen_at = time.perf_counter()
    ended = 0
    wake_runs(count=count)
    while not Batch.objects.filter(pk=batch.pk, finished_at__isnull=False).exists():
        now_ended = Run.objects.filter(batch=batch, finished_at__isnull=False).count()
        if now_ended > ended:
            ended, seen_at = now_ended, time.perf_counter()
        if time.perf_counter() - seen_at > STANDSTILL_SECONDS:
            raise SystemExit(f"Only {ended} of {batch.run_count} runs have ended.")
        time.sleep(0.1)
    return time.perf_counter() - begun


def _check_account(batch: Batch, calls: int) -> None:
    """Every run finished once, with one attempt, one call and one trace."""
    assert_whole(batch)
    assert states(batch) == {"finished": batch.run_count}, states(batch)
    attempts = RunAttempt.objects.filter(run__batch=batch)
    assert attempts.count() == batch.spent_calls == calls == batch.run_count


@contextmanager
def _workers(server: ModelServer, count: int, start: Start) -> Iterator[None]:
    """The workers of `run`, of which one has `count` processes for replays alone."""
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "EVALSITE_DEBUG": "0",
        "EVALSITE_REPLAY_HOSTS": server.host,
    }
    with tempfile.TemporaryDirectory(prefix="evalsite-bench-") as folder:
        log = Path(folder, "workers.log")
        with log.open("wb") as stream:
            started = Processes(environment, stream, start=start)
            try:
                started.worker(queues="celery,short")
                started.worker(queues="short", processes=1)
                started.worker(queues="replays", processes=count)
                started.beat(folder)
                yield
            except SystemExit:
                print(log.read_text(errors="replace")[-4_000:])
                raise
            finally:
                started.end()
