"""A desk with replays, for tests of pages and reports that only read."""

from __future__ import annotations

from apps.agents.models import Agent
from apps.traces.models import Task, Trace
from tests.masked_desks import make_masked_desk
from tests.replays.making import make_alone


def make_desk_alone() -> None:
    """A masked desk whose memory agent was run alone; its fifth run broke out."""
    project = make_masked_desk()
    agent = Agent.objects.get(project=project, key="memory")
    ticket = Task.objects.get(project=project, key="ticket 1")
    make_alone(project, agent, Trace.objects.filter(task=ticket).earliest("pk"))
