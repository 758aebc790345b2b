"""Forks that were planted are found, and noise alone seldom parts trials."""

from __future__ import annotations

from apps.engine.branching import branching_of
from tests.benchmarks.planted_forks import (
    first_difference,
    is_found,
    is_near,
    path_of,
    planted,
)

CASES = 60


def test_planted_forks_are_found_within_one_step_of_every_trial():
    cases = [planted(seed, noise=0.1) for seed in range(CASES)]
    found = [branching_of(case.trials) for case in cases]
    hits = sum(is_found(one, case) for one, case in zip(found, cases, strict=True))
    naive = sum(is_near(first_difference(case), case) for case in cases)
    assert hits >= 0.95 * CASES
    assert naive < 0.2 * CASES


def test_planted_branches_are_told_apart():
    same = 0
    for seed in range(CASES):
        case = planted(seed, noise=0.2)
        fork = branching_of(case.trials).first_fork
        ways = {frozenset(branch.trial_ids) for branch in fork.branches}
        same += ways == case.branches
    assert same >= 0.95 * CASES


def test_without_noise_trials_of_one_plan_never_fork():
    for seed in range(20):
        case = planted(seed, noise=0, has_fork=False)
        assert branching_of(case.trials).forks == ()


def test_noise_alone_parts_trials_only_where_some_go_on_at_the_end():
    parted = 0
    for seed in range(CASES):
        found = branching_of(planted(seed, noise=0.1, has_fork=False).trials)
        parted += any(fork.kind == "parted" for fork in found.forks)
    assert parted <= 0.1 * CASES


def test_the_naive_difference_is_the_first_index_at_which_trials_differ():
    case = planted(1, noise=0)
    assert is_near(first_difference(case), case)
    (trial, *_) = case.trials
    noisy = path_of("noisy", ["extra", *[point.label for point in trial.points]])
    changed = type(case)((*case.trials, noisy), case.truth, case.branches)
    assert first_difference(changed) == 0
