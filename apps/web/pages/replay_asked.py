"""For which agent, cases and target an address asks for a plan."""

from __future__ import annotations

import msgspec
from django.http import QueryDict

from apps.agents.models import Agent, AgentName
from apps.agents.queries import agent_now, agents_behind
from apps.engine.agent_names import agent_key
from apps.replays.models import ReplayCase
from apps.web.access import Place
from apps.web.numbers import whole

MOST_CASES = 200


class Asked(msgspec.Struct, frozen=True):
    """What an address names; `trace` is that of a signal, whose cases are ticked too."""

    agent: Agent | None
    cases: list[int]
    target: int | None = None
    signal: int | None = None
    trace: int | None = None


def asked_in(place: Place, query: QueryDict) -> Asked:
    """What an address asks for; 404 for what is not of this project.

    The agent is the one that is named, else that of the target, of the first case, or
    of the signal.
    """
    cases = _cases(place, query)
    target = _whole(query, "target")
    signal = _whole(query, "signal")
    agent_id = _whole(query, "agent")
    trace = None
    agent = None if agent_id is None else place.agent(agent_id)
    if target is not None:
        agent = agent or place.target(target).agent
    if cases:
        agent = agent or cases[0].agent
    if signal is not None:
        found = place.signal(signal)
        trace = found.trace_id
        agent = agent or _agent_called(place, found.agent)
    return Asked(
        agent=_now(place, agent),
        cases=[one.pk for one in cases],
        target=target,
        signal=signal,
        trace=trace,
    )


def _now(place: Place, agent: Agent | None) -> Agent | None:
    """The agent that the name of this one stands for now."""
    return None if agent is None else place.agent(agent_now(agent))


def _whole(query: QueryDict, name: str) -> int | None:
    return whole(query.get(name, ""))


def _cases(place: Place, query: QueryDict) -> list[ReplayCase]:
    rows = ReplayCase.objects.filter(project=place.project, is_retired=False)
    task = _whole(query, "task")
    if task is not None:
        rows = rows.filter(trace__task=place.task(task))
        agent = _whole(query, "agent")
        if agent is not None:
            rows = rows.filter(agent_id__in=agents_behind(agent))
    else:
        sent = query.getlist("case")[:MOST_CASES]
        ids = [one for text in sent if (one := whole(text)) is not None]
        rows = rows.filter(pk__in=ids)
    found = rows.select_related("agent").defer("content").order_by("pk")
    return list(found[:MOST_CASES])


def _agent_called(place: Place, name: str) -> Agent | None:
    rows = AgentName.objects.filter(project=place.project, key=agent_key(name))
    row = rows.select_related("agent").first()
    return None if row is None else row.agent
