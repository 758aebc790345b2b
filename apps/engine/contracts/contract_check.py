"""A temporal contract that a project defines, as a check.

It says that recorded steps break what the project asks for. It does not say that the
outcome is wrong, nor that the contract is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from apps.engine.check import Evidence, Screening
from apps.engine.contracts.answers import Found, answer_words, not_asked, spent
from apps.engine.contracts.budget import MOST_PER_TRACE, Budget, BudgetSpent
from apps.engine.contracts.choosing import (
    Chooser,
    Reading,
    choosers_of,
    tally_of,
)
from apps.engine.contracts.defined import DefinedCheck
from apps.engine.contracts.spec import (
    ContractSpec,
    Operator,
    Scope,
)
from apps.engine.contracts.wording import plain_sentence
from apps.engine.sequences import steps_in_order
from apps.engine.trace import AgentInvocation, OrderSource, Step, StepStatus, Trace

_MOST_STEPS_SHOWN: Final = 500


@dataclass(frozen=True)
class ContractCheck(DefinedCheck[ContractSpec]):
    """Whether each trace, or each agent invocation, does what a contract asks."""

    units: int = MOST_PER_TRACE
    _choosers: dict[str, Chooser] = field(init=False, repr=False, compare=False)

    kind = "contract"
    null_model = (
        "None: a contract is what this project asks for, and a step that breaks it is a "
        "recorded fact, not a statistic."
    )
    next_step = (
        "Open the steps that break it. Confirm the signal if the system did what it "
        "must not do. Dismiss it, or change the contract, if the contract asks too much."
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_choosers", choosers_of(self.spec))

    @property
    def observes(self) -> str:
        """The contract in plain English."""
        return f"Whether this holds. {plain_sentence(self.spec)}"

    @property
    def material_when(self) -> str:
        """What breaks the contract, and what is left undecided."""
        breaks = _BREAKS[self.spec.operator].format(n=self.spec.n)
        return (
            f"{breaks} A step of which a condition cannot be decided, as what it reads "
            "was not recorded, breaks nothing and is counted."
        )

    @property
    def needs_bodies(self) -> bool:
        """Whether a condition reads texts."""
        return any(chooser.reads_bodies for chooser in self._choosers.values())

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer about the trace, or one about each agent invocation."""
        budget = Budget(self.units)
        steps = steps_in_order(trace)
        if self.spec.scope is Scope.TRACE:
            yield self._answer(trace, None, Reading(trace, steps, budget))
            return
        owned: dict[int, list[Step]] = {}
        for step in steps:
            if step.invocation is not None:
                owned.setdefault(step.invocation, []).append(step)
        asked = [
            invocation
            for invocation in trace.invocations
            if self._choosers["select"].takes_agent(invocation.agent)
        ]
        for invocation in asked:
            own = tuple(owned.get(invocation.number, ()))
            yield self._answer(trace, invocation, Reading(trace, own, budget))
        if not asked:
            yield not_asked(self.spec, has_agents=bool(trace.invocations))

    def _answer(
        self, trace: Trace, invocation: AgentInvocation | None, reading: Reading
    ) -> Screening:
        evidence = _place(trace, invocation)
        try:
            found = self._found(trace, invocation, reading)
        except BudgetSpent:
            return spent(self.spec).with_evidence(evidence, reading.input_hash)
        said = answer_words(self.spec, found)
        return said.with_evidence(
            _with_steps(evidence, found, self.spec), reading.input_hash
        )

    def _found(
        self, trace: Trace, invocation: AgentInvocation | None, reading: Reading
    ) -> Found:
        tally = tally_of(self.spec, self._choosers, reading)
        return Found(
            tally=tally,
            seqs=tuple([step.seq for step in reading.steps]),
            reasons=dict(sorted(reading.reasons.items())),
            without_body=reading.without_body,
            decided=reading.decided,
            is_unfinished=_is_unfinished(trace, invocation, reading.steps),
        )


_BREAKS: Final = {
    Operator.ALWAYS: "A chosen step is not what the contract says that it must be.",
    Operator.NEVER: "A chosen step is there at all.",
    Operator.EVENTUALLY: "The run has ended and no chosen step is there.",
    Operator.PRECEDES: "A chosen step comes without the other one before it.",
    Operator.AT_MOST: "More than {n:,} chosen steps are there.",
}
_ORDERS: Final = {
    OrderSource.TIME: "by time",
    OrderSource.FILE: "by place in the file",
}


def _place(trace: Trace, invocation: AgentInvocation | None) -> Evidence:
    if invocation is None:
        return Evidence(
            scope="trace",
            began="start of the trace",
            ended="end of the trace",
            order=_ORDERS[trace.order],
        )
    return Evidence(
        scope=f"invocation {invocation.number + 1}",
        invocation=invocation.number,
        agent=invocation.agent,
        began="start of the agent invocation",
        ended="end of the agent invocation",
        order=_ORDERS[trace.order],
    )


def _with_steps(evidence: Evidence, found: Found, spec: ContractSpec) -> Evidence:
    tally = found.tally
    places = tally.breaking or tally.undecided
    facts: dict[str, Any] = {
        "contract": plain_sentence(spec),
        "breaking": len(tally.breaking),
        "holding": len(tally.holding),
        "undecided": len(tally.undecided),
    }
    if found.reasons:
        facts["why_undecided"] = found.reasons
    shown = places[:_MOST_STEPS_SHOWN]
    if len(places) > len(shown):
        facts["steps_not_listed"] = len(places) - len(shown)
    return Evidence(
        scope=evidence.scope,
        invocation=evidence.invocation,
        agent=evidence.agent,
        began=evidence.began,
        ended=evidence.ended,
        order=evidence.order,
        length=len(found.seqs),
        steps=tuple([found.seqs[place] for place in shown]),
        facts=facts,
    )


def _is_unfinished(
    trace: Trace, invocation: AgentInvocation | None, steps: tuple[Step, ...]
) -> bool:
    """Whether the recording stops before the run, or the invocation, did.

    That is so where what is asked has no recorded end, or its last step or one around
    it has none.
    """
    if invocation is not None and invocation.status is StepStatus.UNFINISHED:
        return True
    if invocation is None and any(
        each.parent is None and each.status is StepStatus.UNFINISHED
        for each in trace.invocations
    ):
        return True
    if not steps:
        return False
    known = {step.seq: step for step in steps}
    seen: set[int] = set()
    current: Step | None = steps[-1]
    while current is not None and current.seq not in seen:
        if current.status is StepStatus.UNFINISHED:
            return True
        seen.add(current.seq)
        current = known.get(current.parent) if current.parent is not None else None
    return False
