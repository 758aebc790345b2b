"""What a contract says of one scope of a trace, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from apps.engine.check import (
    Answer,
    Evidence,
    Judgement,
    Screening,
    hash_of_inputs,
)
from apps.engine.contracts.operators import Tally
from apps.engine.contracts.spec import ContractSpec, Operator
from apps.engine.contracts.wording import plain_sentence


class Found(msgspec.Struct, frozen=True):
    """What was found in one scope of a trace.

    `seqs` are the steps that the places of the tally are in. `decided` counts the
    steps of which a condition could be decided.
    """

    tally: Tally
    seqs: tuple[int, ...]
    reasons: Mapping[str, int] = {}
    without_body: int = 0
    is_unfinished: bool = False
    decided: int = 0


def answer_words(spec: ContractSpec, found: Found) -> Judgement:
    """The answer about one scope, with its reason."""
    if found.tally.breaking:
        return _broken(spec, found)
    if not found.seqs and spec.operator not in {Operator.ALWAYS, Operator.PRECEDES}:
        return Judgement(
            Answer.NOT_APPLICABLE,
            "no_steps",
            "No step is recorded here",
            "There is no step that the contract could be asked about.",
        )
    if found.tally.undecided and not found.tally.holding and _is_all(spec, found):
        return _nothing_decided(spec, found)
    if spec.operator is Operator.EVENTUALLY:
        return _eventually(spec, found)
    if (
        spec.operator in {Operator.ALWAYS, Operator.PRECEDES}
        and not found.tally.holding
    ):
        return Judgement(
            Answer.NOT_APPLICABLE,
            "nothing_to_hold",
            "Nothing to hold",
            "No step is one that the contract asks something of, so there is nothing "
            f"that it could hold or break.{_left_open(found)}",
        )
    return _kept(spec, found)


def _is_all(spec: ContractSpec, found: Found) -> bool:
    """Whether no candidate at all was decided, so that quiet would say too much."""
    return spec.operator is Operator.EVENTUALLY or found.decided == 0


def _broken(spec: ContractSpec, found: Found) -> Judgement:
    places = found.tally.breaking
    first = found.seqs[places[0]] + 1
    count = _steps(len(places))
    headline = {
        Operator.ALWAYS: f"{count} not as the contract asks",
        Operator.NEVER: f"{count} that must not be there",
        Operator.PRECEDES: f"{count} without the other one before",
        Operator.AT_MOST: f"{len(places) + len(found.tally.holding)} steps where at "
        f"most {spec.n} may be",
    }[spec.operator]
    return Judgement(
        Answer.SIGNAL,
        "broken",
        headline,
        f"{plain_sentence(spec)} {count} {_verb(len(places))} this, the first of them "
        f"is step {first}.{_left_open(found)}",
        spec.level,
    )


def _eventually(spec: ContractSpec, found: Found) -> Judgement:
    if found.tally.holding:
        return _kept(spec, found)
    if found.is_unfinished:
        return Judgement(
            Answer.NOT_APPLICABLE,
            "unfinished",
            "The recording ends before the run does",
            "No such step is recorded, but the last step has no recorded end: it may "
            "have come later.",
        )
    return Judgement(
        Answer.SIGNAL,
        "never_came",
        "The step that must come is not there",
        f"{plain_sentence(spec)} None of the {_steps(len(found.seqs))} is one.",
        spec.level,
    )


def _nothing_decided(spec: ContractSpec, found: Found) -> Judgement:
    undecided = len(found.tally.undecided)
    if found.without_body >= undecided:
        return Judgement(
            Answer.NOT_APPLICABLE,
            "bodies_missing",
            "The texts that it reads are not recorded",
            f"The contract reads what was said or returned, and of {_steps(undecided)} "
            f"that it is about nothing of that is recorded.{_left_open(found)}",
        )
    more = " Whether one of them is the step that must come is not known."
    return Judgement(
        Answer.NOT_APPLICABLE,
        "undecided",
        "It cannot be decided here",
        f"Of {_steps(undecided)} the contract could not be decided.{_left_open(found)}"
        f"{more if spec.operator is Operator.EVENTUALLY else ''}",
    )


def _kept(spec: ContractSpec, found: Found) -> Judgement:
    holding, undecided = len(found.tally.holding), len(found.tally.undecided)
    among = " among those decided" if undecided else ""
    headline = {
        Operator.ALWAYS: f"Holds on {_steps(holding)}",
        Operator.PRECEDES: f"Holds on {_steps(holding)}",
        Operator.EVENTUALLY: f"Came {_times(holding)}",
        Operator.NEVER: f"No such step{among}",
        Operator.AT_MOST: f"{_steps(holding)}{among}, at most {spec.n} may be",
    }[spec.operator]
    return Judgement(
        Answer.QUIET,
        "kept",
        headline,
        f"{plain_sentence(spec)} {_is_so(spec, found)}{_left_open(found)}",
    )


def _is_so(spec: ContractSpec, found: Found) -> str:
    """That a contract is kept, and of what that is known."""
    holding, undecided = len(found.tally.holding), len(found.tally.undecided)
    is_sure = spec.operator is Operator.EVENTUALLY or (
        spec.operator is Operator.AT_MOST and holding + undecided <= spec.n
    )
    if is_sure or not undecided:
        return "That is so."
    return "Nothing that could be decided breaks this; the rest is not known."


def spent(spec: ContractSpec) -> Judgement:
    """The answer where the contract costs more than it may on one trace."""
    return Judgement(
        Answer.NOT_APPLICABLE,
        "budget_spent",
        "Too much work for this trace",
        "The conditions of this contract need more work on this trace than a contract "
        "may cost, so nothing is said of it. Choose fewer steps, or read less of them. "
        f"The contract: {plain_sentence(spec)}",
    )


def not_asked(spec: ContractSpec, *, has_agents: bool) -> Screening:
    """The answer where no agent invocation is there to be asked about."""
    said = Judgement(
        Answer.NOT_APPLICABLE,
        "no_such_agent" if has_agents else "no_agents",
        "No invocation of such an agent" if has_agents else "No agent is recorded",
        f"The contract is about each invocation of agent “{spec.select.agent}”, and "
        "none is recorded."
        if has_agents
        else "The contract is about each agent invocation, and the trace records none.",
    )
    return said.with_evidence(
        Evidence(scope="trace", length=0), hash_of_inputs("contract", has_agents)
    )


_MOST_REASONS: Final = 3


def _left_open(found: Found) -> str:
    """How many steps were undecided, and why; nothing where none was."""
    undecided = len(found.tally.undecided)
    if not undecided:
        return ""
    why = "; ".join(
        f"{count}: {reason}"
        for reason, count in sorted(
            found.reasons.items(), key=lambda each: (-each[1], each[0])
        )[:_MOST_REASONS]
    )
    are = "is" if undecided == 1 else "are"
    return f" {_steps(undecided)} {are} undecided ({why})." if why else ""


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count:,} steps"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _verb(count: int) -> str:
    return "breaks" if count == 1 else "break"
