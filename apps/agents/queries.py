"""The agents of a project, and what is asked of them at present."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Lower

from apps.agents.models import (
    Agent,
    AgentDefinition,
    AgentName,
    NameChange,
    OutcomeDefinition,
)


class Definitions(msgspec.Struct, frozen=True):
    """What is asked of the agents of a project and of the whole, as stored.

    `agents` are the agents that a name stands for, `names` their recorded names by
    key, `asked` the definition that counts of each agent that has one.
    """

    agents: dict[int, Agent]
    names: dict[str, int]
    asked: dict[int, AgentDefinition]
    outcome: OutcomeDefinition | None

    @property
    def stamp(self) -> list[Any]:
        """A JSON value that changes whenever scores must be made again.

        An agent that is new in a trace, under its own name, changes nothing for others.
        """
        moved = [(key, pk) for key, pk in self.names.items() if not self._is_own(key)]
        return [
            sorted(moved),
            sorted((pk, row.number) for pk, row in self.asked.items()),
            sorted(
                (pk, agent.writing_tools)
                for pk, agent in self.agents.items()
                if agent.writing_tools
            ),
            0 if self.outcome is None else self.outcome.number,
        ]

    def _is_own(self, key: str) -> bool:
        return self.agents[self.names[key]].key == key


def definitions_of(project_id: int) -> Definitions:
    """What is asked in a project at present: three queries."""
    rows = AgentName.objects.filter(project_id=project_id).select_related("agent")
    names = {row.key: row.agent_id for row in rows}
    agents = {row.agent_id: row.agent for row in rows}
    asked = (
        AgentDefinition.objects.filter(agent__in=agents)
        .order_by("agent_id", "-number")
        .distinct("agent_id")
    )
    return Definitions(
        agents=agents,
        names=names,
        asked={row.agent_id: row for row in asked},
        outcome=outcome_definition(project_id),
    )


def outcome_definition(project_id: int) -> OutcomeDefinition | None:
    """What is asked of the outcomes of a project at present; `None` where nothing is."""
    rows = OutcomeDefinition.objects.filter(project_id=project_id)
    return rows.order_by("-number").first()


def current_definition(agent: Agent) -> AgentDefinition | None:
    """What is asked of one agent at present; `None` where nothing ever was."""
    return AgentDefinition.objects.filter(agent=agent).order_by("-number").first()


def called_apart(agents: Iterable[Agent]) -> dict[int, str]:
    """How people call each agent; those of one name are told apart by their keys."""
    known = list(agents)
    said = Counter(map(str, known))
    return {
        one.pk: str(one) if said[str(one)] == 1 else f"{one} ({one.key or 'no name'})"
        for one in known
    }


def definition_history(agent: Agent) -> list[AgentDefinition]:
    """Everything that was asked of an agent, newest first, with who wrote it."""
    rows = AgentDefinition.objects.filter(agent=agent).select_related("created_by")
    return list(rows.order_by("-number")[:200])


def outcome_history(project_id: int) -> list[OutcomeDefinition]:
    """Everything that was asked of the outcomes of a project, newest first."""
    rows = OutcomeDefinition.objects.filter(project_id=project_id)
    return list(rows.select_related("created_by").order_by("-number")[:200])


def with_a_name(project_id: int) -> QuerySet[Agent]:
    """The agents that a name stands for; those that were merged away have none."""
    names = AgentName.objects.filter(agent=OuterRef("pk"))
    return Agent.objects.filter(Exists(names), project_id=project_id)


def named_agents(project_id: int) -> list[Agent]:
    """The agents that a name stands for, by what people call them."""
    return list(with_a_name(project_id).order_by(Lower("name"), "pk"))


def agent_now(agent: Agent) -> int:
    """The id of the agent that the name of this one stands for now. One query."""
    rows = AgentName.objects.filter(project_id=agent.project_id, key=agent.key)
    return rows.values_list("agent_id", flat=True).first() or agent.pk


def agents_behind(agent_id: int) -> QuerySet[Agent, int]:
    """The ids of an agent and of those that were merged into it, for a query."""
    merged = AgentName.objects.filter(
        agent_id=agent_id, project_id=OuterRef("project_id"), key=OuterRef("key")
    )
    rows = Agent.objects.filter(Q(pk=agent_id) | Exists(merged))
    return rows.values_list("pk", flat=True)


def agents_of_keys(project_id: int, keys: QuerySet[Any]) -> list[Agent]:
    """The agents for which these keys stand now, by name. One query."""
    names = AgentName.objects.filter(project_id=project_id, key__in=keys)
    return list(
        Agent.objects.filter(pk__in=names.values("agent_id")).order_by("name", "pk")
    )


def names_of(agent: Agent) -> list[AgentName]:
    """The recorded names of one agent, by key."""
    return list(AgentName.objects.filter(agent=agent).order_by("key"))


def name_changes(project_id: int, keys: Collection[str]) -> list[NameChange]:
    """When which of these names was given to another agent by hand, newest first."""
    rows = NameChange.objects.filter(project_id=project_id, key__in=keys)
    return list(rows.select_related("changed_by").order_by("-id")[:100])
