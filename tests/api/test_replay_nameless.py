"""Cases of the agent without a name, through the JSON door and back."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from apps.accounts.permissions import Scope
from apps.replays.models import ReplayCase
from tests.api.replayed import post
from tests.replays.rows import make_nameless

pytestmark = pytest.mark.django_db


@pytest.fixture
def door(client_with, project):
    return client_with(project, Scope.READ, Scope.REPLAY)


def test_cases_of_the_agent_without_a_name_come_back(door, project):
    lines = (
        b'{"agent": "", "input": "Where is it?"}\n'
        b'{"agent": "unnamed agent", "input": "Who?"}\n'
        b'{"input": "Of whom?"}\n'
    )
    unknown = post(door, "cases", body=lines, status=400)
    told = [one["reason"] for one in unknown["refused"]]
    assert told[0].startswith("This project knows no agent without a name (1 line)")
    agent = make_nameless(project)
    first = post(door, "cases", body=lines, status=201)
    assert (first["new"], first["refused"][0]["line"]) == (2, 3)
    query = f"?agent={agent.pk}"
    whole = post(door, "cases", body=lines, status=201, query=query)
    assert (whole["new"], whole["refused"]) == (1, [])
    rows = ReplayCase.objects.filter(agent=agent)
    assert {one.pk for one in rows} == set(whole["cases"])
    down = b"".join(
        door.get(reverse("api-replay-case-lines"), {"source": "file"}).streaming_content
    )
    assert {json.loads(one)["agent"] for one in down.splitlines()} == {""}
    again = post(door, "cases", body=down)
    assert (again["new"], set(again["cases"])) == (0, set(whole["cases"]))
