"""Lists: every row once on some page, and a number of queries that does not grow."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.engine.trace import Outcome, OutcomeKind
from apps.review.models import Signal
from apps.review.queries import ORDERS
from apps.traces.queries import TraceFilter, traces_of
from tests.factories import (
    CHAT,
    chat_bytes,
    decay_trace,
    make_project,
    make_user,
    tools_trace,
    upload_bytes,
)
from tests.factories import upload_traces as upload
from tests.traces.following import follow

FALLING = (100, 90, 80, 70, 60)


@pytest.mark.parametrize("sort", ORDERS)
def test_the_links_of_the_queue_lead_through_all_signals(client, owner, project, sort):
    upload(project, *[decay_trace(*FALLING, name=str(n)) for n in range(70)])
    client.force_login(owner)
    url = reverse("queue", args=[project.slug])
    signals = reverse("signal", args=[project.slug, 1]).removesuffix("1/")
    found = follow(client, f"{url}?sort={sort}", rf'href="{signals}(\d+)/')
    signals = Signal.objects.filter(project=project)
    assert len(found) == len(set(found)) == signals.count() == 70


def test_the_links_of_the_upload_list_lead_through_all_uploads(client, owner, project):
    for number in range(55):
        upload(project, decay_trace(number))
    client.force_login(owner)
    url = reverse("uploads", args=[project.slug])
    found = follow(client, url, rf'href="{url}(\d+)/"')
    assert len(found) == len(set(found)) == 55


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"usage": "all"}, 2),
        ({"usage": "some"}, 1),
        ({"usage": "none"}, 1),
        ({"usage": "no_calls"}, 1),
        ({"outcome": "fail"}, 1),
        ({"agent": "planner"}, 5),
        ({"agent": "plan"}, 0),
        ({"model": "gpt-4o"}, 4),
        ({"q": "ru"}, 5),
        ({"q": "%"}, 0),
        ({"q": "id-1"}, 1),
        ({"q": "session-7"}, 2),
        ({"q": "session"}, 0),
        ({"format": "tau-bench"}, 0),
        ({"upload": 10**18}, 0),
        ({"task": 10**18}, 0),
    ],
)
def test_a_filter_selects_what_it_says(project, where, expected):
    upload(
        project,
        decay_trace(5, 6, native_id="id-1"),
        decay_trace(None, session="session-7"),
        decay_trace(1, None, session="session-7"),
        decay_trace(1, outcome=Outcome(kind=OutcomeKind.FAIL)),
        tools_trace(*"ab"),
    )
    assert traces_of(project, where=TraceFilter(**where)).count() == expected


PAGES = ["overview", "uploads", "traces", "queue", "reports", "project-settings"]


def fill(project, start: int, count: int) -> None:
    for number in range(start, start + count):
        upload(
            project,
            decay_trace(*FALLING, name=f"falls {number}", task=f"t{number}", trial=0),
            tools_trace(*"abcdefgh", *"aaaaaaaa", name=f"tools {number}"),
            decay_trace(None, None, name=f"silent {number}"),
        )
        upload_bytes(project, chat_bytes(CHAT) + b"{bad\n" * (number + 1))


def queries_of(client, url: str) -> int:
    # The first page of a project is written into the session; the second one is not.
    client.get(url)
    with CaptureQueriesContext(connection) as seen:
        assert client.get(url).status_code == 200
    return len(seen)


def make_few_and_many() -> list[Project]:
    user = make_user("frida")
    made = []
    for count in (5, 10):
        project = make_project(owner=user, name=f"Filled {count} times")
        fill(project, 0, count)
        made.append(project)
    return made


@pytest.fixture(scope="module")
def few_and_many(stand) -> list[Project]:
    made, _ = stand(make_few_and_many)
    return made


@pytest.mark.parametrize("page", PAGES)
def test_twice_the_rows_need_the_same_queries(few_and_many, client, db, page):
    client.force_login(User.objects.get(username="frida"))
    few, many = (
        queries_of(client, reverse(page, args=[project.slug]))
        for project in few_and_many
    )
    assert many == few <= 20


def test_a_receipt_needs_the_same_queries_for_one_trace_and_for_fifty(
    client, owner, project
):
    client.force_login(owner)
    one = upload(project, decay_trace(*FALLING))
    fifty = upload(project, *[decay_trace(*FALLING, name=str(n)) for n in range(50)])
    counts = [
        queries_of(client, reverse("upload", args=[project.slug, row.pk]))
        for row in (one, fifty)
    ]
    assert counts[0] == counts[1]


def test_a_signal_needs_the_same_queries_for_a_long_sequence(client, owner, project):
    upload(project, decay_trace(*FALLING), decay_trace(*range(300, 100, -1)))
    client.force_login(owner)
    short, long = Signal.objects.filter(project=project).order_by("length")
    assert long.length == 200
    counts = [
        queries_of(client, reverse("signal", args=[project.slug, row.pk]))
        for row in (short, long)
    ]
    assert counts[0] == counts[1] <= 20
