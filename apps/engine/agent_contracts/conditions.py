"""Conditions on an invocation: for which ones a contract applies, and CEL demands.

An expression over something that holds a redacted field of a name that stands in it is
undecided: what was there is not known.
"""

from __future__ import annotations

import re
from typing import Any, Final

from apps.engine.agent_contracts.demands import REDACTED_WORDS
from apps.engine.agent_contracts.seen import Part, Seen, hidden_in
from apps.engine.agent_contracts.spec import Language, Subject, When
from apps.engine.contracts.budget import Budget, Undecided, Value
from apps.engine.contracts.expressions import BadExpression, Expression
from apps.engine.contracts.spec import BadDefinition
from apps.engine.extraction.paths import BadPath, Path, PathFailed

OF_INPUT: Final = ("input", "agent")
OF_INVOCATION: Final = ("output", "input", "tools", "calls", "status", "agent")
_PER_BYTE: Final = 8
_WORDS: Final = re.compile(r"[\w-]+")


class PathOf:
    """A JMESPath expression over a part of an invocation, compiled once."""

    def __init__(self, source: str, *, field: str) -> None:
        """Raises `BadDefinition` naming `field`."""
        self._source = source
        self._named = frozenset(_WORDS.findall(source))
        self._is_plain = not re.search(r"[?(&|!=<>]", source)
        try:
            self._path = Path(source)
        except BadPath as error:
            raise BadDefinition(str(error), field=field) from None

    def found_in(self, part: Part, budget: Budget) -> Any:
        """What it finds, `None` where nothing; raises `Undecided` or `BudgetSpent`.

        Where a message holds the value, the path may be written for either.
        """
        if not self._is_plain and self.names_hidden(part):
            raise Undecided(REDACTED_WORDS)
        found = self._in(part.value, budget)
        if found is None and part.around is not None:
            around = Value(part.around, decimals=False)
            if not self._is_plain and self._touches(hidden_in(around.plain)):
                raise Undecided(REDACTED_WORDS)
            found = self._in(around, budget)
        return found

    def names_hidden(self, part: Part) -> bool:
        """Whether it may read something that was redacted."""
        return self._touches(part.hidden)

    def _touches(self, hidden: frozenset[str]) -> bool:
        if not hidden:
            return False
        return (
            "" in hidden
            or "*" in self._source
            or any(
                name in self._named or f'"{name}"' in self._source for name in hidden
            )
        )

    def _in(self, value: Value, budget: Budget) -> Any:
        budget.charge(value.size * _PER_BYTE)
        try:
            return self._path.found_in(value.plain)
        except PathFailed:
            # Its message holds what was recorded.
            raise Undecided(
                f"the path “{self._source[:80]}” cannot be asked of what is recorded"
            ) from None


class ExpressionOf:
    """A CEL expression over an invocation, compiled once."""

    def __init__(
        self, source: str, *, field: str, variables: tuple[str, ...] = OF_INVOCATION
    ) -> None:
        """Raises `BadDefinition` naming `field`."""
        try:
            self._expression = Expression(source, variables=variables)
        except BadExpression as error:
            raise BadDefinition(str(error), field=field) from None

    def holds(self, seen: Seen, budget: Budget) -> bool:
        """Whether it is true; raises `Undecided`, `GaveNothing` or `BudgetSpent`."""
        named = self._expression.named
        value = Value(seen.facts(named), decimals=True)
        if not hidden_in(value.plain).isdisjoint(named):
            raise Undecided(REDACTED_WORDS)
        return self._expression.holds(value, budget)


class Condition:
    """A condition of a contract that decides whether it asks anything."""

    def __init__(self, when: When, *, field: str, of_input_only: bool) -> None:
        """Raises `BadDefinition` naming the part of `field` that is wrong."""
        self._of = when.of
        self._path: PathOf | None = None
        self._expression: ExpressionOf | None = None
        place = f"{field}.expression"
        if when.language is Language.CEL:
            variables = OF_INPUT if of_input_only else OF_INVOCATION
            self._expression = ExpressionOf(
                when.expression, field=place, variables=variables
            )
        else:
            self._path = PathOf(when.expression, field=place)

    def holds(self, seen: Seen, budget: Budget) -> bool:
        """Whether it is true; raises `Undecided`, `GaveNothing` or `BudgetSpent`."""
        if self._expression is not None:
            return self._expression.holds(seen, budget)
        part = seen.given() if self._of is Subject.INPUT else seen.output()
        if self._path is None or self._path.names_hidden(part):
            raise Undecided(REDACTED_WORDS)
        return _is_true(self._path.found_in(part, budget))


def _is_true(found: Any) -> bool:
    """Truth in the sense of JMESPath: a 0 is true, an empty text is not."""
    return not (found is None or found is False or found in ("", [], {}))
