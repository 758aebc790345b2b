"""What is asked of the agents of a project, as the engine knows it, under one name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from apps.agents.models import Agent
from apps.agents.queries import Definitions, definitions_of
from apps.engine.agent_contracts import (
    OutcomeExpectation,
    compiled,
    decoded_agent_contract,
    decoded_expectation,
)
from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.contracts.spec import canonical
from apps.engine.extraction import AUTOMATIC, DecisionSpec, decoded_decision
from apps.engine.trials.asked import AgentAsked, Asked

VERSION = 4
"""Raised when the rules of scoring change, so that every trace is scored again."""


class ProjectAsked:
    """What is asked in a project; `name` changes with it, 16 hexadecimal digits."""

    def __init__(
        self, definitions: Definitions, facts: Sequence[tuple[str, FactSpec]]
    ) -> None:
        self.definitions = definitions
        self._facts = facts

    @cached_property
    def name(self) -> str:
        """By which rules traces are scored; asking for it compiles nothing."""
        facts = [[slug, canonical(fact)] for slug, fact in self._facts]
        stamp = [VERSION, self.definitions.stamp, facts]
        encoded = msgspec.json.encode(stamp, order="deterministic")
        return hashlib.sha256(encoded).hexdigest()[:16]

    @cached_property
    def asked(self) -> Asked:
        """What is asked, compiled."""
        return _asked(self.definitions, self._facts)


def asked_in(
    project_id: int, facts: Sequence[tuple[str, FactSpec]] = ()
) -> ProjectAsked:
    """What is asked in a project at present: three queries.

    `facts` are those that its planted-fact checks declare, by their slug.
    """
    return ProjectAsked(definitions_of(project_id), facts)


def _asked(stored: Definitions, facts: Sequence[tuple[str, FactSpec]]) -> Asked:
    keys = {pk: agent.key for pk, agent in stored.agents.items()}
    outcome = stored.outcome
    return Asked(
        names={key: keys[pk] for key, pk in stored.names.items() if keys[pk] != key},
        agents={
            agent.key: _of_agent(stored, agent) for agent in stored.agents.values()
        },
        decision=_decision(None if outcome is None else outcome.decision),
        expectations=_expectations(() if outcome is None else outcome.expectations),
        facts=tuple(facts),
    )


def _of_agent(stored: Definitions, agent: Agent) -> AgentAsked:
    row = stored.asked.get(agent.pk)
    return AgentAsked(
        decision=_decision(None if row is None else row.decision),
        contracts=tuple(
            [
                compiled(decoded_agent_contract(one))
                for one in (() if row is None else row.contracts)
            ]
        ),
        writing_tools=frozenset(agent.writing_tools),
    )


def _decision(value: dict[str, Any] | None) -> DecisionSpec:
    return AUTOMATIC if value is None else decoded_decision(value)


def _expectations(rows: Sequence[dict[str, Any]]) -> dict[str, OutcomeExpectation]:
    found = {}
    for row in rows:
        said = dict(row)
        task = str(said.pop("task", "*"))
        found[task] = decoded_expectation(said)
    return found
