"""The benchmark of many replays, with a few: each run is accounted for once."""

from __future__ import annotations

import pytest

from tests.benchmarks import replay_workers


@pytest.mark.slow
def test_runs_over_several_processes_are_each_accounted_for_once(
    transactional_db, broker, start
):
    [heading, line] = replay_workers.report(
        runs=20, processes=(2,), delay=0.01, start=start
    )
    assert heading == "Runs of a model endpoint that takes 10 ms, by workers"
    assert line.startswith("  2 processes: 20 runs in ")
    assert line.endswith(" times; each is accounted for once")
