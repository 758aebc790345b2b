"""A rule asked of one invocation: the value is read, the demand made, the answer told."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.engine.agent_contracts.answers import ContractAnswer, ContractState
from apps.engine.agent_contracts.conditions import ExpressionOf, PathOf
from apps.engine.agent_contracts.demands import Normalisers, demand_of
from apps.engine.agent_contracts.seen import GaveNothing, Part, Seen, as_text
from apps.engine.agent_contracts.spec import Kind, Rule, Subject
from apps.engine.agent_contracts.wording import (
    ask_words,
    cut,
    names_in,
    place_words,
    rule_words,
    shown,
)
from apps.engine.contracts.budget import Budget, Undecided
from apps.engine.contracts.spec import BadDefinition
from apps.engine.extraction.spec import DecisionNormaliser
from apps.engine.extraction.tool_calls import ToolNames

HELD = ContractState.HELD
BROKEN = ContractState.BROKEN
UNDECIDED = ContractState.UNDECIDED
DOES_NOT_APPLY = ContractState.DOES_NOT_APPLY


class _Read(msgspec.Struct, frozen=True):
    plain: Any
    text: str
    is_cut: bool
    under: Normalisers


class ValueRule:
    """A rule about one value of an invocation, or about one of each call of a tool."""

    def __init__(self, rule: Rule, *, field: str = "") -> None:
        """Raises `BadDefinition` naming the part of `field` that is wrong."""
        self._rule = rule
        self._path = (
            PathOf(rule.path, field=inside(field, "path")) if rule.path else None
        )
        self._tools = ToolNames(rule.tool)
        self.expected = ask_words(rule)
        self._place = place_words(rule)
        try:
            self._demand = demand_of(rule)
        except BadDefinition as error:
            raise BadDefinition(str(error), field=inside(field, error.field)) from None

    def answer(self, seen: Seen, budget: Budget) -> ContractAnswer:
        """What the rule says; raises `Undecided`, `GaveNothing` or `BudgetSpent`."""
        subject = self._rule.subject
        if subject is Subject.CALLS:
            return self._of_calls(seen, budget)
        under: Normalisers = self._rule.normalisers
        if subject is Subject.DECISION:
            part = seen.decided()
            both = {*under, *seen.normalisers}
            under = tuple([one for one in DecisionNormaliser if one in both])
        else:
            part = seen.given() if subject is Subject.INPUT else seen.output()
        return self._of(part, under, self._place, budget)

    def _of(
        self, part: Part, under: Normalisers, place: str, budget: Budget
    ) -> ContractAnswer:
        budget.charge(part.value.size)
        plain, text = part.value.plain, part.text
        if self._path is not None:
            plain = self._path.found_in(part, budget)
            text = as_text(plain)
        is_cut = part.is_cut and self._path is None
        holds = self._demand.holds(_Read(plain, text, is_cut, under), budget)
        found = "" if plain is None else shown(plain)
        said = f"it is {found}" if found else "it is not there"
        joined = ": " if holds else ", but "
        return ContractAnswer(
            state=HELD if holds else BROKEN,
            sentence=sentence(f"{place} {self.expected}{joined}{said}"),
            step=part.step,
            expected=self.expected,
            found=found,
        )

    def _of_calls(self, seen: Seen, budget: Budget) -> ContractAnswer:
        """Of each call; the first that breaks it is told, else the first undecided."""
        calls = seen.calls_of(self._tools)
        if not calls:
            tool = names_in(self._rule.tool)
            said = f"no tool named {tool} was called, so nothing is asked"
            return ContractAnswer(DOES_NOT_APPLY, sentence(said), None, self.expected)
        undecided: ContractAnswer | None = None
        held: ContractAnswer | None = None
        whole = f"“{cut(self._rule.path)}” of " if self._rule.path else ""
        for call in calls:
            place = (
                f"{whole}the arguments of “{cut(call.name)}” in step {call.step + 1}"
            )
            try:
                answer = self._of(
                    seen.arguments(call), self._rule.normalisers, place, budget
                )
            except Undecided as error:
                undecided = undecided or not_decided(
                    f"{place}: {error}", self.expected, call.step
                )
                continue
            if answer.state is BROKEN:
                return answer
            held = held or answer
        found = undecided or held
        if found is None or found is undecided or len(calls) == 1:
            return found or not_decided("no call could be read", self.expected, None)
        more = f"This holds of each of {len(calls)} calls: {rule_words(self._rule)}."
        return msgspec.structs.replace(found, sentence=more)


class ExpressionRule:
    """A CEL expression over an invocation."""

    def __init__(self, rule: Rule, *, field: str = "") -> None:
        """Raises `BadDefinition` naming the part of `field` that is wrong."""
        self._asked = ExpressionOf(rule.expression, field=inside(field, "expression"))
        self.expected = f"“{cut(rule.expression)}”"

    def answer(self, seen: Seen, budget: Budget) -> ContractAnswer:
        """What the rule says; raises `Undecided`, `GaveNothing` or `BudgetSpent`."""
        holds = self._asked.holds(seen, budget)
        said = f"{self.expected} is {'true' if holds else 'false, but must be true'}"
        return ContractAnswer(
            state=HELD if holds else BROKEN,
            sentence=sentence(said),
            step=_last_step(seen),
            expected=self.expected,
            found="true" if holds else "false",
        )


def rule_of(rule: Rule, *, field: str = "") -> ValueRule | ExpressionRule:
    """The compiled rule; raises `BadDefinition` with the field and a sentence."""
    if rule.kind is Kind.CEL:
        return ExpressionRule(rule, field=field)
    return ValueRule(rule, field=field)


def gave_nothing(error: GaveNothing, expected: str, seen: Seen) -> ContractAnswer:
    """A failed invocation without an output: what it must give back, it did not give."""
    return ContractAnswer(BROKEN, str(error), _last_step(seen), expected)


def not_decided(reason: str, expected: str, step: int | None) -> ContractAnswer:
    """What can be said neither way, with the reason; it counts as neither."""
    return ContractAnswer(
        UNDECIDED, sentence(f"this cannot be decided: {reason}"), step, expected
    )


def sentence(said: str) -> str:
    """`said` with a capital letter and a full stop."""
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."


def inside(field: str, name: str) -> str:
    """The place of a field inside another."""
    return f"{field}.{name}".strip(".")


def _last_step(seen: Seen) -> int | None:
    return seen.one.steps[-1].seq if seen.one.steps else None
