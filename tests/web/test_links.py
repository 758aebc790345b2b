"""Every link that a page of this site shows leads to a page of this site."""

from __future__ import annotations

from collections import deque
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import Resolver404, resolve, reverse

from apps.accounts.models import Project, User
from apps.pipeline.lineups import catch_up
from apps.screening.definitions import Wanted, define
from apps.screening.models import Definition
from tests.factories import NOW
from tests.scored import scored
from tests.web.rooms import make_rooms
from tests.web.visiting import Elements
from tests.web.walking import signed_in_as

pytestmark = pytest.mark.django_db
# They end the walk or are large files; tests/web/test_access.py asks for them.
NOT_FOLLOWED = {"sign-out", "report-pdf", "upload-raw"}
MOST_LINKS = 800


def make_house() -> None:
    rooms = make_rooms()
    project = Project.objects.get(slug=rooms["slug"])
    fact = Wanted("planted-fact", "Call-back number", {"value": "4417", "probe": "x"})
    define(project_id=project.pk, wanted=fact, user_id=None, now=NOW)
    while catch_up(project_id=project.pk, clock=lambda: NOW):
        pass
    scored(project)


@pytest.fixture(scope="module")
def house(stand):
    stand(make_house)


@pytest.fixture
def web(house, db) -> Client:
    return signed_in_as(User.objects.get(username="olga"))


@pytest.fixture
def project(house, db) -> Project:
    return Project.objects.get()


def links_of(address: str, page: str) -> list[str]:
    """Where the links of a page lead inside of the site, without fragments."""
    found = [
        urljoin(address, attributes[name])
        for tag, attributes in Elements(page).found
        for name in ("href", "hx-get")
        if name in attributes and tag != "link"
    ]
    inside = [one.partition("#")[0] for one in found if one.startswith("/")]
    return [one for one in inside if not one.startswith("/static/")]


def name_of(link: str) -> str:
    """The name of the page at an address, "" where no page can be."""
    try:
        return resolve(urlsplit(link).path).view_name
    except Resolver404:
        return ""


def seen_as(link: str) -> object:
    """Links that count as one: the same path, and queries of the same names."""
    parts = urlsplit(link)
    if not parts.query:
        return parts.path
    return name_of(link), tuple(sorted(key for key, _ in parse_qsl(parts.query)))


def asked(web: Client, address: str) -> tuple[int, list[str]]:
    """The status of a page, and its links."""
    answer = web.get(address)
    is_page = answer.status_code == 200 and "html" in answer["Content-Type"]
    return answer.status_code, (
        links_of(address, answer.content.decode()) if is_page else []
    )


def walked(web: Client, start: str) -> tuple[set[str], list[str]]:
    """The names of all pages that are reached, and the links that are dead."""
    waiting, seen = deque([("", start)]), {seen_as(start)}
    reached: set[str] = set()
    dead: list[str] = []
    while waiting:
        source, address = waiting.popleft()
        name = name_of(address)
        if name in NOT_FOLLOWED:
            continue
        reached.add(name)
        status, links = asked(web, address) if name else (404, [])
        if status >= 400:
            dead.append(f"{source} leads to {address}: {status}")
        new = {seen_as(link): link for link in links if seen_as(link) not in seen}
        seen |= new.keys()
        waiting += [(address, link) for link in new.values()]
        assert len(seen) < MOST_LINKS, "the links do not end"
    return reached, dead


def test_every_link_of_every_page_leads_somewhere(web, project):
    names, dead = walked(web, reverse("overview", args=[project.slug]))
    assert not dead
    assert {"contract", "calibration", "shadow", "replay-run", "agent", "task"} <= names
    assert len(names) > 60


@pytest.mark.parametrize("page", ["project-check", "calibration"])
@pytest.mark.parametrize("kind", ["contract", "planted-fact"])
def test_the_page_of_a_check_leads_to_its_own_definition(web, project, kind, page):
    row = Definition.objects.get(project=project, kind=kind)
    at = reverse(page, args=[project.slug, f"{kind}-{row.slug}"])
    own = reverse("contract", args=[project.slug, row.slug])
    assert own in links_of(at, web.get(at).content.decode())
    shown = web.get(own)
    assert shown.status_code == 200
    assert 'value="paused"' in shown.content.decode()
