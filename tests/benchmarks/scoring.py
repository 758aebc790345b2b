"""What scoring costs, and what pages over many scores cost beside pages over few.

CPU seconds are those of this process and of its PostgreSQL backend together, so other
work on the machine does not count. A page over 200 traces and the same page over many
are asked for in turn; where the number of statements differs, that is said.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import django

django.setup()

from django.conf import settings  # noqa: E402 - Django has to be set up first
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import (  # noqa: E402
    CaptureQueriesContext,
    get_runner,
    setup_test_environment,
)
from django.urls import get_resolver  # noqa: E402
from django.utils import timezone  # noqa: E402

from apps.accounts.models import Project  # noqa: E402
from apps.agents.models import Agent  # noqa: E402
from apps.agents.operations import Asked, define_agent  # noqa: E402
from apps.pipeline import scoring  # noqa: E402
from apps.scoring.models import Conduct, TaskScore, TraceScore  # noqa: E402
from apps.scoring.operations import take_stale_traces  # noqa: E402
from apps.traces.behind import behind  # noqa: E402
from apps.traces.models import Task, Trace  # noqa: E402
from apps.verdicts.operations import settle_verdicts  # noqa: E402
from apps.verdicts.patterns import search_patterns  # noqa: E402
from apps.verdicts.progress import asked_at_present  # noqa: E402
from tests.benchmarks.desk_runs import TRIALS, desk_runs  # noqa: E402
from tests.benchmarks.ingest import measured  # noqa: E402
from tests.factories import make_project, make_user, upload_traces  # noqa: E402

FEW = 200
MANY = 20_000
IN_A_FILE = 1_000
ROUNDS = 20
AIM_MS = 150
AIM_OF_TRACE_MS = 5
CONTRACT = {"name": "knows the card", "kind": "regex", "pattern": "ends in 27"}
TABLES = (
    "scoring_tracescore",
    "scoring_conduct",
    "scoring_taskscore",
    "scoring_agenttaskscore",
)


def build(project: Project, traces: int) -> float:
    """Upload so many traces as ordinary files; the CPU seconds of it."""
    runs = desk_runs(tasks=traces // TRIALS)
    total = 0.0
    while some := list(islice(runs, IN_A_FILE)):
        total += _cpu(partial(upload_traces, project, *some))
    return total


def _cpu(work: Callable[[], object]) -> float:
    def once() -> int:
        work()
        return 0

    return measured(once).cpu


def score(project: Project) -> dict[str, float]:
    """Score all of a project, part by part; the CPU seconds of each part."""
    spent = {"traces": _cpu(lambda: _score_traces(project))}
    _ask(project)
    spent["traces with a contract"] = _cpu(lambda: _score_traces(project))
    spent["tasks"] = _cpu(lambda: _score_tasks(project))
    name = asked_at_present(project.pk).name
    now = timezone.now()
    spent["settling"] = _cpu(
        lambda: settle_verdicts(project_id=project.pk, name=name, now=now)
    )
    spent["patterns"] = _cpu(lambda: search_patterns(project_id=project.pk, now=now))
    assert not scoring.is_behind(project.pk)
    return spent


def _ask(project: Project) -> None:
    agent = Agent.objects.get(project=project, name="memory")
    asked = Asked(held=(CONTRACT,))
    define_agent(agent=agent, asked=asked, user_id=None, now=timezone.now())


def _score_traces(project: Project) -> None:
    take_stale_traces(project_id=project.pk)
    name = asked_at_present(project.pk).name
    while waiting := behind(
        project.pk, name, most=scoring.MOST_TRACES, work="scored_as"
    ):
        scoring.score_batch(waiting, project_id=project.pk, now=timezone.now())


def _score_tasks(project: Project) -> None:
    while scoring.score_tasks(project_id=project.pk):
        pass


def pages_of(project: Project) -> dict[str, str]:
    """The addresses of the pages that show scores, by what they are called here."""
    root = f"/projects/{project.slug}"
    task = TaskScore.objects.filter(project=project).order_by("-rank", "pk").first()
    agent = Agent.objects.get(project=project, name="memory")
    trace = Trace.objects.filter(project=project).order_by("pk").first()
    assert task is not None
    assert trace is not None
    return {
        "overview": f"{root}/",
        "tasks": f"{root}/tasks/",
        "tasks, mixed": f"{root}/tasks/?outcome=mixed",
        "tasks, unstable agent": f"{root}/tasks/?stability=drifting&agent={agent.pk}",
        "tasks, by trials": f"{root}/tasks/?sort=trials",
        "tasks, last page": f"{root}/tasks/?from={_last(project)}",
        "task": f"{root}/tasks/{task.pk}/",
        "task, forks": f"{root}/tasks/{task.pk}/forks/",
        "agents": f"{root}/agents/",
        "agent": f"{root}/agents/{agent.pk}/",
        "queue": f"{root}/queue/",
        "queue, masked": f"{root}/queue/?masked=1",
        "traces, masked": f"{root}/traces/?verdict=masked",
        "traces, red agent": f"{root}/traces/?verdict=red&by={agent.pk}",
        "trace": f"{root}/traces/{trace.pk}/",
        "patterns": f"{root}/patterns/",
    }


def _last(project: Project) -> int:
    count = Task.objects.filter(project=project).count()
    return min(1_000, max(0, count - 50))


class Clock:
    """CPU milliseconds of this process and of its PostgreSQL backend together."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            self._of_backend = Path(f"/proc/{cursor.fetchone()[0]}/schedstat")

    def read(self) -> float:
        """Milliseconds since some moment."""
        nanoseconds = int(self._of_backend.read_text().split()[0])
        return time.process_time() * 1000 + nanoseconds / 1e6


