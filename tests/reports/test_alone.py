"""What a frozen report says of agents that were run alone."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.replays.cases import retire_case
from apps.replays.models import Group
from apps.reports import markdown
from apps.reports.assessing import assessment_of
from apps.reports.document import read
from apps.reports.gaps import NOTHING_REPLAYED
from apps.reports.operations import freeze
from apps.reports.queries import document_of
from apps.review.queries import QueueFilter
from apps.traces.models import Trace
from tests.factories import NOW
from tests.masked_desks import make_masked_desk
from tests.replays.desks import make_desk_alone
from tests.replays.ended import decided
from tests.replays.making import (
    make_frozen_case,
    make_memory_batch,
    new_batch,
    run_out,
)
from tests.scored import scored

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_desk_alone)


@pytest.fixture
def project(made, db):
    return Project.objects.get()


@pytest.fixture
def agent(project):
    return Agent.objects.get(project=project, key="memory")


def document(project) -> dict:
    owner = project.members.get()
    where = QueueFilter(view="all")
    return document_of(
        freeze(project=project, user=owner, title="R", where=where, now=NOW)
    )


def part_of(project) -> str:
    text = markdown.render(document(project)).replace("\u202f", " ")
    return text.partition("## Agents alone")[2].partition("\n## ")[0]


def test_replays_stand_beside_the_pipeline_with_what_did_not_finish(project):
    said = part_of(project)
    assert "1 batch of replays with 5 runs." in said
    assert "4 of 5 (80 %" in said
    assert "Landlock and seccomp 5" in said
    assert "alone it decides “refunds” in 4 of 5, nothing in 1" in said
    assert "**1**" in said, "the breach is stressed"
    written = document(project)
    assert read(written).assessment == assessment_of(project.pk)
    # They are counted nowhere else.
    assert written["counts"]["traces"] == Trace.objects.count()


def test_a_memory_test_stands_in_one_sentence_and_its_answers_in_none(project, agent):
    make_memory_batch(project, agent)
    said = part_of(project)
    tests = said.partition("### Memory tests")[2]
    assert "Recall is no longer certain from depth 6 on" in tests
    assert "15 of 15" in tests
    assert "It ends in 27" not in said


def test_a_case_that_was_put_away_is_not_listed(project):
    retire_case(case=Group.objects.get().case, is_retired=True)
    said = part_of(project)
    assert "No case of them was run to its end" in said
    assert "refunds" not in said


def test_a_report_without_replays_says_so():
    empty = make_masked_desk(times=2)
    assert "No agent was run alone" in part_of(empty)


def test_more_groups_cost_no_more_queries(project, agent):
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assessment_of(project.pk)
        return len(caught)

    before = queries()
    for key in ("memory", "triage"):
        one = Agent.objects.get(project=project, key=key)
        cases = [make_frozen_case(one, input=f"{key} {n}") for n in range(3)]
        for number, case in enumerate(cases):
            more = new_batch(one, case, name=f"More {number}", repeats=1)
            run_out(more, lambda run: decided({"route": "refunds"}))
    scored(project)
    assert len(assessment_of(project.pk).alone.groups) == 7
    assert queries() == before


def test_a_report_of_replays_does_not_say_that_nothing_was_replayed(project):
    text = markdown.render(document(project))
    assert "1 batch of replays with 5 runs." in text
    assert "Nothing was replayed" not in text


def test_a_report_without_replays_says_that_nothing_was_replayed():
    empty = make_masked_desk(times=2)
    assert NOTHING_REPLAYED in document(empty)["not_checked"]


def test_a_batch_that_was_never_executed_is_said_to_be_no_replay(project):
    desk = make_masked_desk(times=2)
    one = Agent.objects.get(project=desk, key="memory")
    new_batch(one, make_frozen_case(one, input="a letter"), repeats=2)
    said = [line for line in document(desk)["not_checked"] if "replayed" in line]
    assert said == [
        "Nothing was replayed: of 1 batch with 2 planned runs none was executed. All "
        "evidence is from traces as they were recorded."
    ]
