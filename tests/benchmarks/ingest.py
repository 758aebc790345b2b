"""Upload to visible, beside the floor (parse + COPY alone), in one run.

CPU seconds are those of this process and of its PostgreSQL backend together. The two
are measured in turn (A B A B …); quote the ratio, the absolute figures drift with the
machine. Message passing (one Celery task per upload) is not in it; HTTP form parsing,
hashing, fsync, storage, screening and queueing are.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import django

django.setup()

import msgspec  # noqa: E402 - Django has to be set up first
from django.conf import settings  # noqa: E402
from django.core.files.uploadedfile import SimpleUploadedFile  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import get_runner, setup_test_environment  # noqa: E402
from django.utils import timezone  # noqa: E402

from apps.pipeline.reading import read_upload  # noqa: E402
from apps.traces.models import Upload  # noqa: E402
from tests.benchmarks.corpus import multiplied, results_file  # noqa: E402
from tests.factories import make_project, make_user  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Figure:
    """Seconds of one run."""

    wall: float
    cpu: float
    steps: int


def _backend_cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measured(run: Callable[[], int]) -> Figure:
    """Run once; wall and CPU seconds of this process and the database's backend."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
    cpu, backend, wall = time.process_time(), _backend_cpu(pid), time.perf_counter()
    steps = run()
    return Figure(
        wall=time.perf_counter() - wall,
        cpu=time.process_time() - cpu + _backend_cpu(pid) - backend,
        steps=steps,
    )


def _bodies(trial: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps that a reader finds: every message, and every tool call with its result."""
    results = {m.get("tool_call_id"): m for m in trial["traj"] if m["role"] == "tool"}
    for message in trial["traj"]:
        if message["role"] == "tool":
            continue
        calls = message.get("tool_calls") or []
        yield {key: value for key, value in message.items() if key != "tool_calls"}
        for call in calls:
            yield {**call, "result": results.get(call["id"])}


def floor(content: bytes) -> int:
    """Parse, and COPY one jsonb row per step: nothing else."""
    steps = 0
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE floor (trace int, seq int, body jsonb)")
        with cursor.copy("COPY floor (trace, seq, body) FROM STDIN") as copy:
            for trace, trial in enumerate(msgspec.json.decode(content)):
                for seq, body in enumerate(_bodies(trial)):
                    copy.write_row((trace, seq, msgspec.json.encode(body).decode()))
                    steps += 1
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE floor")
    return steps


class Sender:
    """A signed-in owner of a fresh project; made outside of what is measured."""

    def __init__(self) -> None:
        self.owner = make_user()
        self.project = make_project(owner=self.owner)
        self.client = Client()
        self.client.force_login(self.owner)

    def product(self, content: bytes) -> int:
        """Send the file to the upload page, then read it as a worker does."""
        file = SimpleUploadedFile("results.json", content)
        url = f"/projects/{self.project.slug}/uploads/"
        answer = self.client.post(url, {"file": file})
        assert answer.status_code == 302, answer.content
        upload = Upload.objects.get(project=self.project)
        assert read_upload(upload_id=upload.pk, clock=timezone.now)
        upload.refresh_from_db()
        assert upload.state == "done", upload.failure
        return upload.step_count


def compare(label: str, content: bytes, *, rounds: int) -> None:
    """Measure product and floor in turn and print medians and ratios."""
    assert Sender().product(content) == floor(content)
    senders = [Sender() for _ in range(rounds)]
    pairs = [
        (
            measured(partial(sender.product, content)),
            measured(partial(floor, content)),
        )
        for sender in senders
    ]
    ours = [pair[0] for pair in pairs]
    wall = statistics.median(f.wall for f in ours)
    cpu = statistics.median(f.cpu * 1000 / f.steps for f in ours)
    floor_cpu = statistics.median(b.cpu * 1000 / b.steps for _, b in pairs)
    ratio = statistics.median(a.cpu / b.cpu for a, b in pairs)
    steps = ours[0].steps
    print(
        f"{label:<14} {steps:>8} steps  {steps / wall:>9.0f} steps/s  "
        f"{cpu:.4f} CPU s per 1,000 steps  floor {floor_cpu:.4f}  "
        f"ratio {ratio:.2f} (aim: at most 4)"
    )


def main() -> None:
    """Print both sizes, on a database of their own."""
    setup_test_environment()
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    real = ROOT.parent / "shared/data/tau_bench_results/gpt-4o-airline.json"
    try:
        if real.exists():
            content = real.read_bytes()
            compare("tau-bench x1", content, rounds=7)
            compare("tau-bench x10", multiplied(content, 10), rounds=5)
        else:
            print(
                "The real tau-bench file lies outside of the repository and is absent; made one used."
            )
            compare("made x1", results_file(), rounds=7)
            compare("made x10", results_file(copies=10), rounds=5)
    finally:
        runner.teardown_databases(databases)


if __name__ == "__main__":
    sys.exit(main())
