"""The arithmetic of the benchmarks, on numbers that can be counted by hand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import combinations

import pytest

from apps.engine.check import Level
from apps.engine.checks import CHECKS, by_slug
from apps.isolation.sandbox import Level as IsolationLevel
from tests.benchmarks import branching, labels, replay_kinds
from tests.benchmarks.checks import growth, measured, seconds
from tests.benchmarks.pointing import (
    Case,
    Pointed,
    by_signals,
    chance_of_hit,
    first_step,
    last_step,
    longest_output,
    most_active_agent,
    near,
    rows,
)
from tests.benchmarks.trace_shapes import SHAPES, serial
from tests.conftest import ROOT
from tests.factories import decay_trace

OWNERS = {1: "a", 2: "b", 3: "b", 4: "c", 5: "a", 6: "b"}
CASE = Case(
    steps=tuple(OWNERS),
    wrong=frozenset({4}),
    owners=OWNERS,
    agent="c",
    lengths={2: 9},
)


@pytest.mark.parametrize("total", [1, 2, 5, 7])
def test_the_chance_of_a_random_hit_is_that_of_all_draws_counted(total):
    for wanted in range(total + 1):
        for picks in range(total + 1):
            draws = list(combinations(range(total), picks))
            hit = sum(any(one < wanted for one in draw) for draw in draws)
            assert chance_of_hit(total, wanted, picks) == pytest.approx(
                hit / len(draws)
            )
    assert chance_of_hit(0, 0, 3) == 0


def test_near_counts_steps_on_both_sides_and_only_those_that_exist():
    assert near(CASE, 0) == {4}
    assert near(CASE, 1) == {3, 4, 5}
    assert near(CASE, 5) == set(OWNERS)


def test_the_constant_rules_point_where_they_say():
    assert first_step(CASE) == Pointed(frozenset({1}), frozenset({"a"}))
    assert last_step(CASE) == Pointed(frozenset({6}), frozenset({"b"}))
    assert longest_output(CASE).steps == {2}
    assert most_active_agent(CASE) == Pointed(None, frozenset({"b"}))


def test_a_row_counts_hits_beside_as_many_picks_at_random():
    silent = Pointed(frozenset(), frozenset())
    told = {id(CASE): Pointed(frozenset({3, 5}), frozenset({"a", "c"}))}
    other = Case(steps=(1, 2), wrong=frozenset({1}), owners={1: "a", 2: "b"}, agent="a")
    found = {
        row.target: row
        for row in rows([CASE, other], "x", lambda case: told.get(id(case), silent))
    }
    agent, exact, within = (
        found[name] for name in ("agent", "exact step", "step within 1")
    )
    assert (agent.traces, agent.pointing, agent.hits) == (2, 1, 1)
    assert agent.by_chance == pytest.approx(2 / 3)
    assert (exact.hits, within.hits) == (0, 1)
    assert exact.by_chance == pytest.approx(1 / 3)
    assert within.by_chance == pytest.approx(1 - 3 / 15)
    assert exact.p == pytest.approx(1)
    assert within.p == pytest.approx(0.8)
    assert "1 of 2" in exact.in_words()


def test_signals_point_at_the_steps_and_agents_that_they_rest_on():
    trace = decay_trace(100, 90, 80, 70, 60)
    owners = {step.seq: "planner" for step in trace.steps}
    case = Case(tuple(owners), frozenset({2}), owners, "planner", trace=trace)
    check = by_slug("output-decay")
    pointed = by_signals([check], levels=frozenset({Level.REVIEW_SIGNAL}))(case)
    assert pointed == Pointed(frozenset(owners), frozenset({"planner"}))
    none = by_signals([check], levels=frozenset({Level.TELEMETRY}))(case)
    assert none == Pointed(frozenset(), frozenset())


def transcript(speakers: str, *, agent: str, step: int) -> dict:
    return {
        "question": "Where is it?",
        "question_ID": f"q{step}",
        "history": [
            {"role": "human", "content": "Where is it?"},
            *[
                {"role": f"Agent{one}", "content": f"look {place} " * (place + 1)}
                for place, one in enumerate(speakers)
            ],
        ],
        "mistake_agent": agent,
        "mistake_step": str(step),
    }


def test_the_labelled_bench_runs_over_a_small_sample(tmp_path):
    for place, speakers in enumerate(("ABAB", "ABCABC")):
        made = transcript(speakers, agent="AgentB", step=2 + place)
        (tmp_path / f"{place}.json").write_text(json.dumps(made))
    cases = labels.labelled(labels.traces_in(tmp_path))
    assert [case.steps for case in cases] == [(1, 2, 3, 4), (1, 2, 3, 4, 5, 6)]
    assert [case.owners[2] for case in cases] == ["AgentB", "AgentB"]
    lines = list(labels.report("made", cases))
    assert lines[0] == "made: 2 labelled traces"
    assert any(line.startswith("  signals for review") for line in lines)
    [nowhere] = [line for line in lines if line.startswith("  Applicable nowhere: ")]
    assert "tool-drift" in nowhere
    [last] = [line for line in lines if "last step" in line and "agent  " in line]
    assert "2 of 2" in last
    same = labels.same_runs(cases, labels.traces_in(tmp_path))
    assert [case.wrong for case in same] == [{2}, {3}]
    assert labels.same_runs(cases, [decay_trace(1)]) == []


def test_labels_without_traces_ask_no_check():
    stage = {"incorrect_step_ids": [9, 10]}
    content = json.dumps(
        [
            {"step_count": 10, "incorrect_stages": [stage]},
            {"step_count": 4, "incorrect_stages": []},
        ]
    )
    [case] = labels.label_only(content.encode())
    assert (len(case.steps), case.wrong) == (10, {9, 10})
    lines = list(labels.report("codes", [case]))
    assert "no check could be asked" in lines[1]
    [exact] = [line for line in lines if "always the last" in line and "exact" in line]
    assert "100%" in exact
    assert list(labels.report("none", [])) == ["none: 0 labelled traces"]


def test_growth_is_the_time_of_a_step_over_that_at_a_thousand():
    assert growth({100: 9.0, 1_000: 1.0, 25_000: 50.0}) == pytest.approx(2)
    assert growth({100: 1.0, 200: 2.0}) == pytest.approx(1)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.__name__)
def test_every_shape_has_as_many_steps_as_asked_and_can_be_screened(shape):
    for count in (1, 2, 40):
        trace = shape(count)
        assert [step.seq for step in trace.steps] == list(range(count))
        assert all(list(check.run(trace)) for check in CHECKS)


def test_measuring_answers_for_each_size_and_takes_some_time():
    assert set(measured(CHECKS, serial, (10, 20))) == {10, 20}
    assert seconds(CHECKS, [serial(50)]) > 0


def test_the_command_names_its_parts_when_called_wrongly():
    done = subprocess.run(
        [sys.executable, "manage.py", "bench", "luck"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "There is no part “luck”. There are: ingest, formats" in done.stderr


def test_a_rate_is_printed_with_its_interval():
    assert branching.rate(0, 0) == "0 of 0"
    assert branching.rate(197, 200) == (
        "197 of 200 (98.5 %, 95 % interval 95.7 % to 99.5 %)"
    )


def test_the_benchmark_of_forks_counts_what_it_planted():
    lines = [*branching.with_fork(0.1, 5), *branching.without_fork(0.0, 5)]
    assert [" of 5 " in line for line in lines] == [True] * 5
    assert "5 of 5" in lines[1]
    assert all("0 of 5" in line for line in lines[3:])
    assert len(list(branching.timed(((3, 20),)))) == 2


def test_the_benchmark_of_replays_sets_each_kind_beside_its_agent_alone():
    lines = list(replay_kinds.report(calls=2, starts=1))
    kinds = [line for line in lines if not line.startswith("  ")]
    assert [line.split()[4] for line in kinds] == [
        "model",
        "HTTP",
        "Python",
        "command,",
    ]
    figures = [line for line in lines if line.startswith("  ")]
    assert len(figures) == 2 + 2 * len(IsolationLevel)
    for line in figures:
        assert "not reached" in line or re.search(r" ms more, \d+\.\d times$", line)


def test_what_a_run_takes_more_is_the_middle_of_its_pairs():
    times = iter([0.0, 0.0, 0.030, 0.010, 0.090, 0.010, 0.040, 0.020])
    clock = [0.0]

    def act() -> None:
        clock[0] += next(times)

    found = replay_kinds.beside(act, act, 3, now=lambda: clock[0])
    assert [round(one) for one in (found.run, found.alone, found.more)] == [40, 10, 20]
    assert found.times == pytest.approx(3)
