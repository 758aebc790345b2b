"""JMESPath over a recorded value, bounded so that no expression can run away.

The steps of an evaluation are counted, and the functions that make large values out
of small ones (`join`, `to_string`) are not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from jmespath import exceptions, parser
from jmespath.visitor import TreeInterpreter

LONGEST_PATH: Final = 500
MOST_PARTS: Final = 80
MOST_CHOICES: Final = 3
MOST_VISITS: Final = 50_000
LONGEST_LIST: Final = 50_000
_FUNCTIONS: Final = frozenset(
    {
        "abs", "avg", "ceil", "contains", "ends_with", "floor", "keys", "length", "map",
        "max", "max_by", "merge", "min", "min_by", "not_null", "reverse", "sort",
        "sort_by", "starts_with", "sum", "to_number", "type", "values",
    }
)  # fmt: skip
_CHOICES: Final = frozenset({"multi_select_list", "multi_select_dict"})
_MANY: Final = frozenset({"projection", "filter_projection", "value_projection"})
_FAILURES: Final = (
    exceptions.JMESPathError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class BadPath(ValueError):
    """An expression that is not used; the message is a sentence for its author."""


class PathFailed(Exception):
    """An expression that this value gives no answer to; the message says why."""


class Path:
    """A JMESPath expression, parsed once."""

    def __init__(self, expression: str) -> None:
        """Raise `BadPath` for an expression that is not used."""
        if len(expression) > LONGEST_PATH:
            raise BadPath(f"A path may have at most {LONGEST_PATH} characters.")
        try:
            tree: dict[str, Any] = dict(parser.Parser().parse(expression).parsed)
        except _FAILURES as error:
            raise BadPath(
                f"“{expression}” is no JMESPath: {_in_words(error)}."
            ) from None
        self._tree = tree
        parts = list(_parts(tree))
        if len(parts) > MOST_PARTS:
            raise BadPath(f"A path may have at most {MOST_PARTS} parts.")
        if sum(part["type"] in _CHOICES for part in parts) > MOST_CHOICES:
            raise BadPath(
                f"A path may build at most {MOST_CHOICES} lists or objects of its own."
            )
        for part in parts:
            if part["type"] == "function_expression":
                _refuse_function(part["value"])
        self._is_many = tree["type"] in _MANY | {"flatten"}

    def found_in(self, value: Any) -> Any:
        """What the expression gives for `value`; `None` where it finds nothing.

        A projection without hits, and a list or object of nothing but nulls, is
        nothing. Raises `PathFailed` where the value does not fit the expression or
        the evaluation costs too much.
        """
        try:
            found = _Bounded().visit(self._tree, value)
        except _FAILURES as error:
            raise PathFailed(_in_words(error)) from None
        if self._is_many and found == []:
            return None
        held = found.values() if isinstance(found, dict) else found
        if isinstance(found, dict | list) and found:
            return None if all(item is None for item in held) else found
        return found


class _Bounded(TreeInterpreter):
    """An evaluation that stops when it has cost enough."""

    def __init__(self) -> None:
        super().__init__()
        self._visits = 0

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._visits += 1
        if self._visits > MOST_VISITS:
            raise ValueError("the value is too large for this path")
        found = super().visit(node, *args, **kwargs)
        if isinstance(found, list) and len(found) > LONGEST_LIST:
            raise ValueError("it gives too long a list")
        return found


def _parts(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += [one for one in part.get("children", ()) if isinstance(one, dict)]


def _refuse_function(name: str) -> None:
    if name not in _FUNCTIONS:
        raise BadPath(
            f"The function “{name}” is not among those that a path may use here: "
            f"{', '.join(sorted(_FUNCTIONS))}."
        )


def _in_words(error: Exception) -> str:
    """What is wrong, without the value, which may be large or nested without end."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, exceptions.JMESPathTypeError):
        kind = error.actual_type
        return f"“{error.function_name}” takes no value of type {kind}"
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".:")[:200] if lines else "it cannot be evaluated"
