"""A temporal contract over the steps of one invocation.

The engine's own temporal contracts are asked, of a trace that holds nothing else. Where
a step is undecided that could have broken it, the contract is undecided, not held.
"""

from __future__ import annotations

import msgspec

from apps.engine.agent_contracts.answers import ContractAnswer, ContractState
from apps.engine.agent_contracts.rules import not_decided
from apps.engine.agent_contracts.seen import Seen
from apps.engine.agent_contracts.wording import cut
from apps.engine.check import Answer, Judgement
from apps.engine.contracts.answers import Found, answer_words
from apps.engine.contracts.budget import Budget
from apps.engine.contracts.choosing import Reading, choosers_of, tally_of
from apps.engine.contracts.operators import Tally
from apps.engine.contracts.spec import BadDefinition, ContractSpec, Operator, Scope
from apps.engine.contracts.wording import plain_sentence
from apps.engine.trace import StepStatus


class TemporalRule:
    """A temporal contract, compiled once."""

    def __init__(self, contract: ContractSpec) -> None:
        """Raises `BadDefinition` naming the part of `temporal` that is wrong."""
        self._spec = msgspec.structs.replace(contract, scope=Scope.INVOCATION)
        try:
            self._choosers = choosers_of(self._spec)
        except BadDefinition as error:
            raise BadDefinition(str(error), field=f"temporal.{error.field}") from None
        self.expected = cut(plain_sentence(self._spec))

    def answer(self, seen: Seen, budget: Budget) -> ContractAnswer:
        """What it says of the invocation's own steps; raises `BudgetSpent`.

        An invocation of which no step is recorded is undecided. Steps before an error
        are judged as they are recorded.
        """
        trace = seen.own_trace()
        if not trace.steps:
            return not_decided("no step is recorded", self.expected, None)
        reading = Reading(trace, trace.steps, budget)
        tally = tally_of(self._spec, self._choosers, reading)
        found = Found(
            tally=tally,
            seqs=tuple([step.seq for step in trace.steps]),
            reasons=dict(sorted(reading.reasons.items())),
            without_body=reading.without_body,
            decided=reading.decided,
            is_unfinished=StepStatus.UNFINISHED
            in {seen.one.status, trace.steps[-1].status},
        )
        said = answer_words(self._spec, found)
        places = tally.breaking or tally.undecided or tally.holding
        return ContractAnswer(
            state=self._state(said, tally),
            sentence=said.reason,
            step=found.seqs[places[0]] if places else None,
            expected=self.expected,
            found=said.headline,
        )

    def _state(self, said: Judgement, tally: Tally) -> ContractState:
        if said.answer is Answer.SIGNAL:
            return ContractState.BROKEN
        if said.answer is Answer.QUIET:
            is_open = bool(tally.undecided) and not self._is_sure(tally)
            return ContractState.UNDECIDED if is_open else ContractState.HELD
        if said.reason_code == "nothing_to_hold" and not tally.undecided:
            return ContractState.DOES_NOT_APPLY
        return ContractState.UNDECIDED

    def _is_sure(self, tally: Tally) -> bool:
        """Whether undecided steps could not break it any more."""
        if self._spec.operator is Operator.EVENTUALLY:
            return bool(tally.holding)
        most = len(tally.holding) + len(tally.undecided)
        return self._spec.operator is Operator.AT_MOST and most <= self._spec.n
