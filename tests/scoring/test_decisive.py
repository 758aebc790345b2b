"""Decisive forks are counted beside the number that chance alone gives."""

from __future__ import annotations

import pytest

from apps.scoring.decisive import decisive_forks
from apps.scoring.models import TaskScore
from tests.desks import FAIL, PASS, desk_trace
from tests.factories import upload_traces
from tests.scored import scored

pytestmark = pytest.mark.django_db


def forking(number: int):
    """Three trials close the ticket and fail, one asks a person and passes."""
    for trial in range(4):
        is_other = trial == 3
        act = ("escalate", {"queue": number}) if is_other else ("close", {"n": number})
        yield desk_trace(
            ("desk", [("calls", (*act, "done")), ("says", "I am done with it.")]),
            task=f"ticket {number}",
            trial=trial + 1,
            outcome=PASS if is_other else FAIL,
            asked=f"This is ticket number {number} of the morning.",
        )


def test_the_expected_number_is_the_sum_over_the_mixed_tasks(project):
    upload_traces(project, *[one for n in range(8) for one in forking(n)])
    scored(project)
    assert set(TaskScore.objects.values_list("decisive_chance", flat=True)) == {0.25}
    found = decisive_forks(project.pk)
    assert (found.mixed, found.found, found.expected) == (8, 8, 2.0)
    assert found.is_more_than_chance
    assert found.low <= 2 <= found.high < 8


def test_where_no_task_is_mixed_nothing_is_said(project):
    assert decisive_forks(project.pk) is None


def test_scores_that_were_not_asked_for_chance_say_nothing_yet(project):
    upload_traces(project, *forking(1), *forking(2))
    scored(project)
    TaskScore.objects.filter(task__key="ticket 1").update(decisive_chance=None)
    assert decisive_forks(project.pk) is None
