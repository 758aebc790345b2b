"""What a file of contracts asks of agents and of outcomes, for scoring traces."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from apps.engine.agent_contracts import (
    BadContractsFile,
    ContractsFile,
    compiled,
    contracts_from_yaml,
)
from apps.engine.agent_names import agent_key
from apps.engine.extraction import AUTOMATIC
from apps.engine.trials import AgentAsked, Asked
from evalsite.walking import name_in_words

LARGEST: Final = 1_000_000


class CannotAsk(Exception):
    """The file is not used; each of `problems` is a sentence for a person."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__(" ".join(problems))


def asked_in_file(path: Path) -> tuple[Asked, dict[str, str]]:
    """What the file asks, and how it calls the agents by their keys.

    Of two names that are spelled alike all contracts count. Raises `CannotAsk`.
    """
    named = name_in_words(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise CannotAsk((f"{named} cannot be opened: {error.strerror}.",)) from None
    if len(data) > LARGEST:
        raise CannotAsk((f"{named} is larger than {LARGEST:,} bytes.",))
    try:
        found = contracts_from_yaml(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise CannotAsk((f"{named} is no text in UTF-8.",)) from None
    except BadContractsFile as error:
        raise CannotAsk(tuple([f"{named}: {one}" for one in error.problems])) from None
    return _asked(found, named)


def _asked(found: ContractsFile, file: str) -> tuple[Asked, dict[str, str]]:
    agents: dict[str, AgentAsked] = {}
    names: dict[str, str] = {}
    for name, said in found.agents.items():
        key = agent_key(name)
        earlier = agents.get(key, AgentAsked())
        decision = said.decision or earlier.decision
        if AUTOMATIC != earlier.decision != decision:
            raise CannotAsk(
                (
                    f"{file}: “{names[key]}” and “{name}” are one agent and have two "
                    "decisions. Give it one.",
                )
            )
        agents[key] = AgentAsked(
            decision=decision,
            contracts=(*earlier.contracts, *map(compiled, said.contracts)),
        )
        names.setdefault(key, name)
    return Asked(agents=agents, expectations=found.tasks), names
