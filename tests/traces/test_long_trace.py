"""A trace of 20,000 steps opens as fast as a short one."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.models import User
from apps.traces.models import Trace
from tests.factories import (
    decay_trace,
    make_project,
    make_user,
    model_call,
    tool_call,
    trace_of,
    upload_traces,
)

STEPS = 20_000


def make_a_long_trace() -> Trace:
    project = make_project(owner=make_user("lena"), name="Long")
    made = [
        model_call(seq, 100 + seq % 37) if seq % 2 else tool_call(seq, f"t{seq % 5}")
        for seq in range(STEPS)
    ]
    upload_traces(project, trace_of(made))
    return Trace.objects.get()


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_a_long_trace)


@pytest.fixture
def long(made, client, db, settings):
    trace, settings.UPLOADS_DIR = made
    client.force_login(User.objects.get(username="lena"))
    # The first page of a project is written into the session.
    client.get(reverse("overview", args=[trace.project.slug]))
    return Trace.objects.get(pk=trace.pk)


def page(client, trace, query=""):
    url = reverse("trace", args=[trace.project.slug, trace.pk]) + query
    with CaptureQueriesContext(connection) as seen:
        answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode(), seen


def steps_on(text: str) -> set[int]:
    return {int(number) for number in re.findall(r'id="step-(\d+)"', text)}


def test_its_page_holds_a_hundred_steps_and_few_queries(client, long):
    text, seen = page(client, long)
    assert len(steps_on(text)) == 100
    assert len(text) < 400_000
    upload_traces(long.project, decay_trace(5, 4, 3))
    short = Trace.objects.exclude(pk=long.pk).get()
    _, few = page(client, short)
    assert len(seen) == len(few) <= 20


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("?from=101", 100, 199),
        ("?step=20000", 19_900, 19_999),
        ("?from=999999", 19_900, 19_999),
        ("?from=0", 0, 99),
        ("?from=-5", 0, 99),
    ],
)
def test_a_window_of_it_is_where_the_address_says(client, long, query, first, last):
    text, _ = page(client, long, query)
    shown = {number - 1 for number in steps_on(text)}
    assert shown == set(range(first, last + 1))


def test_one_body_of_it_reads_one_chunk(client, long):
    url = reverse("step-body", args=[long.project.slug, long.pk, 12_345])
    with CaptureQueriesContext(connection) as seen:
        answer = client.get(url)
    assert "answer 12345" in answer.content.decode()
    read = [query["sql"] for query in seen if "traces_bodychunk" in query["sql"]]
    assert len(read) == 1
    with connection.cursor() as cursor:
        cursor.execute(read[0])
        assert len(cursor.fetchall()) == 1


def test_it_is_too_long_for_a_single_download_and_says_what_to_do(client, long):
    url = reverse("trace-download", args=[long.project.slug, long.pk])
    answer = client.get(url)
    assert answer.status_code == 413
    assert "Download the raw upload instead" in answer.content.decode()
