"""Finding agents, giving names to them by hand, and writing down what is asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from django.db import transaction

from apps.accounts.models import Project
from apps.agents.models import (
    Agent,
    AgentDefinition,
    AgentName,
    NameChange,
    OutcomeDefinition,
)
from apps.engine.agent_names import LONGEST, agent_key

MOST_CONTRACTS: Final = 100
MOST_AGENTS: Final = 1_000


class Asked(msgspec.Struct, frozen=True):
    """What is asked from now on: canonical JSON of specs that the engine has accepted.

    `held` are the contracts of an agent, or the expectations of outcomes. `decision`
    is `None` for the automatic one.
    """

    decision: dict[str, Any] | None = None
    held: tuple[dict[str, Any], ...] = ()
    note: str = ""


class WrongAgent(ValueError):
    """What was asked of agents and their names cannot be done; says why."""


class AskedMeanwhile(WrongAgent):
    """Somebody else wrote a newer version than the one that was seen."""

    def __init__(self) -> None:
        super().__init__(
            "Somebody changed what is asked since you opened this page. Open it again, "
            "compare, and send yours from there."
        )


def find_agents(
    *, project_id: int, recorded: Iterable[str], now: datetime
) -> dict[str, int]:
    """The agent of each recorded name, by its key; new names become new agents.

    Safe to run by several workers at once. Two statements where all are known.
    """
    names: dict[str, str] = {}
    for name in recorded:
        # The spelling that came first is what people see.
        names.setdefault(agent_key(name), name)
    known = _agents_of(project_id, names)
    new = {key: name for key, name in names.items() if key not in known}
    if not new:
        return known
    Agent.objects.bulk_create(
        [
            Agent(
                project_id=project_id,
                key=key,
                name=" ".join(name.split())[:LONGEST],
                created_at=now,
            )
            for key, name in sorted(new.items())
        ],
        ignore_conflicts=True,
    )
    made = Agent.objects.filter(project_id=project_id, key__in=new)
    AgentName.objects.bulk_create(
        [
            AgentName(project_id=project_id, key=agent.key, agent=agent)
            for agent in made.order_by("key")
        ],
        ignore_conflicts=True,
    )
    return _agents_of(project_id, names)


def _agents_of(project_id: int, names: Mapping[str, str]) -> dict[str, int]:
    rows = AgentName.objects.filter(project_id=project_id, key__in=names)
    return dict(rows.values_list("key", "agent_id"))


def add_agent(*, project_id: int, name: str, now: datetime) -> Agent:
    """An agent that no trace names yet; raises `WrongAgent` where it is here already."""
    words = " ".join(name.replace("\x00", "").split())
    key = agent_key(words)
    if not key or len(words) > LONGEST:
        raise WrongAgent(f"An agent needs a name of 1 to {LONGEST} characters.")
    with transaction.atomic():
        if Agent.objects.filter(project_id=project_id).count() >= MOST_AGENTS:
            raise WrongAgent(f"A project may have at most {MOST_AGENTS:,} agents.")
        agent, _ = Agent.objects.get_or_create(
            project_id=project_id,
            key=key,
            defaults={"name": words, "is_by_hand": True, "created_at": now},
        )
        # A trace or another person may name it at this very moment.
        _, is_new = AgentName.objects.get_or_create(
            project_id=project_id,
            key=key,
            defaults={"agent": agent, "is_by_hand": True},
        )
        if not is_new:
            raise WrongAgent(f"An agent with the name “{words}” is here already.")
    return agent


def remove_agent(*, agent: Agent) -> None:
    """Take an agent that was added by hand out of the inventory.

    Adding one of the same name brings it back with what was asked of it. Raises
    `WrongAgent` for one that was found in traces.
    """
    if not agent.is_by_hand:
        raise WrongAgent(
            f"“{agent}” was found in traces, so it stays. Merge it instead."
        )
    AgentName.objects.filter(agent=agent).delete()


def rename_agent(*, agent: Agent, name: str, description: str, seen: str = "") -> None:
    """Give an agent the name and description that people see; recorded names stay.

    Raises `AskedMeanwhile` where `seen`, if given, is not the stamp of those that it
    has by now.
    """
    words = " ".join(name.replace("\x00", "").split())
    if not words or len(words) > LONGEST:
        raise WrongAgent(f"An agent needs a name of 1 to {LONGEST} characters.")
    about = description.replace("\x00", "").strip()
    with transaction.atomic():
        held = Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)
        if (
            seen
            and seen != held.words_stamp
            and (held.name, held.description)
            != (
                words,
                about,
            )
        ):
            raise AskedMeanwhile
        agent.name, agent.description = words, about
        agent.save(update_fields=["name", "description"])


def name_writing_tools(*, agent: Agent, tools: Sequence[str], seen: str = "") -> None:
    """Say which tools change something, whatever their names sound like.

    Raises `AskedMeanwhile` as `rename_agent` does.
    """
    wanted = sorted({tool.strip() for tool in tools if tool.strip()})
    with transaction.atomic():
        held = Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)
        if seen and seen != held.tools_stamp and held.writing_tools != wanted:
            raise AskedMeanwhile
        agent.writing_tools = wanted
        agent.save(update_fields=["writing_tools"])


def merge_agents(
    *, agent: Agent, into: Agent, user_id: int | None, now: datetime
) -> list[str]:
    """Let every name of `agent` stand for `into`; returns the keys that were moved.

    `agent` keeps its row and definitions, so that `give_name` brings it back.
    """
    if agent.pk == into.pk or agent.project_id != into.project_id:
        raise WrongAgent("Choose another agent of this project.")
    with transaction.atomic():
        rows = list(
            AgentName.objects.select_for_update().filter(agent=agent).order_by("key")
        )
        if not rows:
            raise WrongAgent("This agent has no name left that could be merged.")
        for row in rows:
            _move(row, agent, into, user_id=user_id, now=now)
    return [row.key for row in rows]


def give_name(
    *, project_id: int, key: str, to: Agent, user_id: int | None, now: datetime
) -> None:
    """Let one recorded name stand for another agent: the inverse of a merge, too."""
    with transaction.atomic():
        row = (
            AgentName.objects.select_for_update(of=("self",))
            .select_related("agent")
            .filter(project_id=project_id, key=key)
            .first()
        )
        if row is None or to.project_id != project_id:
            raise WrongAgent("No agent of this project is recorded under that name.")
        if row.agent_id == to.pk:
            raise WrongAgent(f"“{key}” stands for {to} already.")
        _move(row, row.agent, to, user_id=user_id, now=now)


def split_name(
    *, project_id: int, key: str, user_id: int | None, now: datetime
) -> Agent:
    """Let a recorded name be an agent of its own again; returns that agent."""
    if len(key) > LONGEST:
        raise WrongAgent("No agent of this project is recorded under that name.")
    with transaction.atomic():
        agent, _ = Agent.objects.get_or_create(
            project_id=project_id,
            key=key,
            defaults={"name": key, "created_at": now},
        )
        give_name(project_id=project_id, key=key, to=agent, user_id=user_id, now=now)
    return agent


def _move(
    row: AgentName, before: Agent, after: Agent, *, user_id: int | None, now: datetime
) -> None:
    row.agent, row.is_by_hand = after, True
    row.save(update_fields=["agent", "is_by_hand"])
    NameChange.objects.create(
        project_id=row.project_id,
        key=row.key,
        before=before.name,
        after=after.name,
        changed_by_id=user_id,
        changed_at=now,
    )


def define_agent(
    *,
    agent: Agent,
    asked: Asked,
    user_id: int | None,
    now: datetime,
    seen: int | None = None,
) -> AgentDefinition:
    """Write down what an agent decides and must hold from now on.

    The same as before writes nothing and returns the row that counts. Raises
    `WrongAgent` for more contracts than there may be, and `AskedMeanwhile` where the
    version that counts is not `seen` (0: none yet; `None`: it does not matter).
    """
    if len(asked.held) > MOST_CONTRACTS:
        raise WrongAgent(f"An agent may have at most {MOST_CONTRACTS} contracts.")
    with transaction.atomic():
        Agent.objects.select_for_update().get(pk=agent.pk)
        last = AgentDefinition.objects.filter(agent=agent).order_by("-number").first()
        said = (asked.decision, list(asked.held))
        if last is not None and (last.decision, last.contracts) == said:
            return last
        _refuse_late(seen, last)
        return AgentDefinition.objects.create(
            agent=agent,
            number=1 if last is None else last.number + 1,
            decision=asked.decision,
            contracts=list(asked.held),
            note=asked.note,
            created_by_id=user_id,
            created_at=now,
        )


def _refuse_late(
    seen: int | None, last: AgentDefinition | OutcomeDefinition | None
) -> None:
    if seen is not None and seen != (0 if last is None else last.number):
        raise AskedMeanwhile


def define_outcome(
    *,
    project_id: int,
    asked: Asked,
    user_id: int | None,
    now: datetime,
    seen: int | None = None,
) -> OutcomeDefinition:
    """Write down what the whole system decides and must reach from now on.

    As `define_agent`, for the project.
    """
    if len(asked.held) > MOST_CONTRACTS:
        raise WrongAgent(f"There may be at most {MOST_CONTRACTS} expectations.")
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project_id)
        rows = OutcomeDefinition.objects.filter(project_id=project_id)
        last = rows.order_by("-number").first()
        said = (asked.decision, list(asked.held))
        if last is not None and (last.decision, last.expectations) == said:
            return last
        _refuse_late(seen, last)
        return OutcomeDefinition.objects.create(
            project_id=project_id,
            number=1 if last is None else last.number + 1,
            decision=asked.decision,
            expectations=list(asked.held),
            note=asked.note,
            created_by_id=user_id,
            created_at=now,
        )
