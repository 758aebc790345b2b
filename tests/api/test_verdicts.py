"""Verdicts, agents, tasks, patterns and conducts through the JSON door."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.accounts.permissions import Scope
from apps.agents.models import Agent
from apps.api import verdict_views
from apps.pipeline.patterns import search_project
from apps.scoring.models import Conduct, TaskScore, TraceScore
from apps.traces.models import Task, Trace
from tests.factories import NOW, decay_trace, make_project, upload_traces
from tests.masked_desks import KNOWS, desk, make_masked_desk
from tests.scored import asked_of, scored

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_masked_desk)


@pytest.fixture
def masked(made, db):
    return Project.objects.get(name="Masked desk")


@pytest.fixture
def owner(made, db):
    return User.objects.get(username="desk1")


@pytest.fixture
def door(client_with, masked):
    return client_with(masked, Scope.READ)


def pk_of(name: str) -> int:
    return Agent.objects.get(name=name).pk


class TestVerdicts:
    """The headline of the project, its outcomes, its gaps."""

    def test_it_leads_with_masking(self, door):
        found = door.get(reverse("api-verdicts")).json()
        assert found["headline"].startswith("memory is red in 5 of 7 traces")
        first = found["maskings"][0]
        assert (first["agent"], first["colour"]) == ("memory", "red")
        assert (first["traces"]["k"], first["traces"]["n"]) == (5, 7)
        assert 0 < first["traces"]["low"] < first["traces"]["high"] < 1
        assert first["reasons"]
        assert found["agents"]["unknown"] == 1
        assert any("writer is unknown" in gap["sentence"] for gap in found["gaps"])

    def test_scores_that_are_behind_are_told(self, door, masked):
        url = reverse("api-verdicts")
        scores = door.get(url).json()["scores"]
        assert (scores["is_behind"], scores["traces_left"]) == (False, 0)
        assert scores["settled_at"] == "2026-03-01T12:00:00Z"
        upload_traces(masked, desk(8), name="late")
        scores = door.get(url).json()["scores"]
        assert (scores["is_behind"], scores["traces_left"]) == (True, 1)

    def test_nothing_scored_is_null_and_never_0(self, client_with, owner):
        empty = make_project(owner=owner, name="Empty")
        found = client_with(empty, Scope.READ).get(reverse("api-verdicts")).json()
        assert (found["headline"], found["outcomes"]) == (None, None)
        assert found["scores"]["settled_at"] is None


class TestAgents:
    """The list of agents and one of them."""

    def test_masked_agents_stand_first_with_their_counts(self, door):
        agents = door.get(reverse("api-agents")).json()["agents"]
        assert agents[0]["agent"] == "memory"
        assert {one["agent"] for one in agents} == set(
            Agent.objects.values_list("name", flat=True)
        )
        contracts = agents[0]["contracts"]
        assert (contracts["k"], contracts["n"], contracts["broken"]) == (4, 9, 5)
        assert agents[0]["masked"]["traces"]["k"] == 5
        assert agents[0]["verdict"] == "red"

    def test_an_agent_without_a_verdict_is_unknown_and_has_no_counts(
        self, door, masked
    ):
        upload_traces(masked, decay_trace(5, 6, name="new"))
        Agent.objects.filter(name="writer").get().agentverdict.delete()
        agents = door.get(reverse("api-agents")).json()["agents"]
        names = [one["agent"] for one in agents]
        # Nobody knows of it, so it stands before those of which all is well.
        assert names.index("writer") < names.index("clerk")
        writer = agents[names.index("writer")]
        assert (writer["agent"], writer["verdict"]) == ("writer", "unknown")
        assert (writer["traces"], writer["contracts"], writer["masked"]) == (
            None,
            None,
            None,
        )

    def test_pages_follow_each_other_and_lose_nobody(self, door, monkeypatch):
        whole = door.get(reverse("api-agents")).json()
        assert whole["next"] is None
        monkeypatch.setattr(verdict_views, "PAGE_SIZE", 2)
        url, seen = reverse("api-agents"), []
        while url:
            page = door.get(url).json()
            assert len(page["agents"]) <= 2
            seen += page["agents"]
            url = page["next"]
        assert seen == whole["agents"]

    def test_one_agent_has_contracts_with_counts_names_tools_and_models(self, door):
        url = reverse("api-agent", args=[pk_of("memory")])
        found = door.get(url).json()
        assert found["url"].endswith(url)
        assert found["names"] == ["memory"]
        assert found["tools"][0]["name"] == "search_notes"
        assert found["models"][0]["name"] == "gpt-4o"
        (contract,) = found["asked"]["contracts"]
        assert contract["contract"]["name"] == "Knows the number"
        assert contract["sentence"].endswith(".")
        assert contract["answers"]["broken"] == 5
        assert contract["answers"]["newest_trace_that_breaks"] in set(
            Trace.objects.values_list("pk", flat=True)
        )
        assert found["agent_decision"]["kind"] == "automatic"
        assert found["agent_decision"]["sentence"].endswith(".")

    def test_counts_of_an_older_version_are_not_told_of_a_new_one(self, door, masked):
        asked_of(masked, "memory", {**KNOWS, "pattern": "ending 28"})
        found = door.get(reverse("api-agent", args=[pk_of("memory")])).json()
        assert found["scores"]["is_behind"] is True
        [contract] = found["asked"]["contracts"]
        assert contract["contract"]["pattern"] == "ending 28"
        assert contract["answers"] is None

    def test_an_agent_of_which_nothing_is_asked_says_null(self, door):
        found = door.get(reverse("api-agent", args=[pk_of("writer")])).json()
        assert (found["asked"], found["verdict"]) == (None, "unknown")


class TestTasks:
    """The list of tasks and one of them, as the command compares them."""

    def test_filters_narrow_the_list(self, door):
        def keys(**fields: str) -> set[str]:
            found = door.get(reverse("api-tasks"), fields).json()["tasks"]
            return {one["key"] for one in found}

        assert keys() == {"ticket 1", "mixed 1", "plan 1", "single 1"}
        assert keys(outcome="mixed") == {"mixed 1"}
        assert keys(stability="stable") == {"ticket 1", "mixed 1"}
        assert keys(stability="drifting") == set()
        assert keys(outcome="passed", masked="yes") == {"ticket 1", "plan 1"}
        assert keys(masked="no") == keys()

    def test_a_task_has_its_outcome_agreement_and_fork(self, door):
        [task] = door.get(reverse("api-tasks"), {"outcome": "mixed"}).json()["tasks"]
        assert (task["outcome"]["k"], task["outcome"]["n"]) == (2, 4)
        assert task["agreement"]["n"] == 4
        assert (task["fork_count"], task["first_fork"]) == (1, 2)
        assert task["decisive"] == TaskScore.objects.get(outcome="mixed").decisive

    def test_one_task_has_trials_agents_and_forks(self, door, monkeypatch):
        task = Task.objects.get(key="mixed 1")
        found = door.get(reverse("api-task", args=[task.pk])).json()
        assert len(found["trials"]) == 4
        [fork] = found["forks"]
        assert sorted((one["passed"], one["known"]) for one in fork["branches"]) == [
            (0, 2),
            (2, 2),
        ]
        decisive = found["decisive"]
        assert (decisive["fork"], decisive["sentence"]) == (1, fork["sentence"])
        (triage,) = [one for one in found["agents"] if one["agent"] == "triage"]
        assert {one["decision"] for one in triage["decisions"]} == {
            "billing",
            "refunds",
        }
        assert triage["verdict"] == "non_deterministic"
        assert found["consistency"]["n"] == 4
        assert found["decisions_left_out"] == 0
        monkeypatch.setattr(verdict_views, "MOST_CONDUCTS", 5)
        cut = door.get(reverse("api-task", args=[task.pk])).json()
        assert cut["decisions_left_out"] == 4 * 3 - 5
        assert sum(len(one["decisions"]) for one in cut["agents"]) == 5

    def test_a_task_that_is_not_scored_yet_has_null_and_not_0(self, door, masked):
        upload_traces(masked, desk(1, task="new ticket"), name="late")
        tasks = door.get(reverse("api-tasks")).json()["tasks"]
        assert tasks[-1]["key"] == "new ticket"
        assert (tasks[-1]["trials"], tasks[-1]["outcome"]) == (None, None)
        one = door.get(reverse("api-task", args=[tasks[-1]["id"]])).json()
        assert one["verdict"] is None

    def test_a_task_of_one_trial_says_why_nothing_forks(self, door):
        task = Task.objects.get(key="single 1")
        found = door.get(reverse("api-task", args=[task.pk])).json()
        assert found["decisive"]["sentence"] == "There is one trial, so nothing forks."


class TestTraces:
    """What each agent did in one trace."""

    def test_each_agent_has_what_it_decided_and_what_contracts_say(self, door):
        score = TraceScore.objects.filter(
            masked__gt=0, trace__task__key="ticket 1"
        ).first()
        url = reverse("api-trace-agents", args=[score.trace_id])
        found = door.get(url).json()
        assert (found["outcome"], found["is_scored"]) == ("green", True)
        memory, triage, _ = found["agents"]
        assert (memory["agent"], memory["verdict"], memory["masked"]) == (
            "memory",
            "red",
            True,
        )
        assert memory["contracts"]["broken"] == 1
        stored = Conduct.objects.get(trace=score.pk, agent__name="memory").judged
        [each] = memory["contracts"]["each"]
        assert each["step"] == stored[0]["step"] + 1
        assert triage["decision"]["decision"] == "billing"
        assert triage["decision"]["step"] == 2

    def test_steps_of_memory_count_from_1(self, door):
        score = TraceScore.objects.filter(outcome="green").first()
        score.recalls = [{"fact": "n", "told_step": 0, "place_steps": [0, 4]}]
        score.save()
        url = reverse("api-trace-agents", args=[score.trace_id])
        [recall] = door.get(url).json()["memory"]
        assert recall == {"fact": "n", "told_step": 1, "place_steps": [1, 5]}

    def test_a_trace_that_is_not_scored_has_no_agents_yet(self, door, masked):
        upload_traces(masked, desk(8), name="late")
        trace = Trace.objects.get(tracescore=None)
        found = door.get(reverse("api-trace-agents", args=[trace.pk])).json()
        assert (found["is_scored"], found["agents"]) == (False, [])
        assert (found["outcome"], found["is_gap"]) == ("unknown", None)


def test_patterns_say_so_where_no_rule_beats_chance(door, masked):
    url = reverse("api-patterns")
    assert door.get(url).json()["patterns"] == []
    search_project(project_id=masked.pk, clock=lambda: NOW)
    patterns = door.get(url).json()["patterns"]
    assert [one["target"] for one in patterns] == ["failing", "signalled", "unstable"]
    assert all("rule" in one["sentence"] for one in patterns)


@pytest.mark.parametrize(
    ("name", "query", "words"),
    [
        ("api-tasks", "outcome=green", "“outcome” is one of: passed, failed"),
        ("api-tasks", "stability=x", "“stability” is one of: "),
        ("api-tasks", "masked=maybe", "“masked” is one of: yes"),
        ("api-tasks", "after=x", "“after” is a whole number."),
        ("api-agents", "after=-1", "“after” is a whole number."),
    ],
)
def test_a_filter_that_is_not_known_is_refused_with_what_is(door, name, query, words):
    answer = door.get(f"{reverse(name)}?{query}")
    assert answer.status_code == 400
    assert words in answer.json()["sentence"]
    assert answer.json()["sentence"].endswith(".")


@pytest.mark.parametrize(
    "value", ["%00", "-1", "0", "²", "٣", "9" * 18, "9" * 19, "9" * 5_000, "1e9", " 1"]
)
def test_any_value_of_a_number_is_answered_in_words(door, value):
    for name in ("api-agents", "api-tasks"):
        answer = door.get(f"{reverse(name)}?after={value}")
        assert answer.status_code in {400, 404}
        assert answer.json()["sentence"].endswith(".")
    for name in ("agents", "tasks"):
        answer = door.get(f"/api/v1/{name}/{value}")
        assert answer.status_code == 404


def test_another_project_finds_nothing_of_this_one(client_with, masked, owner):
    strange = client_with(make_project(owner=owner, name="Other"), Scope.READ)
    task, trace = Task.objects.first(), Trace.objects.first()
    for url in (
        reverse("api-agent", args=[pk_of("memory")]),
        reverse("api-agent-definitions", args=[pk_of("memory")]),
        reverse("api-task", args=[task.pk]),
        reverse("api-trace-agents", args=[trace.pk]),
        f"{reverse('api-agents')}?after={pk_of('memory')}",
        f"{reverse('api-tasks')}?after={task.pk}",
    ):
        answer = strange.get(url)
        assert answer.status_code == 404, url
        assert answer.json()["sentence"].endswith(".")
    for name in ("api-agents", "api-tasks", "api-patterns"):
        lists = [v for v in strange.get(reverse(name)).json().values() if v == []]
        assert lists == [[]]


def test_more_traces_agents_and_tasks_cost_no_more_queries(door, client_with, masked):
    def queries(client, project: Project, name: str) -> int:
        args = {
            "api-agent": [project.agent_set.get(name="memory").pk],
            "api-task": [project.task_set.get(key="mixed 1").pk],
            "api-trace-agents": [
                project.trace_set.filter(task__key="mixed 1").first().pk
            ],
        }.get(name, [])
        with CaptureQueriesContext(connection) as caught:
            assert client.get(reverse(name, args=args)).status_code == 200
        return len(caught)

    twice = make_masked_desk(times=2)
    asked_of(twice, "writer", {"kind": "regex", "pattern": "Done", "name": "Ends"})
    scored(twice)
    other = client_with(twice, Scope.READ)
    for name in ("verdicts", "agents", "agent", "tasks", "task", "trace-agents"):
        before = queries(door, masked, f"api-{name}")
        assert queries(other, twice, f"api-{name}") == before, name
        assert before <= 25
