"""Replays in the verdicts of a project: the newest of each case, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from apps.agents.operations import merge_agents
from apps.engine.replay.run import ErrorKind, RunError
from apps.replays.cases import retire_case
from apps.replays.models import Group
from apps.replays.results import recall_of
from apps.scoring.models import TaskScore, TraceScore
from apps.traces.models import Task, Trace, Upload
from apps.verdicts.alone import counted_alone
from apps.verdicts.models import AgentVerdict, ProjectVerdict
from tests.factories import NOW
from tests.replays.ended import decided, failed
from tests.replays.making import (
    make_alone,
    make_frozen_case,
    make_memory_batch,
    make_unanswered_batch,
    new_batch,
    run_out,
)
from tests.replays.rows import make_agent
from tests.scored import asked_of, scored

pytestmark = pytest.mark.django_db
TO_BILLING = {"name": "to billing", "kind": "regex", "pattern": "billing"}


@pytest.fixture
def agent(project):
    return make_agent(project, "router")


def verdict_of(agent) -> AgentVerdict:
    return AgentVerdict.objects.get(agent=agent)


def test_runs_are_counted_with_those_that_failed_and_never_among_traces(project, agent):
    asked_of(project, "router", TO_BILLING)
    make_alone(project, agent)
    alone = counted_alone(project.pk)[agent.pk]
    assert (alone.runs, alone.cases, alone.failed, alone.breaches) == (5, 1, 1, 1)
    assert (alone.broken, alone.held) == (5, 0)
    found = verdict_of(agent)
    assert (found.colour, found.traces, found.tasks) == ("red", 0, 0)
    assert ProjectVerdict.objects.get().detail["traces"]["n"] == 0
    for rows in (Trace, Task, Upload):
        assert not rows.objects.exists()
        assert rows.everything.exists()
    for scores in (TraceScore, TaskScore):
        assert set(scores.objects.values_list("project", flat=True)) == {None}


def test_the_newest_batch_of_a_case_takes_the_place_of_the_older(project, agent):
    asked_of(project, "router", TO_BILLING)
    make_alone(project, agent)
    case = Group.objects.get().case
    run_out(
        new_batch(agent, case, name="Repaired"),
        lambda _: decided({"route": "billing"}),
    )
    scored(project)
    alone = counted_alone(project.pk)[agent.pk]
    assert (alone.runs, alone.held, alone.broken, alone.stable) == (5, 5, 0, 1)
    # What holds alone is not exercised in the pipeline.
    assert verdict_of(agent).colour == "unknown"


def test_a_batch_that_failed_for_what_lies_around_hides_no_breach(project, agent):
    make_alone(project, agent)
    case = Group.objects.get().case
    away = RunError(kind=ErrorKind.CONNECTION, sentence="Nobody answered.")
    run_out(
        new_batch(agent, case, name="Away"),
        lambda _: msgspec.structs.replace(failed(), error=away),
    )
    scored(project)
    assert counted_alone(project.pk)[agent.pk].breaches == 1


def test_another_case_stands_beside_the_first(project, agent):
    make_alone(project, agent)
    run_out(
        new_batch(agent, make_frozen_case(agent, input="Another?"), name="More"),
        lambda _: decided({"route": "billing"}),
    )
    scored(project)
    alone = counted_alone(project.pk)[agent.pk]
    assert (alone.runs, alone.cases, alone.groups) == (10, 2, 2)


def test_a_memory_test_counts_its_facts_and_nothing_else(project, agent):
    make_memory_batch(project, agent)
    alone = counted_alone(project.pk)[agent.pk]
    assert (alone.recalled, alone.lost, alone.groups, alone.applied) == (8, 7, 0, 0)
    assert verdict_of(agent).colour == "red"


def test_a_memory_test_without_an_answer_is_neither_red_nor_green(project, agent):
    batch = make_unanswered_batch(project, agent)
    alone = counted_alone(project.pk)[agent.pk]
    assert (alone.recalled, alone.lost, alone.contradicted) == (0, 0, 0)
    assert (alone.unclear, alone.failed) == (15, 15)
    assert verdict_of(agent).colour == "unknown"
    said = recall_of(batch)
    assert said.startswith("No trial came to an answer: all 15 questions have none")
    assert "no longer certain" not in said


def test_the_newest_memory_test_takes_the_place_of_every_older_one(project, agent):
    for _ in range(2):
        make_memory_batch(project, agent)
    alone = counted_alone(project.pk)[agent.pk]
    assert (alone.recalled, alone.lost, alone.runs) == (8, 7, 15)


def test_a_case_that_was_put_away_counts_no_more(project, agent):
    make_alone(project, agent)
    retire_case(case=Group.objects.get().case, is_retired=True)
    assert agent.pk not in counted_alone(project.pk)


def test_replays_go_with_an_agent_that_is_merged_into_another(project, agent):
    make_alone(project, agent)
    into = make_agent(project, "dispatcher")
    merge_agents(agent=agent, into=into, user_id=None, now=NOW)
    scored(project)
    assert counted_alone(project.pk)[into.pk].runs == 5
    assert agent.pk not in counted_alone(project.pk)
