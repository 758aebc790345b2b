"""What is asked of the agents of a system and of its outcomes, for scoring its traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from apps.engine.agent_contracts import (
    CompiledContract,
    OutcomeExpectation,
    Unread,
    UnreadContract,
)
from apps.engine.agent_names import agent_key
from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.extraction import AUTOMATIC, DecisionSpec


class AgentAsked(msgspec.Struct, frozen=True):
    """How the decision of one agent is found, and the contracts that it must hold.

    All contracts count. `writing_tools` are names of tools that change something,
    whatever they sound like. What cannot be read stands in its place, and keeps the
    agent from being green.
    """

    decision: DecisionSpec | Unread = AUTOMATIC
    contracts: tuple[CompiledContract | UnreadContract, ...] = ()
    writing_tools: frozenset[str] = frozenset()

    @property
    def unread(self) -> tuple[str, ...]:
        """A sentence for each part that cannot be read."""
        decision = [self.decision] if isinstance(self.decision, Unread) else []
        contracts = [
            one.unread for one in self.contracts if isinstance(one, UnreadContract)
        ]
        return tuple([one.sentence for one in (*decision, *contracts)])


NOTHING = AgentAsked()
"""What is asked of an agent of which nobody asked anything."""


class Asked(msgspec.Struct, frozen=True):
    """Everything that is asked of a system.

    `names` give recorded keys to agents of another key, `agents` are by the key of the
    agent. `decision` is that of the whole system. `expectations` are of the outcomes
    of tasks by name or pattern, the closest one counts. `facts` were declared as planted, by an id.
    """

    names: Mapping[str, str] = {}
    agents: Mapping[str, AgentAsked] = {}
    decision: DecisionSpec | Unread = AUTOMATIC
    expectations: Mapping[str, OutcomeExpectation | Unread] = {}
    facts: Sequence[tuple[str, FactSpec]] = ()

    def agent_of(self, recorded: str) -> str:
        """The key of the agent that a recorded name stands for."""
        key = agent_key(recorded)
        return self.names.get(key, key)

    def of(self, agent: str) -> AgentAsked:
        """What is asked of the agent with this key."""
        return self.agents.get(agent, NOTHING)
