"""What is asked of agents and outcomes as a file, and a file as what is asked.

A file replaces the contracts of the agents that it names, and the expectations of the
tasks that it names. What it leaves out stays: other agents, other tasks, and the
decision of an agent of which it says none. It is taken as a whole or not at all.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import datetime
from typing import Any, Final

import msgspec
from django.db import transaction

from apps.agents.changes import Changes, changes_between
from apps.agents.models import Agent
from apps.agents.operations import (
    MOST_AGENTS,
    MOST_CONTRACTS,
    Asked,
    AskedMeanwhile,
    add_agent,
    define_agent,
    define_outcome,
)
from apps.agents.queries import Definitions, definitions_of
from apps.engine.agent_contracts import (
    AgentContracts,
    BadContractsFile,
    ContractsFile,
    StoredAgent,
    StoredDefinitions,
    canonical,
    contracts_to_yaml,
    stored_contracts,
    stored_decision,
    stored_expectations,
    task_of,
)
from apps.engine.agent_names import agent_key
from apps.engine.extraction import AUTOMATIC

LONGEST_NAME: Final = 200
"""Longer names cannot stand in a file."""

Said = tuple[dict[str, Any] | None, list[dict[str, Any]]]


class PlannedAgent(msgspec.Struct, frozen=True):
    """What a file would change of one agent; `pk` is `None` for a new one.

    `number` is that of the version that counts now, 0 where there is none.
    """

    name: str
    pk: int | None
    number: int
    before: Said
    after: Said

    @property
    def changes(self) -> Changes:
        """What is different."""
        return changes_between(self.before, self.after)


class Plan(msgspec.Struct, frozen=True):
    """What a file would change; `stamp` names the file and what counted meanwhile."""

    agents: tuple[PlannedAgent, ...]
    outcome: Said
    outcome_before: Said
    outcome_number: int
    stamp: str

    @property
    def outcome_changes(self) -> Changes:
        """What is different of the expectations."""
        return changes_between(self.outcome_before, self.outcome, name="task")

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        return self.outcome_changes.are_none and not any(
            one.pk is None or not one.changes.are_none for one in self.agents
        )


def yaml_of(project_id: int) -> tuple[str, list[str]]:
    """Everything that is asked in a project as YAML, and the agents left out of it.

    Left out are agents with a name of more than 200 characters. What cannot be read
    any more is written as it is stored.
    """
    stored = definitions_of(project_id)
    names = _file_names(stored)
    agents, left_out = {}, []
    for pk, row in sorted(stored.asked.items(), key=lambda item: names[item[0]]):
        if len(names[pk]) > LONGEST_NAME:
            left_out.append(names[pk])
            continue
        agents[names[pk]] = StoredAgent(
            decision=stored_decision(row.decision, version=row.number),
            contracts=tuple(stored_contracts(row.held, version=row.number)),
        )
    outcome = stored.outcome
    tasks = (
        {}
        if outcome is None
        else stored_expectations(outcome.held, version=outcome.number)
    )
    return contracts_to_yaml(StoredDefinitions(agents, tasks)), left_out


def _file_names(stored: Definitions) -> dict[int, str]:
    """How each agent is called in a file: as people call it, where that is one agent."""
    said = Counter(str(agent) for agent in stored.agents.values())
    return {
        pk: str(agent) if said[str(agent)] == 1 else agent.key
        for pk, agent in stored.agents.items()
    }


def planned(project_id: int, found: ContractsFile) -> Plan:
    """What taking the file would change; raises `BadContractsFile` for what it may not.

    Four queries, however much the file holds.
    """
    stored = definitions_of(project_id)
    names = {name: pk for pk, name in _file_names(stored).items()}
    agents: dict[int | str, PlannedAgent] = {}
    problems = _too_much(stored, found)
    for name, said in found.agents.items():
        pk = names.get(name, stored.names.get(agent_key(name)))
        who: int | str = agent_key(name) if pk is None else pk
        if who in agents:
            problems.append(
                f"“{name[:60]}” and “{agents[who].name[:60]}” are the same agent here."
            )
        agents[who] = _planned_agent(stored, name, pk, said)
    if problems:
        raise BadContractsFile(problems)
    before = _outcome(stored)
    after = {task_of(one): one for one in before[1]}
    after |= {
        task: {"task": task, **canonical(one)} for task, one in found.tasks.items()
    }
    if len(after) > MOST_CONTRACTS:
        raise BadContractsFile(
            [f"“tasks”: there may be at most {MOST_CONTRACTS} expectations in all."]
        )
    return Plan(
        agents=tuple(agents.values()),
        outcome=(before[0], list(after.values())),
        outcome_before=before,
        outcome_number=0 if stored.outcome is None else stored.outcome.number,
        stamp=_stamp(stored, found),
    )


def _too_much(stored: Definitions, found: ContractsFile) -> list[str]:
    problems = [
        f"Agent “{name[:60]}”: an agent may have at most {MOST_CONTRACTS} contracts."
        for name, said in found.agents.items()
        if len(said.contracts) > MOST_CONTRACTS
    ]
    problems += [
        f"Agent “{name[:60]}”: an agent needs a name with a letter or a digit."
        for name in found.agents
        if not agent_key(name)
    ]
    if len(stored.agents) + len(found.agents) > MOST_AGENTS:
        problems.append(f"A project may have at most {MOST_AGENTS:,} agents.")
    return problems


def _planned_agent(
    stored: Definitions, name: str, pk: int | None, said: AgentContracts
) -> PlannedAgent:
    row = None if pk is None else stored.asked.get(pk)
    before: Said = (None, []) if row is None else (row.decision, row.held)
    decision = before[0]
    if said.decision is not None:
        is_usual = said.decision == AUTOMATIC
        decision = None if is_usual else canonical(said.decision)
    return PlannedAgent(
        name=name if pk is None else str(stored.agents[pk]),
        pk=pk,
        number=0 if row is None else row.number,
        before=before,
        after=(decision, [canonical(one) for one in said.contracts]),
    )


def _outcome(stored: Definitions) -> Said:
    row = stored.outcome
    return (None, []) if row is None else (row.decision, row.held)


def _stamp(stored: Definitions, found: ContractsFile) -> str:
    """Changes whenever something is asked differently, and with the file."""
    said = msgspec.json.encode([stored.stamp, contracts_to_yaml(found)])
    return hashlib.sha256(said).hexdigest()[:16]


def take_file(
    *,
    project_id: int,
    found: ContractsFile,
    seen: str,
    user_id: int | None,
    now: datetime,
) -> Plan:
    """Write everything that the file says, in one transaction; returns what changed.

    `seen` is the stamp of the plan that somebody looked at. Raises `AskedMeanwhile`
    where the file or what counts is another one by now, `BadContractsFile` and
    `WrongAgent` for what may not be. Safe to run twice: the second time nothing
    changes.
    """
    with transaction.atomic():
        plan = planned(project_id, found)
        if plan.stamp != seen:
            raise AskedMeanwhile
        for one in plan.agents:
            agent = (
                add_agent(project_id=project_id, name=one.name, now=now)
                if one.pk is None
                else Agent.objects.get(pk=one.pk, project_id=project_id)
            )
            if one.before != one.after:
                define_agent(
                    agent=agent,
                    asked=_asked(one.after),
                    user_id=user_id,
                    now=now,
                    seen=None if one.pk is None else one.number,
                )
        if plan.outcome != plan.outcome_before:
            define_outcome(
                project_id=project_id,
                asked=_asked(plan.outcome),
                user_id=user_id,
                now=now,
                seen=plan.outcome_number,
            )
    return plan


def _asked(said: Said) -> Asked:
    return Asked(decision=said[0], held=tuple(said[1]), note="From a file.")
