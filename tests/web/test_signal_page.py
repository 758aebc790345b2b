"""The page of a signal: what it says beside the evidence, and at what cost."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.engine.trace import Outcome, OutcomeKind
from apps.review.models import Signal
from tests.factories import decay_trace, upload_traces

FAIL = Outcome(kind=OutcomeKind.FAIL)
PASS = Outcome(kind=OutcomeKind.PASS)


@pytest.fixture
def web(client, owner):
    client.force_login(owner)
    return client


def falling(n: int, outcome: Outcome, task: str):
    lengths = (100 + n, 90, 80, 70, 40)
    return decay_trace(*lengths, name=f"falls {n}", outcome=outcome, task=task)


def level(n: int, outcome: Outcome, task: str):
    lengths = (50 + n, 60, 55, 58, 61)
    return decay_trace(*lengths, name=f"level {n}", outcome=outcome, task=task)


def test_it_says_how_often_what_fired_passed_and_that_tasks_repeat(web, project):
    upload_traces(
        project,
        *[falling(n, FAIL, f"t{n % 2}") for n in range(4)],
        *[level(n, PASS, f"t{n % 2}") for n in range(4)],
    )
    signal = Signal.objects.earliest("id")
    text = web.get(reverse("signal", args=[project.slug, signal.pk])).content.decode()
    assert (
        "Of 4 with a signal 0 passed, of 4 without 4 passed; "
        "Fisher exact p = 2.86\u202f%; 2 distinct tasks, so the traces are not "
        "independent" in text
    )


def test_it_says_when_there_are_not_enough_outcomes(web, project):
    upload_traces(project, falling(0, FAIL, "t0"), level(0, FAIL, "t1"))
    signal = Signal.objects.get()
    answer = web.get(reverse("signal", args=[project.slug, signal.pk]))
    assert "not enough outcomes" in answer.content.decode()


def test_the_page_aggregates_over_its_own_check_only(web, project):
    upload_traces(project, falling(0, FAIL, "t0"), level(0, PASS, "t1"))
    signal = Signal.objects.get()
    with CaptureQueriesContext(connection) as caught:
        web.get(reverse("signal", args=[project.slug, signal.pk]))
    grouped = [q["sql"] for q in caught if "GROUP BY" in q["sql"]]
    assert grouped
    assert all("\"check_slug\" = 'output-decay'" in sql for sql in grouped)


def test_the_navigation_counts_open_signals_and_nothing_else(web, project):
    upload_traces(project, falling(0, FAIL, "t0"), falling(1, FAIL, "t1"))
    with CaptureQueriesContext(connection) as caught:
        answer = web.get(reverse("reports", args=[project.slug]))
    counted = [
        q["sql"]
        for q in caught
        if "COUNT(" in q["sql"] and '"review_signal"' in q["sql"]
    ]
    assert len(counted) == 1
    assert "FILTER" not in counted[0]
    (queue,) = [i for i in answer.context["nav"].items if i.name == "queue"]
    assert queue.number == 2