def times(client: Client, clock: Clock, url: str) -> list[float]:
    """CPU milliseconds of asking for a page some times, sorted."""
    found = []
    for _ in range(ROUNDS + 1):
        begun = clock.read()
        answer = client.get(url)
        found.append(clock.read() - begun)
        assert answer.status_code == 200, (url, answer.status_code)
    # The first one fills caches that every worker has filled.
    return sorted(found[1:])


def percentile(values: list[float], share: float) -> float:
    """The least value that at least this share of the sorted `values` does not exceed."""
    return values[max(0, math.ceil(share * len(values)) - 1)]


def statements(client: Client, url: str) -> int:
    """How many statements a page needs."""
    with CaptureQueriesContext(connection) as captured:
        client.get(url)
    return len(captured)


def compare_pages(client: Client, few: Project, many: Project) -> None:
    """Print every page over few and over many traces, and their ratio."""
    print("CPU ms of a page, with its statements in PostgreSQL, and over 200 traces:")
    print(f"  {'page':<24}{'p50':>6}{'p95':>6}{'few':>6}{'ratio':>7}{'statements':>12}")
    clock = Clock()
    small = pages_of(few)
    for name, url in pages_of(many).items():
        found, of_few = times(client, clock, url), times(client, clock, small[name])
        counts = statements(client, url), statements(client, small[name])
        median, p95 = statistics.median(found), percentile(found, 0.95)
        ratio = median / statistics.median(of_few)
        said = (
            f"{counts[0]}" if counts[0] == counts[1] else f"{counts[0]} ({counts[1]})"
        )
        late = "" if p95 <= AIM_MS else f"  over the aim of {AIM_MS} ms"
        print(
            f"  {name:<24}{median:>6.0f}{p95:>6.0f}{statistics.median(of_few):>6.0f}"
            f"{ratio:>7.2f}{said:>12}{late}"
        )


def print_scoring(project: Project, spent: dict[str, float]) -> None:
    """Print what scoring cost per trace and task, and the bytes of its tables."""
    traces = TraceScore.objects.filter(project=project).count()
    tasks = TaskScore.objects.filter(project=project).count()
    conducts = Conduct.objects.filter(agent__project=project).count()
    print(f"{traces:,} traces, {tasks:,} tasks, {conducts:,} conducts")
    for part in ("traces", "traces with a contract"):
        each = spent[part] * 1000 / traces
        print(
            f"  scoring {part:<24}{each:>8.2f} CPU ms each (aim: under {AIM_OF_TRACE_MS})"
        )
    print(f"  scoring tasks{'':<19}{spent['tasks'] * 1000 / tasks:>8.2f} CPU ms each")
    print(f"  settling verdicts{'':<15}{spent['settling']:>8.2f} CPU s")
    print(f"  searching for patterns{'':<10}{spent['patterns']:>8.2f} CPU s")


def print_sizes(traces: int) -> None:
    """Print the bytes of the tables of scores per trace, with their indexes."""
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute("SELECT pg_total_relation_size(%s)", [table])
            size = cursor.fetchone()[0]
            print(f"  {table:<32}{size / traces:>8.0f} bytes per trace")


@contextmanager
def database_of_its_own() -> Iterator[None]:
    """A database that goes away at the end."""
    setup_test_environment()
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        yield
    finally:
        runner.teardown_databases(databases)


def vacuum() -> None:
    """What autovacuum does within minutes: statistics, and the rows that are gone."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")


def run(traces: int) -> None:
    """Build both projects, score them and print everything."""
    owner = make_user()
    few, many = make_project(owner=owner), make_project(owner=owner)
    build(few, FEW)
    score(few)
    seconds = build(many, traces)
    print(f"upload of {traces:,} traces: {seconds * 1000 / traces:.2f} CPU ms each")
    vacuum()
    spent = score(many)
    print_scoring(many, spent)
    vacuum()
    print_sizes(traces + FEW)
    client = Client()
    client.force_login(owner)
    compare_pages(client, few, many)


def main() -> None:
    """Print everything, on a database of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=MANY)
    asked = parser.parse_args()
    # Whatever is wrong with a page shall show before the minutes of building.
    get_resolver().url_patterns  # noqa: B018
    with database_of_its_own():
        run(asked.traces)


if __name__ == "__main__":
    main()
