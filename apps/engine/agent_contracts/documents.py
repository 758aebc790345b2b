"""Agents with their contracts, and the outcomes that tasks expect, as one YAML file.

    evalsite: 1
    agents:
      router:
        decision: {kind: jmespath, expression: route}
        contracts:
          - {name: route is known, kind: one_of, subject: decision, values: [a, b]}
    tasks:
      "refund *": {expect: share, at_least: 0.8}

A file is taken as a whole or not at all; what is wrong is told with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from apps.engine.agent_contracts.decoding import MOST_CONTRACTS, decoded_agent_contract
from apps.engine.agent_contracts.outcomes import OutcomeExpectation, decoded_expectation
from apps.engine.agent_contracts.plain import refuse_unless_plain
from apps.engine.agent_contracts.plain_yaml import BadYaml, read_yaml, write_yaml
from apps.engine.agent_contracts.spec import AgentContractSpec, canonical
from apps.engine.agent_contracts.unread import Unread
from apps.engine.contracts.patterns import LONGEST_PATTERN
from apps.engine.contracts.spec import BadDefinition
from apps.engine.extraction import (
    AUTOMATIC,
    BadDecision,
    DecisionSpec,
    decoded_decision,
    encoded,
)

VERSION: Final = 1
MOST_AGENTS: Final = 500
MOST_TASKS: Final = 2_000
MOST_PROBLEMS: Final = 50
LONGEST_AGENT: Final = 200


class AgentContracts(msgspec.Struct, frozen=True):
    """What a file says of one agent; `decision` is `None` where it says nothing of it."""

    decision: DecisionSpec | None = None
    contracts: tuple[AgentContractSpec, ...] = ()


class ContractsFile(msgspec.Struct, frozen=True):
    """What a file says of agents by their names, and of tasks by names or patterns."""

    agents: dict[str, AgentContracts] = {}
    tasks: dict[str, OutcomeExpectation] = {}


class StoredAgent(msgspec.Struct, frozen=True):
    """What is stored of one agent, also what cannot be read any more."""

    decision: DecisionSpec | Unread | None = None
    contracts: tuple[AgentContractSpec | Unread, ...] = ()


class StoredDefinitions(msgspec.Struct, frozen=True):
    """What is stored of agents and tasks; reading its file refuses what is unread."""

    agents: Mapping[str, StoredAgent] = {}
    tasks: Mapping[str, OutcomeExpectation | Unread] = {}


class BadContractsFile(ValueError):
    """A file of which nothing is taken; `problems` are sentences, each with its place."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems[:MOST_PROBLEMS])
        super().__init__(" ".join(self.problems))


class _Problem(Exception):
    """One thing that is wrong with a file, in a sentence with its place."""


def contracts_from_yaml(text: str) -> ContractsFile:
    """What the file says; raises `BadContractsFile` with everything that is wrong."""
    try:
        value = read_yaml(text)
    except BadYaml as error:
        raise BadContractsFile([str(error)]) from None
    problems: list[str] = []
    try:
        agents, tasks = _parts(value)
    except _Problem as error:
        raise BadContractsFile([str(error)]) from None
    found = ContractsFile(
        agents={name: _agent(name, held, problems) for name, held in agents.items()},
        tasks=dict(_expectations(tasks, problems)),
    )
    if problems:
        raise BadContractsFile(problems)
    return found


def contracts_to_yaml(contracts: ContractsFile | StoredDefinitions) -> str:
    """The file that says this; reading it gives the same again.

    What cannot be read is written as it is stored.
    """
    agents = {name: _written(agent) for name, agent in contracts.agents.items()}
    tasks = {name: _expected(one) for name, one in contracts.tasks.items()}
    document: dict[str, Any] = {"evalsite": VERSION}
    if agents:
        document["agents"] = agents
    if tasks:
        document["tasks"] = tasks
    return write_yaml(document)


def _expected(one: OutcomeExpectation | Unread) -> Any:
    if not isinstance(one, Unread):
        return canonical(one)
    if not isinstance(one.stored, dict):
        return one.stored
    return {name: value for name, value in one.stored.items() if name != "task"}


