"""What is sent twice, from two tabs or too late; and acts whose inverse restores all."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.agents.models import Agent, AgentDefinition, OutcomeDefinition
from apps.engine.formats.evalsite_writer import dump
from apps.scoring.models import AgentTaskScore, Conduct, TaskScore, TraceScore
from apps.traces.models import Task, Trace
from apps.verdicts.models import AgentVerdict, ProjectVerdict, TrialNote
from tests.desks import PASS, desk_trace
from tests.masked_desks import make_masked_desk, scored
from tests.web.visiting import send, text, url

NEVER = {"expect": "label", "labels": "never recorded"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk(client):
    project = make_masked_desk()
    client.force_login(project.members.get())
    return project


@pytest.fixture
def post(client, desk):
    """Send a form of the project; returns the status."""

    def sent(where: str, *args: object, **fields: object) -> int:
        return client.post(url(desk, where, *args), fields).status_code

    return sent


def agent_of(project, name: str) -> Agent:
    return Agent.objects.get(project=project, key=name)


def task_of(project, key: str) -> Task:
    return Task.objects.get(project=project, key=key)


def places(project) -> list[tuple[Any, ...]]:
    rows = Trace.objects.filter(project=project).order_by("pk")
    return list(rows.values_list("pk", "task__key", "trial", "is_task_set"))


def standing(project) -> dict[str, Any]:
    """Everything that is scored and settled, without what only counts versions."""

    def rows(model, key: str, *fields: str, **where: Any) -> dict[Any, Any]:
        found = model.objects.filter(**where).values(key, *fields)
        return {str(row.pop(key)): row for row in found}

    of = {"project": project}
    conducts = Conduct.objects.filter(trace__project=project)
    scores = AgentTaskScore.objects.filter(task__project=project, trials__gt=0)
    return {
        "agents": rows(
            AgentVerdict, "agent", "colour", "evidence", "detail", traces__gt=0, **of
        ),
        "project": ProjectVerdict.objects.get(**of).detail,
        "tasks": rows(
            TaskScore, "task", "outcome", "detail", "masked", trials__gt=0, **of
        ),
        "traces": rows(TraceScore, "trace", "outcome", "masked", "is_gap", **of),
        "conducts": sorted(conducts.values_list("trace", "agent", "colour", "held")),
        "of tasks": sorted(scores.values_list("task", "agent", "colour", "is_masked")),
    }


def test_each_act_has_an_inverse_that_brings_the_same_verdicts_back(desk, post):
    before = standing(desk)
    memory, writer, triage = (
        agent_of(desk, name) for name in ("memory", "writer", "triage")
    )
    mixed, ticket = task_of(desk, "mixed 1"), task_of(desk, "ticket 1")
    one = Trace.objects.filter(task=mixed).earliest("pk")
    acts = {
        "merge": (
            [("agent-merge", memory.pk, {"into": writer.pk})],
            [("agent-name", writer.pk, {"key": "memory", "to": "own"})],
        ),
        "two merges in a chain": (
            [
                ("agent-merge", memory.pk, {"into": writer.pk}),
                ("agent-merge", writer.pk, {"into": triage.pk}),
            ],
            [
                ("agent-name", triage.pk, {"key": "memory", "to": "own"}),
                ("agent-name", triage.pk, {"key": "writer", "to": "own"}),
            ],
        ),
        "writing tools": (
            [("agent-tools", memory.pk, {"tools": "search_notes"})],
            [("agent-tools", memory.pk, {"tools": ""})],
        ),
        "name for people": (
            [("agent-rename", memory.pk, {"name": "Recall", "description": "d"})],
            [("agent-rename", memory.pk, {"name": "memory", "description": ""})],
        ),
        "expectation": (
            [("agent-outcomes", {"act": "save", "task": "tick*", **NEVER})],
            [("agent-outcomes-remove", {"task": "tick*"})],
        ),
        "join": (
            [("task-join", mixed.pk, {"into": "ticket 1"})],
            [("task-part", ticket.pk, {})],
        ),
        "another task": (
            [("trace-task", one.pk, {"task": "ticket 1", "trial": 99})],
            [("trace-task-undo", one.pk, {})],
        ),
    }
    for what, (done, undone) in acts.items():
        for step in done:
            *where, fields = step
            assert post(*where, **fields) == 302, what
        assert standing(scored(desk)) != before, what
        for step in undone:
            *where, fields = step
            assert post(*where, **fields) == 302, what
        assert standing(scored(desk)) == before, what


def test_a_definition_that_is_used_again_brings_the_same_verdicts_back(desk, post):
    before = standing(desk)
    memory = agent_of(desk, "memory")
    assert post("agent-contract-remove", memory.pk, 1, number=1) == 302
    assert standing(scored(desk)) != before
    assert post("agent-restore", memory.pk, version=1, number=2) == 302
    assert standing(scored(desk)) == before
    assert post("agent-restore", memory.pk, version=1, number=2) == 302
    assert AgentDefinition.objects.filter(agent=memory).count() == 3


def test_what_was_sent_twice_is_still_undone(desk, post):
    mixed, ticket = task_of(desk, "mixed 1"), task_of(desk, "ticket 1")
    before = places(desk)
    assert post("task-join", mixed.pk, into="ticket 1") == 302
    assert post("task-join", mixed.pk, into="ticket 1") == 400
    assert post("task-part", ticket.pk) == 302
    assert places(desk) == before
    one = Trace.objects.filter(task=mixed).earliest("pk")
    for _ in range(2):
        assert post("trace-task", one.pk, task="elsewhere", trial=7) == 302
    assert post("trace-task-undo", one.pk) == 302
    assert places(desk) == before
    assert post("trace-task-undo", one.pk) == 409


def test_parting_tasks_leaves_what_somebody_has_moved_on(desk, post):
    mixed, ticket = task_of(desk, "mixed 1"), task_of(desk, "ticket 1")
    one = Trace.objects.filter(task=mixed).earliest("pk")
    post("task-join", mixed.pk, into="ticket 1")
    post("trace-task", one.pk, task="elsewhere", trial=7)
    assert post("task-part", ticket.pk) == 302
    one.refresh_from_db()
    assert (one.task.key, one.trial) == ("elsewhere", 7)
    assert Trace.objects.filter(task=mixed).count() == 3


def test_a_second_send_writes_no_second_row(desk, post):
    failed = Trace.objects.filter(task__key="mixed 1", outcome="fail").earliest("pk")
    note = {"trace": failed.pk, "kind": "sound_but_wrong", "note": "x"}
    expected = {"act": "save", "task": "*", "expect": "pass", "number": 0}
    for _ in range(2):
        assert post("task-note", failed.task_id, **note) == 302
        assert post("agent-outcomes", **expected) == 302
    assert TrialNote.objects.count() == OutcomeDefinition.objects.count() == 1
    withdraw = ("task-note-withdraw", failed.task_id)
    assert [post(*withdraw, trace=failed.pk) for _ in range(2)] == [302, 409]


def test_an_old_tab_does_not_overwrite_the_words_or_tools_of_another(desk, post):
    memory = agent_of(desk, "memory")
    seen = {"words": memory.words_stamp, "tools": memory.tools_stamp}
    first = {"name": "Memory", "description": "Reads notes.", "seen": seen["words"]}
    assert post("agent-rename", memory.pk, **first) == 302
    late = {"name": "Recall", "description": "", "seen": seen["words"]}
    assert post("agent-rename", memory.pk, **late) == 409
    assert post("agent-rename", memory.pk, **first) == 302
    assert post("agent-tools", memory.pk, tools="refund", seen=seen["tools"]) == 302
    assert post("agent-tools", memory.pk, tools="", seen=seen["tools"]) == 409
    memory.refresh_from_db()
    assert (memory.name, memory.description) == ("Memory", "Reads notes.")
    assert memory.writing_tools == ["refund"]


def test_the_forms_of_an_agent_say_what_they_were_opened_on(client, desk):
    memory = agent_of(desk, "memory")
    page = text(client.get(url(desk, "agent", memory.pk)))
    for stamp in (memory.words_stamp, memory.tools_stamp):
        assert f'name="seen" value="{stamp}"' in page


def test_where_no_text_is_kept_nothing_is_held_in_0_percent(
    web, project, asked_in_structure
):
    """What cannot be decided is no share of 0 %, which would say that it broke."""
    scored(project)
    agent = agent_of(project, "triage")
    for name, args in (("agent", [agent.pk]), ("agents", []), ("overview", [])):
        page = text(web.get(url(project, name, *args)))
        assert "none of 5 could be decided" in page, name
        assert "held 0 of 5" not in page
    task = Task.objects.get()
    for name, args in (("tasks", []), ("task", [task.pk])):
        page = text(web.get(url(project, name, *args)))
        assert "none of 5 decided" in page, name
        assert "0 of 5 alike" not in page
    report = web.post(url(project, "reports"), {"title": "Weekly", "view": "all"})
    page = text(web.get(report["Location"]))
    assert "none of 5 could be decided" in page


@pytest.fixture
def asked_in_structure(web, project):
    """A structure-only project with a contract that reads texts."""
    project.structure_only = True
    project.save()
    send(web, project, b"".join(dump(_run(trial)) for trial in range(1, 6)))
    scored(project)
    agent = agent_of(project, "triage")
    fields = {"act": "save", "name": "routes", "subject": "output", "pattern": "a"}
    address = reverse("agent-contract-new", args=[project.slug, agent.pk])
    assert web.post(f"{address}?kind=regex", fields).status_code == 302


def _run(trial: int):
    return desk_trace(
        ("triage", [("says", {"route": "a"})]), task="t", trial=trial, outcome=PASS
    )
