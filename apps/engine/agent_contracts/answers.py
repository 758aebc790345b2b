"""What a contract says of one invocation, and all contracts of all of an agent's."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from apps.engine.agent_contracts.spec import Kind


class ContractState(StrEnum):
    """What a contract says of an invocation. Undecided is never held."""

    HELD = "held"
    BROKEN = "broken"
    DOES_NOT_APPLY = "does_not_apply"
    UNDECIDED = "undecided"


class ContractAnswer(msgspec.Struct, frozen=True):
    """What a contract says of one invocation, in a sentence.

    `step` is the `seq` of the step to look at, where one is known. `expected` and
    `found` are short texts for a table; `found` is empty where nothing was read.
    """

    state: ContractState
    sentence: str
    step: int | None = None
    expected: str = ""
    found: str = ""


class JudgedContract(msgspec.Struct, frozen=True):
    """The answer of one contract about one invocation.

    `contract` is the place of the contract in the list that was asked, from 0, as names
    may be the same; `invocation` the number in the trace, `None` for what no invocation
    owns or the whole trace. `kind` is `None` for a contract that cannot be read.
    """

    contract: int
    name: str
    kind: Kind | None
    invocation: int | None
    answer: ContractAnswer


class Counts(msgspec.Struct, frozen=True):
    """How many answers there are of each state."""

    held: int = 0
    broken: int = 0
    does_not_apply: int = 0
    undecided: int = 0

    @property
    def applied(self) -> int:
        """How many contracts were asked something and were, or might be, decided."""
        return self.held + self.broken + self.undecided

    @property
    def state(self) -> ContractState:
        """The four in one: one broken breaks, one undecided leaves it undecided."""
        if self.broken:
            return ContractState.BROKEN
        if self.undecided:
            return ContractState.UNDECIDED
        return ContractState.HELD if self.held else ContractState.DOES_NOT_APPLY


class AgentJudgement(msgspec.Struct, frozen=True):
    """Every contract of an agent about every invocation of it in one trace.

    `entries` has one for each pair, contract after contract; none replaces another.
    """

    agent: str
    contracts: int
    entries: tuple[JudgedContract, ...]

    @property
    def counts(self) -> Counts:
        """The answers of all contracts that can be read.

        One that cannot be is open as a whole: its answers would only make the shares
        of the others smaller, so they stand in `by_contract` alone.
        """
        return counted(
            entry.answer.state for entry in self.entries if entry.kind is not None
        )

    def counts_of(self, contract: int) -> Counts:
        """The answers of the contract at this place of the list."""
        return counted(
            entry.answer.state for entry in self.entries if entry.contract == contract
        )

    @property
    def by_contract(self) -> tuple[Counts, ...]:
        """The answers of each contract, in the order of the list."""
        states: list[list[ContractState]] = [[] for _ in range(self.contracts)]
        for entry in self.entries:
            states[entry.contract].append(entry.answer.state)
        return tuple([counted(each) for each in states])


def counted(states: Iterable[ContractState]) -> Counts:
    """How many there are of each state."""
    found = list(states)
    return Counts(
        held=found.count(ContractState.HELD),
        broken=found.count(ContractState.BROKEN),
        does_not_apply=found.count(ContractState.DOES_NOT_APPLY),
        undecided=found.count(ContractState.UNDECIDED),
    )
