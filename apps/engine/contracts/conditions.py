"""A condition of a contract, ready to be asked about steps."""

from __future__ import annotations

from typing import Any

from apps.engine.contracts.budget import Budget, Undecided, Value
from apps.engine.contracts.expressions import BadExpression, Expression
from apps.engine.contracts.schemas import BadSchema, SchemaCondition
from apps.engine.contracts.spec import BadDefinition, Condition, Language, Subject
from apps.engine.contracts.views import bodies_of, structure_of
from apps.engine.trace import Step, Trace


class NoBody(Undecided):
    """The condition reads a text that was not recorded of this step."""


class Asked:
    """A condition that was compiled once; asking it costs units of a budget."""

    def __init__(self, condition: Condition, *, field: str) -> None:
        """Raises `BadDefinition` naming `field` and the part of it that is wrong."""
        self._subject = condition.subject
        self._schema: SchemaCondition | None = None
        self._expression: Expression | None = None
        try:
            if condition.language is Language.CEL:
                self._expression = Expression(condition.expression)
            else:
                self._schema = SchemaCondition(condition.json_schema)
        except BadExpression as error:
            raise BadDefinition(str(error), field=f"{field}.expression") from None
        except BadSchema as error:
            raise BadDefinition(str(error), field=f"{field}.json_schema") from None

    @property
    def reads_bodies(self) -> bool:
        """Whether it reads texts of a step, beside its structure."""
        if self._expression is not None:
            return self._expression.reads_bodies
        return self._subject is not Subject.STEP

    def reads(self, trace: Trace, step: Step) -> Value:
        """What of `step` the condition is about.

        Raises `NoBody` where that was not recorded and `Undecided` for a value that
        cannot be looked at.
        """
        return Value(self._recorded(trace, step), decimals=self._expression is not None)

    def _recorded(self, trace: Trace, step: Step) -> Any:
        if not self.reads_bodies:
            return structure_of(trace, step)
        bodies = bodies_of(step)
        if self._expression is None:
            if self._subject.value not in bodies:
                raise NoBody(f"no {self._subject.value} is recorded")
            return bodies[self._subject.value]
        if not bodies:
            raise NoBody("no text is recorded")
        return structure_of(trace, step) | bodies

    def holds(self, value: Value, budget: Budget) -> bool:
        """Whether it is true of what was read.

        Raises `Undecided` with the reason where it is neither true nor false, and
        `BudgetSpent` when the trace has cost too much.
        """
        if self._expression is not None:
            return self._expression.holds(value, budget)
        if self._schema is None:
            raise Undecided("there is no condition")
        return self._schema.holds(value, budget)
