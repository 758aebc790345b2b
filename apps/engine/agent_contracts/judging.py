"""Contracts asked of what an agent did: every contract of every invocation.

A contract asks nothing of other tasks and other inputs than it names: it does not apply
there. Where it cannot be said whether it applies, or holds, it is undecided, and
undecided is never held. An invocation that is recorded to have ended in an error and
gave no output breaks every contract over its output or its decision that applies to it:
errors stay in the denominator. It is undecided instead where the recording ends before
the invocation does, and where no texts were kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from apps.engine.agent_contracts.answers import (
    AgentJudgement,
    ContractAnswer,
    ContractState,
    JudgedContract,
)
from apps.engine.agent_contracts.conditions import Condition
from apps.engine.agent_contracts.rules import (
    ExpressionRule,
    ValueRule,
    gave_nothing,
    not_decided,
    rule_of,
    sentence,
)
from apps.engine.agent_contracts.seen import GaveNothing, Seen
from apps.engine.agent_contracts.spec import AgentContractSpec, Kind
from apps.engine.agent_contracts.temporal import TemporalRule
from apps.engine.agent_contracts.unread import Unread
from apps.engine.agent_contracts.wording import cut, names_in
from apps.engine.conduct import Conduct, InvocationConduct
from apps.engine.contracts.budget import MOST_PER_TRACE, Budget, BudgetSpent, Undecided
from apps.engine.contracts.patterns import Names
from apps.engine.extraction import AUTOMATIC, DecisionSpec

_SPENT = "the contract needs more work on this trace than a contract may cost"


class CompiledContract:
    """A contract that was compiled once, to be asked of many invocations."""

    def __init__(self, spec: AgentContractSpec) -> None:
        """Raises `BadDefinition` with the field and a sentence."""
        self.spec = spec
        self._tasks = Names(spec.tasks) if spec.tasks else None
        self._applies = (
            Condition(spec.applies_when, field="applies_when", of_input_only=True)
            if spec.applies_when is not None
            else None
        )
        self._when = (
            Condition(spec.when, field="when", of_input_only=False)
            if spec.when is not None
            else None
        )
        self._rule = _rule_of(spec)

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name

    @property
    def kind(self) -> Kind | None:
        """What kind of thing it asks."""
        return self.spec.kind

    def answer(self, seen: Seen, budget: Budget | None = None) -> ContractAnswer:
        """What it says of one invocation. Never raises for recorded values."""
        budget = Budget() if budget is None else budget
        try:
            refusal = self._why_not_asked(seen, budget)
            return self._rule.answer(seen, budget) if refusal is None else refusal
        except Undecided as error:
            return not_decided(str(error), self._rule.expected, None)
        except BudgetSpent:
            return not_decided(_SPENT, self._rule.expected, None)
        except GaveNothing as error:
            return gave_nothing(error, self._rule.expected, seen)

    def _why_not_asked(self, seen: Seen, budget: Budget) -> ContractAnswer | None:
        if self._tasks is not None and not self._tasks.take(seen.task):
            named = names_in(self.spec.tasks)
            return self._not_asked(f"the contract is about tasks named {named} only")
        spec = self.spec
        for condition, when in (
            (self._applies, spec.applies_when),
            (self._when, spec.when),
        ):
            if condition is None or when is None:
                continue
            try:
                holds = condition.holds(seen, budget)
            except (Undecided, GaveNothing) as error:
                why = str(error).rstrip(".")
                return not_decided(
                    f"whether the contract applies is not known ({why})",
                    self._rule.expected,
                    None,
                )
            if not holds:
                return self._not_asked(
                    f"“{cut(when.expression)}” is not true here, so nothing is asked"
                )
        return None

    def _not_asked(self, why: str) -> ContractAnswer:
        return ContractAnswer(
            ContractState.DOES_NOT_APPLY, sentence(why), None, self._rule.expected
        )


class UnreadContract:
    """A stored contract that cannot be read: undecided about every invocation."""

    kind: Kind | None = None

    def __init__(self, unread: Unread, *, name: str) -> None:
        self.unread = unread
        self.name = name

    def answer(self, seen: Seen, budget: Budget | None = None) -> ContractAnswer:  # noqa: ARG002
        """That nothing is known, and why."""
        return ContractAnswer(ContractState.UNDECIDED, self.unread.sentence)


def _rule_of(spec: AgentContractSpec) -> ValueRule | ExpressionRule | TemporalRule:
    if spec.temporal is not None:
        return TemporalRule(spec.temporal)
    if spec.then is not None:
        return rule_of(spec.then, field="then")
    return rule_of(spec)


def compiled(spec: AgentContractSpec) -> CompiledContract:
    """The contract, ready to be asked; raises `BadDefinition`."""
    return CompiledContract(spec)


def judge(
    conduct: Conduct,
    contracts: Sequence[CompiledContract | UnreadContract],
    *,
    decision: DecisionSpec | Unread = AUTOMATIC,
    task: str | None = None,
) -> AgentJudgement:
    """What every contract says of every invocation of an agent in one trace.

    `decision` says how contracts over the decision find it, `task` is the task of the
    trace. One contract may cost 500 million units of work on one trace; invocations
    after that are undecided. Never raises for recorded values.
    """
    seen = [Seen(one, decision=decision, task=task) for one in conduct.invocations]
    entries: list[JudgedContract] = []
    for place, contract in enumerate(contracts):
        budget = Budget(MOST_PER_TRACE)
        entries += [
            JudgedContract(
                contract=place,
                name=contract.name,
                kind=contract.kind,
                invocation=one.one.number,
                answer=contract.answer(one, budget),
            )
            for one in seen
        ]
    return AgentJudgement(conduct.agent, len(contracts), tuple(entries))


def judged_alone(
    one: InvocationConduct,
    contract: CompiledContract,
    *,
    decision: DecisionSpec = AUTOMATIC,
    task: str | None = None,
) -> ContractAnswer:
    """What one contract says of one invocation, as for a preview."""
    return contract.answer(Seen(one, decision=decision, task=task))
