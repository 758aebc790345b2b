"""Odd addresses and forms of targets, cases and planners: answered in words."""

from __future__ import annotations

import re
from itertools import product

import pytest
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.replays.models import Batch
from tests.web.hostile import HTML
from tests.web.replay_fields import (
    REPLAY_FORMS,
    case_of_project,
    filled,
    places_of_replays,
    target_of,
)
from tests.web.test_bad_requests import NUMBERS, QUERIES, SURROGATE, make_place
from tests.web.visiting import assert_inert, url

VALUES = ["", "a\x00b", "9" * 30, HTML, "[" * 5_000, SURROGATE.decode("latin-1")]


def make_replay_place() -> None:
    make_place()
    project = Project.objects.get()
    target_of(project)
    case_of_project(project)


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_replay_place)


@pytest.fixture
def place(made, db):
    return Project.objects.get()


@pytest.fixture
def owner(made, db):
    return User.objects.get()


@pytest.fixture(autouse=True)
def uploads_dir(made, settings):
    settings.UPLOADS_DIR = made[1]


@pytest.mark.parametrize("form", sorted(REPLAY_FORMS))
def test_any_value_of_a_form_is_taken_or_refused_in_words(web, place, form):
    args = places_of_replays(place).get(form, [])
    if form == "task-freeze":
        args = [1]
    address = reverse(form, args=[place.slug, *args])
    fields = filled(place, form)
    for field, value in product(fields, VALUES):
        answer = web.post(address, {**fields, field: value})
        assert answer.status_code < 500, (field, value[:20])
        if answer.status_code >= 400:
            assert re.search(r"[a-z]{3}[.!?]", answer.content.decode())
        if answer["Content-Type"].startswith("text/html"):
            assert_inert(answer.content.decode().replace("\x00", ""))
    assert Batch.objects.count() == 0


def test_any_number_and_filter_in_an_address_is_answered(web, place):
    for page, names in (
        ("replay-cases", ["before", "agent", "task"]),
        ("replay-cases-jsonl", ["case"]),
        ("replay-targets", ["from"]),
        ("replay-plan", ["case", "agent", "target", "signal", "task"]),
    ):
        for name, value in product(names, NUMBERS[::2]):
            address = f"{url(place, page)}?{name}={value}"
            assert web.get(address).status_code in {200, 404}, address[:200]
    for query in QUERIES:
        assert web.get(f"{url(place, 'replay-cases')}?{query}").status_code == 200
    for number in ("0", "9" * 18, "9" * 19):
        for path in ("targets", "cases"):
            where = f"/projects/{place.slug}/replays/{path}/{number}/"
            assert web.get(where).status_code == 404
    assert web.get(url(place, "replay-target-new") + "?kind=shell").status_code == 404
