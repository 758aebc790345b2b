"""Choosing the steps that a selector names, and keeping what was read for it."""

from __future__ import annotations

import hashlib
from collections import Counter

import msgspec

from apps.engine.contracts import operators
from apps.engine.contracts.budget import Budget, Undecided
from apps.engine.contracts.conditions import Asked, NoBody
from apps.engine.contracts.operators import Known, Tally
from apps.engine.contracts.patterns import Names
from apps.engine.contracts.spec import (
    ContractSpec,
    Operator,
    Selector,
    selectors_of,
)
from apps.engine.contracts.views import agent_of, model_of, name_of
from apps.engine.trace import Step, Trace


class Reading:
    """What was read of one scope of a trace, what it cost, and what was undecided."""

    def __init__(self, trace: Trace, steps: tuple[Step, ...], budget: Budget) -> None:
        self.trace = trace
        self.steps = steps
        self.budget = budget
        self.reasons: Counter[str] = Counter()
        self.without_body = 0
        self.decided = 0
        self._digest = hashlib.sha256()

    def read(self, content: bytes) -> None:
        """Add to the hash of what was read."""
        self._digest.update(len(content).to_bytes(8, "big") + content)

    @property
    def input_hash(self) -> str:
        """The SHA-256 (hex) of the structure and of what the conditions looked at."""
        rows = [
            (
                step.seq,
                step.kind,
                _valid(name_of(step)),
                _valid(agent_of(self.trace, step)),
                step.status,
                _valid(model_of(step)),
            )
            for step in self.steps
        ]
        whole = self._digest.copy()
        whole.update(msgspec.json.encode(rows))
        return whole.hexdigest()


def _valid(text: str | None) -> str | None:
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


class Chooser:
    """A selector that was compiled once."""

    def __init__(self, selector: Selector, *, field: str) -> None:
        """Raises `BadDefinition` with the field and a sentence."""
        self._selector = selector
        self._names = Names(selector.name) if selector.name else None
        self._agents = Names(selector.agent) if selector.agent else None
        self._models = Names(selector.model) if selector.model else None
        self.asked = (
            Asked(selector.condition, field=f"{field}.condition")
            if selector.condition is not None
            else None
        )

    @property
    def reads_bodies(self) -> bool:
        """Whether its condition reads texts."""
        return self.asked is not None and self.asked.reads_bodies

    def takes_agent(self, name: str | None) -> bool:
        """Whether steps of this agent can be chosen."""
        return self._agents is None or self._agents.take(name)

    def choose(self, reading: Reading, only: list[Known] | None = None) -> list[Known]:
        """For each step whether it is chosen; where `only` is false, it is not asked.

        Raises `BudgetSpent`.
        """
        reading.budget.charge(50 * len(reading.steps))
        wanted: list[Known] = [True] * len(reading.steps) if only is None else only
        return [
            self._known(reading, step) if known is not False else False
            for step, known in zip(reading.steps, wanted, strict=True)
        ]

    def _known(self, reading: Reading, step: Step) -> Known:
        if not self._agrees(reading.trace, step):
            return False
        if self.asked is None:
            return True
        try:
            value = self.asked.reads(reading.trace, step)
            reading.budget.charge(value.size)
            reading.read(msgspec.json.encode([step.seq, value.plain]))
            holds = self.asked.holds(value, reading.budget)
        except NoBody as error:
            reading.without_body += 1
            reading.reasons[str(error)] += 1
        except Undecided as error:
            reading.reasons[str(error)] += 1
        else:
            reading.decided += 1
            return holds
        return None

    def _agrees(self, trace: Trace, step: Step) -> bool:
        """Whether the structure of a step is what the selector asks for."""
        selector = self._selector
        if selector.kind and step.kind != selector.kind:
            return False
        if selector.status and step.status != selector.status:
            return False
        if self._names is not None and not self._names.take(name_of(step)):
            return False
        if self._models is not None and not self._models.take(model_of(step)):
            return False
        return self.takes_agent(agent_of(trace, step))


def choosers_of(spec: ContractSpec) -> dict[str, Chooser]:
    """The selectors of a contract, compiled, by the name of their field.

    Raises `BadDefinition` with the field and a sentence.
    """
    return {
        name: Chooser(selector, field=name)
        for name, selector in selectors_of(spec).items()
    }


def tally_of(
    spec: ContractSpec, choosers: dict[str, Chooser], reading: Reading
) -> Tally:
    """What the contract says of each step that was read; raises `BudgetSpent`."""
    chosen = choosers["select"].choose(reading)
    if spec.operator is Operator.ALWAYS:
        return operators.always(chosen, choosers["then"].choose(reading, chosen))
    if spec.operator is Operator.PRECEDES:
        return operators.precedes(chosen, choosers["before"].choose(reading))
    if spec.operator is Operator.AT_MOST:
        return operators.at_most(chosen, spec.n)
    if spec.operator is Operator.EVENTUALLY:
        return operators.eventually(chosen)
    return operators.never(chosen)
