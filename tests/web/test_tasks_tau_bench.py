"""The pages of tasks over a real file: 50 airline tasks with four trials each."""

from __future__ import annotations

import re

import pytest

from apps.accounts.models import Project, User
from apps.scoring.models import TaskScore
from apps.traces.models import Task
from tests.conftest import SHARED
from tests.factories import make_project, make_user, upload_bytes
from tests.scored import scored
from tests.web.visiting import text, url

FILE = SHARED / "data" / "tau_bench_results" / "gpt-4o-airline.json"
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="The shared trace files lie outside and are absent."
)


def make_airline() -> None:
    project = make_project(owner=make_user("olga"), name="Airline")
    upload_bytes(project, FILE.read_bytes(), name=FILE.name)
    scored(project)


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_airline)


@pytest.fixture
def project(made, db):
    return Project.objects.get()


@pytest.fixture
def owner(made, db):
    return User.objects.get()


def test_a_page_lists_the_mixed_tasks_with_their_first_decisive_fork(web, project):
    page = text(web.get(url(project, "tasks") + "?outcome=mixed"))
    assert "<b>26</b> of 50 tasks: 26 mixed" in page
    rows = page.split("<tr data-row>")[1:]
    assert len(rows) == 26
    for row in rows:
        assert re.search(r">\d+ forks?</a>, first at step \d+", row)
        assert re.search(r"(passed|failed).* \(p |No fork parts those", row)
    told = sum("No fork parts" not in row for row in rows)
    assert (
        told == TaskScore.objects.filter(outcome="mixed").exclude(decisive="").count()
    )
    assert told >= 20


def test_the_fork_view_of_a_mixed_task_names_the_fork_and_the_side_that_passed(
    web, project
):
    for score in TaskScore.objects.filter(outcome="mixed").exclude(decisive="")[:3]:
        page = text(web.get(url(project, "task-forks", score.task_id)))
        fork = page[page.index('id="fork"') :]
        assert ">decisive<" in fork
        assert re.search(r"[12] of [12] \(100 %", fork)
        assert re.search(r"0 of [123] \(0 %", fork)


def test_comparing_texts_forks_where_decisions_do_not(web, project):
    at_once = {"decisions": 0, "text": 0}
    for task in Task.objects.order_by("pk")[:5]:
        for compare in at_once:
            address = url(project, "task-forks", task.pk) + f"?compare={compare}"
            page = text(web.get(address))
            first = re.search(
                r'data-choice="1"[^>]*>1 <span class="mute">([^<]+)', page
            )
            at_once[compare] += bool(first) and first[1] in {"step 2", "steps 2 to 3"}
    assert at_once["text"] > at_once["decisions"]
    assert at_once["decisions"] == 0