def _written(agent: AgentContracts | StoredAgent) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if isinstance(agent.decision, Unread):
        written["decision"] = agent.decision.stored
    elif agent.decision is not None:
        usual = encoded(AUTOMATIC)
        # The kind is always written, so that a decision is never an empty object.
        written["decision"] = {
            name: value
            for name, value in encoded(agent.decision).items()
            if name == "kind" or value != usual[name]
        }
    if agent.contracts:
        written["contracts"] = [_contract(one) for one in agent.contracts]
    return written


def _contract(spec: AgentContractSpec | Unread) -> Any:
    """The name first, as a person would write it."""
    if isinstance(spec, Unread):
        return spec.stored
    value = canonical(spec)
    return {"name": value.pop("name"), **value}


def _parts(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if not isinstance(value, dict):
        raise _Problem("The file must hold “evalsite: 1”, agents and tasks.")
    version = value.get("evalsite")
    if version != VERSION or isinstance(version, bool):
        raise _Problem(f"The file must say “evalsite: {VERSION}”, its version.")
    for name in value:
        if name not in {"evalsite", "agents", "tasks"}:
            raise _Problem(f"“{str(name)[:60]}” is no part of such a file.")
    agents = _named(value.get("agents"), "agents", MOST_AGENTS, LONGEST_AGENT)
    return agents, _named(value.get("tasks"), "tasks", MOST_TASKS, LONGEST_PATTERN)


def _named(value: Any, what: str, most: int, longest: int) -> dict[str, Any]:
    """An object by names; nothing where the file leaves it out."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Problem(f"“{what}” must hold names, each with what is said of it.")
    if len(value) > most:
        raise _Problem(f"“{what}” may hold at most {most:,} names.")
    for name in value:
        if not isinstance(name, str):
            raise _Problem(f"“{what}”: put the name {str(name)[:60]} in quotes.")
        if not name.strip() or len(name) > longest:
            raise _Problem(f"“{what}”: a name has 1 to {longest} characters.")
        try:
            refuse_unless_plain(name)
        except BadDefinition as error:
            raise _Problem(f"“{what}”: {error}") from None
    return value


def _agent(name: str, value: Any, problems: list[str]) -> AgentContracts:
    place = f"Agent “{name[:60]}”"
    if not isinstance(value, dict):
        problems.append(f"{place}: say its decision, its contracts, or both.")
        return AgentContracts()
    strangers = [str(key)[:60] for key in value if key not in {"decision", "contracts"}]
    problems += [f"{place}: “{key}” is not said of an agent." for key in strangers]
    return AgentContracts(
        decision=_decision(place, value.get("decision"), problems),
        contracts=tuple(_contracts(place, value.get("contracts"), problems)),
    )


def _decision(place: str, value: Any, problems: list[str]) -> DecisionSpec | None:
    if value is None:
        return None
    try:
        refuse_unless_plain(value)
        return decoded_decision(value)
    except (BadDecision, BadDefinition) as error:
        problems.append(_told(f"{place}, decision", error.field, str(error)))
    return None


def _contracts(
    place: str, value: Any, problems: list[str]
) -> Iterator[AgentContractSpec]:
    if value is None:
        return
    if not isinstance(value, list):
        problems.append(f"{place}: its contracts must be a list.")
        return
    if len(value) > MOST_CONTRACTS:
        problems.append(f"{place}: an agent has at most {MOST_CONTRACTS} contracts.")
        return
    for number, one in enumerate(value, start=1):
        try:
            yield decoded_agent_contract(one)
        except BadDefinition as error:
            named = one.get("name") if isinstance(one, dict) else None
            called = f" (“{named[:60]}”)" if isinstance(named, str) else ""
            where = f"{place}, contract {number}{called}"
            problems.append(_told(where, error.field, str(error)))


def _expectations(
    tasks: dict[str, Any], problems: list[str]
) -> Iterator[tuple[str, OutcomeExpectation]]:
    for name, value in tasks.items():
        try:
            yield name, decoded_expectation(value)
        except BadDefinition as error:
            problems.append(_told(f"Task “{name[:60]}”", error.field, str(error)))


def _told(place: str, field: str, sentence: str) -> str:
    where = f"{place}, field “{field}”" if field else place
    return f"{where}: {sentence}"
