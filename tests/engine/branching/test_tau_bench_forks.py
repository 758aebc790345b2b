"""The forks of real repeats: 50 tasks of tau-bench airline, 4 trials each."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import pytest

from apps.engine.branching import (
    Branching,
    TrialPath,
    branching_of,
    decisive_chance,
    points_of,
)
from apps.engine.trace import OutcomeKind, StepKind
from tests.formats.index import DATA
from tests.formats.reading import traces_of

FILE = DATA / "tau_bench_results/gpt-4o-airline.json"
MIXED = (
    1, 2, 5, 6, 7, 11, 13, 15, 16, 17, 21, 26, 27, 29, 30, 31, 34, 37, 39, 40, 41, 43,
    44, 45, 46, 47,
)  # fmt: skip

pytestmark = pytest.mark.skipif(
    not FILE.exists(), reason="The shared trace files are absent."
)


@cache
def tasks():
    found = defaultdict(list)
    for trace in traces_of(FILE.read_bytes()):
        found[int(trace.task.removeprefix("task "))].append(trace)
    return found


@cache
def branchings(compare: str) -> dict[int, Branching]:
    return {
        number: branching_of(
            [
                TrialPath(
                    trial_id=f"trial {trace.trial}",
                    points=points_of(trace, compare=compare),
                    passed=trace.outcome.kind is OutcomeKind.PASS,
                )
                for trace in traces
            ]
        )
        for number, traces in tasks().items()
    }


def ways(fork):
    return {branch.trial_ids: branch.label for branch in fork.branches}


def mixed():
    return {
        number: found
        for number, found in branchings("decisions").items()
        if len({lane.passed for lane in found.lanes}) == 2
    }


def test_the_mixed_tasks_are_found_each_with_its_decisive_fork_but_one():
    found = mixed()
    assert tuple(sorted(found)) == MIXED
    without = [number for number, one in found.items() if one.decisive_fork is None]
    assert without == [30]
    codes = {one.code: one for one in found[30].statements}
    assert "3 trials never part, and 2 of 3 passed" in codes["same_decisions"].sentence
    for number in set(MIXED) - {30}:
        fork = found[number].decisive_fork
        assert fork.is_fork
        assert {branch.passed / branch.known for branch in fork.branches} == {0, 1}


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (26, {("trial 0", "trial 2"):
                  "update_reservation_flights(cabin=business, flights=[2024-05-22 HAT268, "
                  "2024-05-22 HAT010], payment_id=credit_card_7334, reservation_id=M20IZO)",
              ("trial 1", "trial 3"):
                  "search_direct_flight(date=2024-05-22, destination=ATL, origin=JFK)"}),
        (31, {("trial 0", "trial 3"): "get_reservation_details(reservation_id=9HBUV8)",
              ("trial 1", "trial 2"): "cancel_reservation(reservation_id=D1EW9B)"}),
        (37, {("trial 1", "trial 2", "trial 3"): "transfer_to_human_agents(summary=…)",
              ("trial 0",): "get_reservation_details(reservation_id=CYPIDV)"}),
        (39, {("trial 1", "trial 2", "trial 3"):
                  "cancel_reservation(reservation_id=H8Q05L)",
              ("trial 0",): "ended here"}),
        (41, {("trial 0", "trial 2"): "cancel_reservation(reservation_id=3RK2T9)",
              ("trial 1", "trial 3"): "transfer_to_human_agents(summary=…)"}),
        (45, {("trial 0", "trial 3"):
                  "send_certificate(amount=50, user_id=noah_muller_9847)",
              ("trial 1",): "ended here",
              ("trial 2",): "transfer_to_human_agents(summary=…)"}),
    ],
)  # fmt: skip
def test_decisive_forks_are_those_that_a_person_finds_by_reading(task, expected):
    assert ways(branchings("decisions")[task].decisive_fork) == expected


def test_the_writing_calls_after_the_fork_are_named():
    fork = branchings("decisions")[31].decisive_fork
    writes = {branch.passed > 0: branch.writes for branch in fork.branches}
    assert writes == {
        True: ("cancel_reservation(reservation_id=9HBUV8)",),
        False: ("cancel_reservation(reservation_id=D1EW9B)",),
    }


def forks_at_start(compare):
    return {
        number
        for number, found in branchings(compare).items()
        if found.first_fork is not None and found.first_fork.after == -1
    }


def test_comparing_text_forks_forty_tasks_at_the_start_and_decisions_seventeen():
    assert len(forks_at_start("text")) == 40
    starts = forks_at_start("decisions")
    assert len(starts) == 17
    found = branchings("decisions")
    # In most of these a trial ended without any decision: a fork, and no triviality.
    empty = {one for one in starts if not all(lane.nodes for lane in found[one].lanes)}
    assert len(empty) == 12
    assert sum(not one.forks for one in found.values()) == 5


def test_the_first_words_of_the_trials_differ_in_all_tasks():
    def first_answer(trace):
        kinds = {step.seq: step.kind for step in trace.steps}
        points = points_of(trace, compare="text")
        return next(p.key for p in points if kinds[p.step] is StepKind.MODEL_CALL)

    answers = [{first_answer(trace) for trace in one} for one in tasks().values()]
    assert sum(len(one) > 1 for one in answers) == 50
    assert sum(len(one) == 4 for one in answers) == 33


def test_more_tasks_have_a_decisive_fork_than_chance_gives():
    """25 of 26, where outcomes dealt at random within tasks give about 15."""
    chances = [decisive_chance(found) for found in mixed().values()]
    expected = sum(one.value for one in chances if one is not None)
    assert expected == pytest.approx(14.8, abs=0.5)
    assert sum(found.decisive_fork is not None for found in mixed().values()) == 25
