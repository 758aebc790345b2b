"""A CEL expression whose value answers a tool call.

It sees `arguments`, `tool` and `call` (the how-manieth call of this tool, from 1), with
numbers as decimals: write `arguments.price * 2.0`. What it may cost is counted as for
contracts, before it is evaluated.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final

from apps.engine.contracts.budget import Budget, Undecided, Value
from apps.engine.contracts.expressions import (
    LONGEST_EXPRESSION,
    BadExpression,
    Expression,
)

VARIABLES: Final = ("arguments", "tool", "call")
MOST_UNITS: Final = 50_000_000
"""Units of work for all expressions of one run."""

_MOST_ONCE: Final = 10_000_000
_AROUND: Final = len("dyn()")


class Computed(Expression):
    """An expression that may give any JSON value, compiled once."""

    def __init__(self, source: str) -> None:
        """Raises `BadExpression` with a sentence."""
        if not source.strip():
            raise BadExpression(
                'Write an expression, such as {"id": arguments.id, "status": "open"}.'
            )
        if len(source) > LONGEST_EXPRESSION - _AROUND:
            raise BadExpression(
                f"An expression may have at most {LONGEST_EXPRESSION - _AROUND:,} "
                f"characters; this one has {len(source):,}."
            )
        try:
            # A condition has to be true or false; a value of any type passes for one.
            super().__init__(f"dyn({source})", variables=VARIABLES)
        except BadExpression:
            # The same complaint with the place in what was written.
            Expression(source, variables=VARIABLES)
            raise

    def value(self, given: Any, budget: Budget) -> Any:
        """What the expression gives for an object with its variables, a JSON value.

        Whole decimals come back as whole numbers. Raises `Undecided` where it fails
        or gives no JSON value, `BudgetSpent` when the run has cost too much.
        """
        held = Value(given, decimals=True)
        cost = self._weight.cost(held, self._length)
        if cost > _MOST_ONCE:
            raise Undecided("the expression may need too much work on these arguments")
        budget.charge(cost + 1_000)
        try:
            answer = self._compiled.eval(data=held.plain)
            found = answer.plain_value()
        except (RuntimeError, ValueError, TypeError, MemoryError):
            raise Undecided("the expression fails on these arguments") from None
        if answer.type().name() == "ERROR":
            raise Undecided("the expression fails on these arguments")
        return _as_json(found)


@lru_cache(maxsize=256)
def computed(source: str) -> Computed:
    """The compiled expression; the same one for the same text."""
    return Computed(source)


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise Undecided("a key of the result is no text")
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Undecided("the result holds a number that is not finite")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if value is None or isinstance(value, str | bool | int):
        return value
    raise Undecided("the result holds a value that JSON does not know")
