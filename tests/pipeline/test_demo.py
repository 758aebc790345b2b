"""The demo shows what it is for: one agent is red, and the pipeline passes."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from apps.accounts.models import Project
from apps.agents.models import Agent, AgentDefinition
from apps.agents.operations import Asked, define_agent
from apps.pipeline.demo.asked import CONTRACTS, DECISIONS, NOTE
from apps.pipeline.patterns import search_project
from apps.pipeline.reading import read_upload
from apps.review.models import Signal
from apps.scoring.models import AgentTaskScore, Conduct, TaskScore, TraceScore
from apps.traces.models import Step, Upload
from apps.verdicts.models import AgentVerdict, PatternSearch, ProjectVerdict
from tests.factories import NOW
from tests.scored import scored

pytestmark = pytest.mark.django_db

ALL = {
    "billing": "green",
    "triage": "green",
    "memory": "red",
    "notes": "red",
    "escalation": "red",
    "shipping": "unstable",
    "translator": "unknown",
    "writer": "unknown",
    "auditor": "unknown",
    "": "unknown",
}


def make_demo() -> Project:
    """The project as the command leaves it, read and scored in this process."""
    call_command("demo", stdout=StringIO())
    for pk in Upload.objects.order_by("pk").values_list("pk", flat=True):
        read_upload(upload_id=pk, clock=lambda: NOW)
    project = Project.objects.get(slug="demo")
    scored(project)
    search_project(project_id=project.pk, clock=lambda: NOW)
    return project


@pytest.fixture(scope="module")
def made(stand):
    project, _ = stand(make_demo)
    return project


@pytest.fixture
def demo(made):
    return Project.objects.get(pk=made.pk)


def verdict_on(project: Project, name: str) -> AgentVerdict:
    return AgentVerdict.objects.get(project=project, agent__name=name)


def colours(project: Project) -> dict[str, str]:
    rows = AgentVerdict.objects.filter(project=project)
    return dict(rows.values_list("agent__name", "colour"))


def report(project: Project) -> dict:
    return ProjectVerdict.objects.get(project=project).detail["report"]


def test_the_headline_is_the_memory_agent_behind_traces_that_passed(demo):
    assert report(demo)["headline"] == (
        "memory is red in 20 of 20 traces that passed and exercise it (114 passed in "
        "all); 2 more agents masked."
    )
    assert [one["agent"] for one in report(demo)["maskings"]] == [
        "memory",
        "notes",
        "shipping",
    ]
    memory = verdict_on(demo, "memory")
    assert (memory.masked_traces, memory.masked_tasks) == (20, 4)
    assert colours(demo) == ALL


def test_without_its_contract_memory_is_unknown_and_no_headline(demo):
    memory = Agent.objects.get(project=demo, name="memory")
    define_agent(agent=memory, asked=Asked(), user_id=None, now=NOW)
    scored(demo)
    assert colours(demo) == ALL | {"memory": "unknown"}
    assert "memory" not in report(demo)["headline"]
    assert "memory is unknown: no contract says what it must hold." in [
        gap["sentence"] for gap in report(demo)["gaps"]
    ]
    assert not Conduct.objects.filter(agent=memory, is_masked=True).exists()


def test_gaps_begin_with_the_agent_that_no_trace_exercises(demo):
    said = [gap["sentence"] for gap in report(demo)["gaps"]]
    assert said[0] == "translator is unknown: no task exercises it."
    assert "writer is unknown: no contract says what it must hold." in said


def test_the_number_was_never_stored_and_the_note_taker_is_named(demo):
    scores = TraceScore.objects.filter(trace__name="ticket 1: refund")
    assert len(scores) == 5
    for score in scores:
        (found,) = score.recalls
        assert (found["state"], found["place"]) == ("lost", "never_stored")
        (place,) = found["place_steps"]
        step = Step.objects.get(trace=score.trace, seq=place)
        assert (found["agent"], step.name) == ("notes", "save_note")
    masked = Signal.objects.filter(project=demo, is_masked=True)
    assert set(masked.values_list("check_slug", "trace__name")) == {
        ("planted-fact-call-back-number", "ticket 1: refund")
    }
    assert masked.count() == 5


def test_escalation_is_red_where_the_parcel_failed_and_is_masked_nowhere(demo):
    escalation = verdict_on(demo, "escalation")
    assert (escalation.masked_traces, escalation.masked_tasks) == (0, 0)
    red = Conduct.objects.filter(agent=escalation.agent, colour="red")
    assert set(red.values_list("trace__name", "trace__trial")) == {
        ("delayed parcel", 2),
        ("delayed parcel", 5),
    }
    assert set(red.values_list("trace__tracescore__outcome", flat=True)) == {"red"}


def test_the_fork_of_the_parcel_separates_what_passed_from_what_failed(demo):
    parcel = TaskScore.objects.get(task__key="delayed parcel Z-5520")
    assert (parcel.outcome, parcel.passed, parcel.failed) == ("mixed", 3, 2)
    assert parcel.fork_count == 1
    assert parcel.decisive.startswith(
        "All 3 that went “escalate(parcel=Z-5520, queue=carrier claims)” passed, all 2 "
        "that went “close_ticket(note=wait for the carrier)” failed."
    )


def test_one_agent_is_unstable_on_one_ticket_that_passed_each_time(demo):
    rows = AgentTaskScore.objects.filter(task__key__startswith="ticket ")
    rows = rows.exclude(agent__name="writer")
    (wavers,) = rows.exclude(consistency="stable")
    assert wavers.agent.name == "shipping"
    assert (wavers.consistency, wavers.majority, wavers.trials) == (
        "non_deterministic",
        3,
        5,
    )
    assert wavers.is_masked
    assert TaskScore.objects.get(task=wavers.task).outcome == "green"


def test_the_pattern_behind_the_wavering_is_found_by_itself(demo):
    (rule,) = PatternSearch.objects.get(target="unstable").found["findings"]
    assert rule["words"] == "input confidence is 0.4 to under 0.5"
    assert rule["tasks"] == 6
    assert rule["inside"] == {"hits": 25, "of": 25}


def test_what_the_other_runs_show_is_as_it_was(demo):
    signals = Signal.objects.filter(project=demo, is_masked=False)
    assert set(signals.values_list("trace__name", "check_slug")) == {
        ("ledger audit, seven parts", "output-decay"),
        ("account 88", "tool-drift"),
        ("account 88", "no-progress"),
    }
    night = Upload.objects.get(project=demo, name="night-desk.chat.jsonl")
    assert night.usage_known == 0 < night.model_call_count


def test_the_command_leaves_everything_read_and_everything_asked(demo):
    uploads = Upload.objects.filter(project=demo).order_by("pk")
    assert list(uploads.values_list("name", "state", "trace_count")) == [
        ("support-desk.evalsite.jsonl", "done", 20),
        ("delayed-parcel.evalsite.jsonl", "done", 5),
        ("long-runs.evalsite.jsonl", "done", 4),
        ("escalation-trials.evalsite.jsonl", "done", 96),
        ("night-desk.chat.jsonl", "done", 1),
    ]
    rows = AgentDefinition.objects.filter(agent__project=demo)
    assert {row.agent.name for row in rows} == {*DECISIONS}
    assert {(row.number, row.note) for row in rows} == {(1, NOTE)}
    assert {*CONTRACTS} < {*DECISIONS}


def test_the_command_leaves_a_database_alone_that_has_a_user(demo):
    said = StringIO()
    call_command("demo", stdout=said)
    assert said.getvalue() == ""
    assert Project.objects.count() == 1
    assert AgentDefinition.objects.count() == len(DECISIONS)
