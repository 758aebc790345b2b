"""What is asked of the agents of a project, as the engine knows it, under one name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from apps.agents.models import Agent, AgentDefinition, OutcomeDefinition
from apps.agents.queries import Definitions, definitions_of
from apps.engine.agent_contracts import (
    AgentContractSpec,
    CompiledContract,
    Unread,
    UnreadContract,
    compiled,
    named,
    stored_contracts,
    stored_decision,
    stored_expectations,
    unread_in,
)
from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.contracts.spec import canonical
from apps.engine.extraction import AUTOMATIC
from apps.engine.trials.asked import AgentAsked, Asked

VERSION = 5
"""Raised when the rules of scoring change, so that every trace is scored again."""


class ProjectAsked:
    """What is asked in a project; `name` changes with it, 16 hexadecimal digits."""

    def __init__(
        self,
        definitions: Definitions,
        facts: Sequence[tuple[str, FactSpec]],
        unread_facts: Sequence[Unread] = (),
    ) -> None:
        self.definitions = definitions
        self._facts = facts
        self._unread_facts = unread_facts

    @cached_property
    def name(self) -> str:
        """By which rules traces are scored.

        It changes when a release begins or ceases to read a part. What is stored is
        read once in a process for that.
        """
        facts = [[slug, canonical(fact)] for slug, fact in self._facts]
        stamp = [VERSION, self.definitions.stamp, facts]
        unread = [
            *(said for row in self._rows for said in unread_of(row)),
            *self.unread_of_whole,
        ]
        encoded = msgspec.json.encode(
            [*stamp, unread] if unread else stamp, order="deterministic"
        )
        return hashlib.sha256(encoded).hexdigest()[:16]

    @property
    def unread_of_whole(self) -> tuple[str, ...]:
        """A sentence for each part that cannot be read and is of no one agent."""
        facts = [one.sentence for one in self._unread_facts]
        return (*unread_of(self.definitions.outcome), *facts)

    @property
    def _rows(self) -> list[AgentDefinition]:
        return [row for _, row in sorted(self.definitions.asked.items())]

    @cached_property
    def asked(self) -> Asked:
        """What is asked, compiled; what cannot be read stands in its place."""
        return _asked(self.definitions, self._facts)


def asked_in(
    project_id: int,
    facts: Sequence[tuple[str, FactSpec]] = (),
    unread_facts: Sequence[Unread] = (),
) -> ProjectAsked:
    """What is asked in a project at present: three queries.

    `facts` are those that its planted-fact checks declare, by their slug;
    `unread_facts` those that cannot be read.
    """
    return ProjectAsked(definitions_of(project_id), facts, unread_facts)


def unread_of(row: AgentDefinition | OutcomeDefinition | None) -> tuple[str, ...]:
    """A sentence for each part of a version that this release cannot read."""
    if row is None:
        return ()
    is_of_agent = isinstance(row, AgentDefinition)
    stored = msgspec.json.encode([row.decision, row.held])
    return _unread(stored, row.number, is_of_agent=is_of_agent)


@lru_cache(maxsize=4_096)
def _unread(stored: bytes, version: int, *, is_of_agent: bool) -> tuple[str, ...]:
    decision, held = msgspec.json.decode(stored)
    parts: list[Any] = [stored_decision(decision, version=version)]
    if is_of_agent:
        parts += stored_contracts(held, version=version)
    else:
        parts += stored_expectations(held, version=version).values()
    return tuple([one.sentence for one in unread_in(parts)])


def _asked(stored: Definitions, facts: Sequence[tuple[str, FactSpec]]) -> Asked:
    keys = {pk: agent.key for pk, agent in stored.agents.items()}
    outcome = stored.outcome
    said = Asked(
        names={key: keys[pk] for key, pk in stored.names.items() if keys[pk] != key},
        agents={
            agent.key: _of_agent(stored, agent) for agent in stored.agents.values()
        },
        facts=tuple(facts),
    )
    if outcome is None:
        return said
    number = outcome.number
    return msgspec.structs.replace(
        said,
        decision=stored_decision(outcome.decision, version=number),
        expectations=stored_expectations(outcome.held, version=number),
    )


def _of_agent(stored: Definitions, agent: Agent) -> AgentAsked:
    row = stored.asked.get(agent.pk)
    writing = frozenset(agent.writing_tools)
    if row is None:
        return AgentAsked(decision=AUTOMATIC, writing_tools=writing)
    return AgentAsked(
        decision=stored_decision(row.decision, version=row.number),
        contracts=tuple(map(_contract, stored_contracts(row.held, version=row.number))),
        writing_tools=writing,
    )


def _contract(spec: AgentContractSpec | Unread) -> CompiledContract | UnreadContract:
    if isinstance(spec, Unread):
        return UnreadContract(spec, name=named(spec.stored))
    return compiled(spec)
