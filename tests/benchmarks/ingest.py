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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import django

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
    from django.db import connection  # noqa: PLC0415

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


def floor(content: bytes) -> int:
    """Parse, and COPY one jsonb row per message and tool call: nothing else."""
    import msgspec  # noqa: PLC0415
    from django.db import connection, transaction  # noqa: PLC0415

    steps = 0
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE floor (trace int, seq int, body jsonb)")
        with cursor.copy("COPY floor (trace, seq, body) FROM STDIN") as copy:
            for trace, trial in enumerate(msgspec.json.decode(content)):
                seq = 0
                for message in trial["traj"]:
                    for part in [message, *(message.get("tool_calls") or [])]:
                        if message["role"] == "tool":
                            continue
                        copy.write_row((trace, seq, msgspec.json.encode(part).decode()))
                        seq += 1
                steps += seq
        cursor.execute("DROP TABLE floor")
    return steps


def product(content: bytes) -> int:
    """Send the file to the upload page, then read it as a worker does."""
    from django.test import Client  # noqa: PLC0415
    from django.utils import timezone  # noqa: PLC0415

    from apps.pipeline.reading import read_upload  # noqa: PLC0415
    from apps.traces.models import Upload  # noqa: PLC0415
    from tests.factories import make_project, make_user  # noqa: PLC0415

    owner = make_user()
    project = make_project(owner=owner)
    client = Client()
    client.force_login(owner)
    from django.core.files.uploadedfile import SimpleUploadedFile  # noqa: PLC0415

    file = SimpleUploadedFile("results.json", content)
    answer = client.post(f"/projects/{project.slug}/uploads/", {"file": file})
    assert answer.status_code == 302, answer.content
    upload = Upload.objects.get(project=project)
    assert read_upload(upload_id=upload.pk, clock=timezone.now)
    upload.refresh_from_db()
    assert upload.state == "done", upload.failure
    return upload.step_count


def compare(label: str, content: bytes, *, rounds: int) -> None:
    """Measure product and floor in turn and print medians and ratios."""
    product(content)
    floor(content)
    pairs = [
        (measured(lambda: product(content)), measured(lambda: floor(content)))
        for _ in range(rounds)
    ]
    ours = [pair[0] for pair in pairs]
    theirs = [pair[1] for pair in pairs]
    steps = ours[0].steps
    wall = statistics.median(f.wall for f in ours)
    cpu = statistics.median(f.cpu * 1000 / f.steps for f in ours)
    floor_cpu = statistics.median(f.cpu * 1000 / f.steps for f in theirs)
    ratio = statistics.median((a.cpu / a.steps) / (b.cpu / b.steps) for a, b in pairs)
    print(
        f"{label:<14} {steps:>8} steps  {steps / wall:>9.0f} steps/s  "
        f"{cpu:.4f} CPU s per 1,000 steps  floor {floor_cpu:.4f}  "
        f"ratio {ratio:.2f} (aim: at most 4)"
    )


def main() -> None:
    """Print both sizes."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    django.setup()
    from django.conf import settings  # noqa: PLC0415
    from django.test.utils import get_runner, setup_test_environment  # noqa: PLC0415

    from tests.benchmarks.corpus import multiplied, results_file  # noqa: PLC0415

    setup_test_environment()
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    real = (
        Path(__file__).resolve().parents[3]
        / "shared/data/tau_bench_results/gpt-4o-airline.json"
    )
    try:
        if real.exists():
            content = real.read_bytes()
            compare("tau-bench x1", content, rounds=5)
            compare("tau-bench x10", multiplied(content, 10), rounds=5)
        else:
            print("The real tau-bench file is not beside this checkout; made one used.")
            compare("made x1", results_file(), rounds=5)
            compare("made x10", results_file(copies=10), rounds=5)
    finally:
        runner.teardown_databases(databases)


if __name__ == "__main__":
    sys.exit(main())
