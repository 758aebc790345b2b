"""The runs that the bench of scoring is made from are the same every time, and mixed."""

from __future__ import annotations

from collections import Counter

from apps.engine.trace import OutcomeKind
from apps.engine.trials import Trial, score_task, score_trace
from tests.benchmarks.desk_runs import TRIALS, desk_runs
from tests.benchmarks.scoring import percentile


def test_the_same_seed_gives_the_same_runs_of_ten_trials_a_task():
    runs = list(desk_runs(tasks=40))
    assert runs == list(desk_runs(tasks=40))
    assert runs != list(desk_runs(tasks=40, seed=1))
    assert set(Counter(run.task for run in runs).values()) == {TRIALS}
    assert {len(run.steps) for run in runs} == {10, 11}
    assert {run.outcome.kind for run in runs} == {OutcomeKind.PASS, OutcomeKind.FAIL}


def test_its_tasks_end_green_red_and_mixed_and_some_of_them_fork():
    groups: dict[str, list[Trial]] = {}
    for number, run in enumerate(desk_runs(tasks=40)):
        trial = Trial(id=str(number), label=run.name, score=score_trace(run))
        groups.setdefault(run.task, []).append(trial)
    scores = [score_task(group) for group in groups.values()]
    assert {score.outcome for score in scores} == {"green", "red", "mixed"}
    assert sum(score.fork_count > 0 for score in scores) > 0
    assert {len(score.agents) for score in scores} == {3}


def test_a_percentile_is_a_value_that_was_measured():
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert percentile([float(n) for n in range(1, 21)], 0.95) == 19.0
    assert percentile([7.0], 0.95) == 7.0
