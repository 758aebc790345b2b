"""What replays cost beside their agents alone: one run of each kind, and many at once."""

from __future__ import annotations

import argparse

import django

django.setup()

from tests.benchmarks import replay_kinds, replay_workers  # noqa: E402
from tests.benchmarks.scoring import database_of_its_own  # noqa: E402

RUNS, DELAY = 1_000, 0.1
PROCESSES = (2, 4)


def main(words: list[str] | None = None) -> None:
    """Print both parts; the second on a database of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=replay_kinds.CALLS)
    parser.add_argument("--starts", type=int, default=replay_kinds.STARTS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--processes", type=int, nargs="+", default=PROCESSES)
    parser.add_argument("--delay", type=float, default=DELAY)
    asked = parser.parse_args(words)
    for line in replay_kinds.report(calls=asked.calls, starts=asked.starts):
        print(line, flush=True)
    with database_of_its_own():
        for line in replay_workers.report(
            runs=asked.runs, processes=asked.processes, delay=asked.delay
        ):
            print(line, flush=True)


if __name__ == "__main__":
    main()
