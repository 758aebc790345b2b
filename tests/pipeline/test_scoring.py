"""Traces are scored, then tasks, then verdicts; whatever changes is scored again."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent, AgentName
from apps.agents.operations import Asked, define_agent, merge_agents
from apps.pipeline.scoring import is_behind, score_project
from apps.scoring.models import (
    AgentTaskScore,
    Conduct,
    StaleTask,
    TaskScore,
    TraceScore,
)
from apps.traces.models import Task, Trace
from apps.traces.trials import join_tasks, place_trace
from apps.verdicts.models import AgentVerdict, ProjectVerdict
from tests.desks import FAIL, PASS, desk_trace
from tests.factories import NOW, upload_traces

pytestmark = pytest.mark.django_db(transaction=True)

NEVER_EMPTY = {
    "name": "knows the number",
    "kind": "regex",
    "pattern": "ending 27",
}


def desk(trial: int, *, route: str = "billing", memory: str = "No notes.", **more):
    return desk_trace(
        ("triage", [("says", {"route": route})]),
        (
            "memory",
            [("calls", ("search_notes", {"topic": "number"}, [])), ("says", memory)],
        ),
        (
            "writer",
            [("calls", ("send_mail", {"to": "A-4471"}, "ok")), ("says", "Done.")],
        ),
        trial=trial,
        **more,
    )


def scored(project) -> None:
    while score_project(project_id=project.pk, clock=lambda: NOW):
        pass
    assert not is_behind(project.pk)


def asked_of(project, name: str, *contracts) -> None:
    agent = Agent.objects.get(project=project, name=name)
    define_agent(agent=agent, asked=Asked(held=contracts), user_id=None, now=NOW)


def colours(project) -> dict[str, str]:
    rows = AgentVerdict.objects.filter(project=project).select_related("agent")
    return {row.agent.name: row.colour for row in rows}


def test_an_upload_is_scored_and_its_agents_are_found(project):
    upload_traces(project, *(desk(trial) for trial in range(1, 6)))
    assert is_behind(project.pk)
    scored(project)
    assert TraceScore.objects.count() == 5
    assert Conduct.objects.count() == 15
    assert set(Agent.objects.values_list("name", flat=True)) == {
        "triage",
        "memory",
        "writer",
    }
    triage = AgentTaskScore.objects.get(agent__name="triage")
    assert (triage.consistency, triage.majority, triage.trials) == ("stable", 5, 5)
    score = TaskScore.objects.get()
    assert (score.trials, score.passed, score.outcome) == (5, 5, "green")
    assert colours(project) == dict.fromkeys(("triage", "memory", "writer"), "unknown")


def test_a_broken_contract_behind_green_outcomes_is_masking(project):
    upload_traces(project, *(desk(trial) for trial in range(1, 6)))
    scored(project)
    asked_of(project, "memory", NEVER_EMPTY)
    scored(project)
    assert colours(project)["memory"] == "red"
    verdict = AgentVerdict.objects.get(agent__name="memory")
    assert (verdict.masked_traces, verdict.green_traces) == (5, 5)
    headline = ProjectVerdict.objects.get().detail["report"]["headline"]
    assert headline == "memory is red in 5 of 5 traces that passed."
    changes = ProjectVerdict.objects.get().changes
    assert [(one["agent"], one["before"], one["after"]) for one in changes] == [
        ("memory", "unknown", "red")
    ]


def test_without_its_contract_the_agent_is_unknown_and_not_green(project):
    upload_traces(project, *(desk(trial) for trial in range(1, 6)))
    scored(project)
    asked_of(project, "memory", NEVER_EMPTY)
    scored(project)
    asked_of(project, "memory")
    scored(project)
    assert colours(project)["memory"] == "unknown"
    assert not Conduct.objects.filter(is_masked=True).exists()


def test_all_contracts_of_an_agent_count(project):
    upload_traces(project, *(desk(trial, memory="It is 27.") for trial in range(1, 6)))
    scored(project)
    good = {"name": "says something", "kind": "regex", "pattern": "27"}
    asked_of(project, "memory", NEVER_EMPTY, good)
    scored(project)
    conduct = Conduct.objects.filter(agent__name="memory").first()
    assert (conduct.held, conduct.broken) == (1, 1)
    assert colours(project)["memory"] == "red"


def test_runs_that_fork_are_unstable(project):
    routes = ("billing", "billing", "refunds", "refunds", "sales")
    upload_traces(
        project, *(desk(trial, route=route) for trial, route in enumerate(routes, 1))
    )
    scored(project)
    triage = AgentTaskScore.objects.get(agent__name="triage")
    assert triage.consistency == "non_deterministic"
    assert triage.is_masked
    assert colours(project)["triage"] == "unstable"
    assert TaskScore.objects.get().fork_count >= 1


def test_moving_a_trace_to_another_task_scores_both(project):
    upload_traces(
        project,
        *(desk(trial) for trial in (1, 2, 3)),
        desk(1, task="ticket 2", outcome=FAIL),
    )
    scored(project)
    place_trace(trace=Trace.objects.get(task__key="ticket 2"), task="ticket 1", trial=4)
    assert is_behind(project.pk)
    scored(project)
    score = TaskScore.objects.get()
    assert (score.trials, score.passed, score.failed, score.outcome) == (
        4,
        3,
        1,
        "mixed",
    )


def test_joined_tasks_are_scored_as_one(project):
    upload_traces(project, desk(1), desk(1, task="ticket 2"))
    scored(project)
    first, second = Task.objects.order_by("key")
    join_tasks(task=second, into=first)
    scored(project)
    assert TaskScore.objects.get().task == first


def test_merged_agents_are_one(project):
    upload_traces(project, desk(1), desk(2))
    scored(project)
    triage, writer = (Agent.objects.get(name=name) for name in ("triage", "writer"))
    merge_agents(agent=triage, into=writer, user_id=None, now=NOW)
    scored(project)
    assert set(colours(project)) == {"memory", "writer"}
    assert Conduct.objects.filter(agent=writer).first().invocations == 2
    assert AgentName.objects.filter(agent=writer).count() == 2


def test_scoring_again_changes_nothing(project):
    upload_traces(project, *(desk(trial) for trial in range(1, 4)))
    scored(project)
    before = list(TaskScore.objects.values()), list(AgentTaskScore.objects.values())
    Trace.objects.update(scored_as="")
    scored(project)
    assert before == (
        list(TaskScore.objects.values()),
        list(AgentTaskScore.objects.values()),
    )
    assert not StaleTask.objects.exists()


def test_traces_of_different_spelling_are_of_one_agent(project):
    upload_traces(
        project,
        desk_trace(("Triage Agent", [("says", {"route": "a"})]), trial=1, outcome=PASS),
        desk_trace(("triage_agent", [("says", {"route": "a"})]), trial=2, outcome=PASS),
    )
    scored(project)
    assert Agent.objects.get().name == "Triage Agent"
    assert AgentTaskScore.objects.get().trials == 2
