"""What must hold of one value: the comparing parts of contracts, each compiled once.

A demand is true, false, or undecided where something redacted stands in its way; it
never guesses what was redacted.
"""

from __future__ import annotations

import math
from typing import Any, Final, Protocol

from msgspec import UNSET

from apps.engine.agent_contracts.seen import hidden_in
from apps.engine.agent_contracts.spec import Kind, Rule
from apps.engine.bodies.canonical import canonical, opened
from apps.engine.contracts.budget import MOST_PER_STEP, Budget, Undecided, Value
from apps.engine.contracts.patterns import BadPattern, regular_expression
from apps.engine.contracts.schemas import BadSchema, SchemaCondition
from apps.engine.contracts.spec import BadDefinition
from apps.engine.extraction.normalisers import Normalised
from apps.engine.extraction.spec import DecisionNormaliser

REDACTED_WORDS: Final = "what it reads holds something that was redacted"
_PER_COMPARISON: Final = 300

Normalisers = tuple[DecisionNormaliser, ...]


class Read(Protocol):
    """What a demand is asked about: a bounded JSON value, and the same as a text."""

    @property
    def plain(self) -> Any: ...
    @property
    def text(self) -> str: ...
    @property
    def is_cut(self) -> bool: ...
    @property
    def under(self) -> Normalisers: ...


class Demand(Protocol):
    """Something that must hold of a value."""

    def holds(self, read: Read, budget: Budget) -> bool:
        """Whether it holds; raises `Undecided` or `BudgetSpent`."""
        ...


class Equal:
    """The value is one of those expected, after the normalisers."""

    def __init__(self, expected: tuple[Any, ...]) -> None:
        self._expected = expected
        self._settled: dict[Normalisers, frozenset[str]] = {}

    def holds(self, read: Read, budget: Budget) -> bool:
        """Equal values are equal whatever the order of their keys; 1 is 1.0, not true."""
        _refuse_redacted(read.plain)
        found = _settled(read.plain, read.under)
        budget.charge(len(found) * 4)
        known = self._settled.get(read.under)
        if known is None:
            known = frozenset([_settled(one, read.under) for one in self._expected])
            self._settled[read.under] = known
        return found in known


class Within:
    """The value is a number between bounds."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def holds(self, read: Read, budget: Budget) -> bool:
        """A text is a number only under the normaliser for numbers; true is none."""
        budget.charge(_PER_COMPARISON)
        _refuse_redacted(read.plain)
        value = Normalised(read.under).value(read.plain)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if isinstance(value, float) and math.isnan(value):
            return False
        return self._is_above(value) and self._is_below(value)

    def _is_above(self, value: float) -> bool:
        least = self._rule.minimum
        if least is None:
            return True
        return value > least if self._rule.exclusive_minimum else value >= least

    def _is_below(self, value: float) -> bool:
        most = self._rule.maximum
        if most is None:
            return True
        return value < most if self._rule.exclusive_maximum else value <= most


class Matching:
    """The text holds a pattern, or all of it is one."""

    def __init__(self, pattern: str, *, full: bool) -> None:
        self._pattern = regular_expression(pattern)
        self._full = full

    def holds(self, read: Read, budget: Budget) -> bool:
        """Of a value that is no text, its JSON is looked at; nothing holds no pattern."""
        if read.plain is None:
            return False
        _refuse_redacted(read.plain)
        cost = len(read.text) * self._pattern.programsize
        if cost > MOST_PER_STEP:
            raise Undecided("the pattern may need too much work on this text")
        budget.charge(cost)
        text = read.text.encode("utf-8", "replace").decode("utf-8")
        found = (self._pattern.fullmatch if self._full else self._pattern.search)(text)
        if read.is_cut and (self._full or found is None):
            raise Undecided("only the end of this long text is read")
        return found is not None


class Containing:
    """Everything that is expected is in the value, which may hold more."""

    def __init__(self, expected: Any) -> None:
        self._expected = expected

    def holds(self, read: Read, budget: Budget) -> bool:
        """Each expected key with its value, each expected element in any place.

        An element of a list that is expected twice may be found once. What is redacted
        may have been what is expected.
        """
        expected = Normalised(read.under).value(self._expected)
        value = Normalised(read.under).value(read.plain)
        if _contains(value, expected, budget):
            return True
        _refuse_redacted(read.plain)
        return False


class Fitting:
    """The value is valid under a JSON Schema."""

    def __init__(self, schema: Any) -> None:
        self._schema = SchemaCondition(schema)
        self._written = frozenset(_texts_in(schema))

    def holds(self, read: Read, budget: Budget) -> bool:
        """Undecided where a field that the schema names holds something redacted."""
        hidden = hidden_in(read.plain)
        if hidden and not hidden.isdisjoint(self._written | {""}):
            raise Undecided(REDACTED_WORDS)
        return self._schema.holds(Value(read.plain, decimals=False), budget)


def demand_of(rule: Rule) -> Demand:
    """The compiled demand of a rule that reads one value.

    Raises `BadDefinition` with the field and a sentence.
    """
    try:
        if rule.kind is Kind.EQUALITY:
            return Equal((rule.expected,))
        if rule.kind is Kind.ONE_OF:
            return Equal(rule.values)
        if rule.kind is Kind.RANGE:
            return Within(rule)
        if rule.kind is Kind.REGEX:
            return Matching(rule.pattern, full=rule.full)
        if rule.kind is Kind.SUBSET:
            return Containing(rule.expected)
        return Fitting(None if rule.json_schema is UNSET else rule.json_schema)
    except BadPattern as error:
        raise BadDefinition(str(error), field="pattern") from None
    except BadSchema as error:
        raise BadDefinition(str(error), field="json_schema") from None


def _settled(value: Any, under: Normalisers) -> str:
    return canonical(Normalised(under).value(value))


def _refuse_redacted(plain: Any) -> None:
    if hidden_in(plain):
        raise Undecided(REDACTED_WORDS)


def _contains(value: Any, expected: Any, budget: Budget) -> bool:
    budget.charge(_PER_COMPARISON)
    if not isinstance(expected, dict | list):
        return _is_same(value, expected, budget)
    # JSON often stands in a text inside of JSON.
    value = opened(value)
    if isinstance(expected, dict):
        return isinstance(value, dict) and all(
            key in value and _contains(value[key], item, budget)
            for key, item in expected.items()
        )
    return isinstance(value, list) and all(
        any(_contains(one, item, budget) for one in value) for item in expected
    )


def _is_same(value: Any, expected: Any, budget: Budget) -> bool:
    if isinstance(value, dict | list) or isinstance(value, bool) != isinstance(
        expected, bool
    ):
        return False
    if isinstance(value, str):
        budget.charge(len(value) // 16)
    return bool(value == expected)


def _texts_in(schema: Any) -> list[str]:
    """The names and texts that a schema is written with."""
    found: list[str] = []
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            found += one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found
