"""A desk whose memory agent was recorded and run alone, and its door asked in JSON."""

from __future__ import annotations

import json

from django.urls import reverse

from apps.agents.models import Agent
from apps.traces.models import Trace
from tests.desks import desk_trace
from tests.factories import make_project, make_user, upload_traces
from tests.replays.making import make_alone, make_memory_batch
from tests.scored import scored


def make_place() -> None:
    """A project whose memory agent was recorded in three trials and run alone twice."""
    owner = make_user("olga")
    project = make_project(owner=owner, name="Support desk")
    for trial in (1, 2, 3):
        said = ("memory", [("says", {"route": "billing"})])
        trace = desk_trace(said, ("writer", [("says", "Done.")]), trial=trial)
        upload_traces(project, trace, name=f"desk {trial}")
    scored(project)
    agent = Agent.objects.get(key="memory")
    make_alone(project, agent, Trace.objects.order_by("pk").first())
    make_memory_batch(project, agent)


def get(door, name, *args, status=200, **query):
    answer = door.get(reverse(f"api-replay-{name}", args=args), query)
    assert answer.status_code == status, answer.content
    return answer.json()


def post(door, name, *args, body=b"", status=200, method="post", query=""):
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    address = reverse(f"api-replay-{name}", args=args) + query
    answer = getattr(door, method)(address, sent, content_type="application/json")
    assert answer.status_code == status, answer.content
    return answer.json()


def lines_of(answer):
    return [json.loads(line) for line in b"".join(answer).splitlines()]
