"""What pages say where what is expected of outcomes cannot be read any more."""

from __future__ import annotations

import re

import pytest

from apps.accounts.models import Project
from apps.agents.models import OutcomeDefinition
from apps.scoring.models import TraceScore
from apps.traces.models import Trace
from tests.factories import NOW
from tests.masked_desks import make_masked_desk
from tests.scored import scored
from tests.web.visiting import text, url
from tests.web.walking import signed_in_as

pytestmark = pytest.mark.django_db

UNREAD = (
    "Expectation 1 (tasks “*”) of version 1 cannot be read by this version of Evalsite "
    "at “expect”: “quantum” is none of the words that are known here. Edit it anew; "
    "nothing is known from it until then."
)


def make_desk() -> None:
    project = make_masked_desk(times=2)
    OutcomeDefinition.objects.create(
        project=project,
        number=1,
        expectations=[{"task": "*", "expect": "quantum"}],
        created_at=NOW,
    )
    Trace.everything.update(scored_as="")
    scored(project)


@pytest.fixture(scope="module")
def made(stand):
    stand(make_desk)


@pytest.fixture
def project(made, db) -> Project:
    return Project.objects.get()


@pytest.fixture
def web(project):
    return signed_in_as(project.members.get())


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_an_outcome_that_is_scored_unknown_is_no_pass_in_the_queue(web, project):
    assert set(TraceScore.objects.values_list("outcome", flat=True)) == {"unknown"}
    page = web.get(url(project, "queue")).content.decode()
    chips = re.findall(r'<div class="chips">.*?</div>', page, re.DOTALL)
    assert chips
    for chip in chips:
        assert "e2e pass" not in words(chip)
        assert "e2e outcome unknown" in words(chip)


def test_the_overview_says_below_its_headline_why_no_outcome_is_known(web, project):
    page = text(web.get(url(project, "overview")))
    headline = "No trace is known to have passed, so nothing can be masked.</h2>"
    assert f"{headline}<p>{UNREAD}</p>" in page
    assert page.count(UNREAD) == 1


def test_recorded_outcomes_that_are_expected_otherwise_are_told_as_recorded(
    web, project
):
    passed = Trace.objects.filter(outcome="pass").count()
    assert passed
    assert f"as recorded: {passed} pass" in text(web.get(url(project, "overview")))
    OutcomeDefinition.objects.all().delete()
    Trace.everything.update(scored_as="")
    scored(project)
    page = text(web.get(url(project, "overview")))
    assert f"{passed} pass" in page
    assert "as recorded: " not in page
