"""A list of 120 traces in every order, in pages of every size."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.accounts.models import Project
from apps.traces.models import Trace
from apps.traces.queries import SORTS, TraceFilter, traces_of
from tests.factories import (
    decay_trace,
    make_project,
    make_user,
    tools_trace,
    upload_traces,
)
from tests.traces.following import follow

pytestmark = pytest.mark.django_db

FALLING = (100, 90, 80, 70, 60)


def make_many() -> Project:
    """A project of Olga's with 120 traces in which every sort has ties."""
    made = [
        decay_trace(*FALLING[: 2 + number % 4], name=f"run {number}")
        if number % 3
        else tools_trace(*"abc"[: 1 + number % 3], name=f"run {number}")
        for number in range(120)
    ]
    project = make_project(owner=make_user("olga"))
    upload_traces(project, *made)
    return project


@pytest.fixture(scope="module")
def many(stand) -> Project:
    project, _ = stand(make_many)
    return project


@pytest.mark.parametrize("size", [1, 7, 50])
@pytest.mark.parametrize("sort", SORTS)
def test_pages_of_every_sort_hold_every_trace_once_and_in_order(many, sort, size):
    where = TraceFilter(sort=sort)
    everything = list(traces_of(many, where=where))
    paged: list[Trace] = []
    while True:
        edge = paged[-1] if paged else None
        page = list(traces_of(many, where=where, after=edge)[:size])
        if not page:
            break
        paged += page
        if size == 1 and len(paged) == 30:
            everything = everything[:30]
            break
    assert [row.pk for row in paged] == [row.pk for row in everything]
    assert len({row.pk for row in paged}) == len(paged)


@pytest.mark.parametrize("sort", SORTS)
def test_the_links_of_the_trace_list_lead_through_all_traces(client, many, sort):
    client.force_login(many.members.get())
    url = reverse("traces", args=[many.slug])
    found = follow(client, f"{url}?sort={sort}", rf'href="{url}(\d+)/')
    assert len(found) == len(set(found)) == 120
