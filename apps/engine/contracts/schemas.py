"""JSON Schema (2020-12) as a condition: what a schema may hold, and what it may cost.

Nothing is fetched, patterns are RE2's, and every keyword that is looked at is charged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from jsonschema import exceptions, validators
from jsonschema.validators import Draft202012Validator
from referencing import Registry

from apps.engine.contracts.budget import (
    MOST_PER_STEP,
    Budget,
    BudgetSpent,
    Undecided,
    Value,
)
from apps.engine.contracts.patterns import (
    BadPattern,
    Pattern,
    regular_expression,
)

LARGEST_SCHEMA: Final = 16_384
DEEPEST_SCHEMA: Final = 24

_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_ONES: Final = frozenset(
    {"items", "contains", "additionalProperties", "propertyNames", "not", "if", "then",
     "else"}
)  # fmt: skip
_PLAIN: Final = frozenset(
    {"type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum",
     "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems",
     "uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties",
     "required", "dependentRequired", "$ref"}
)  # fmt: skip
_SAID: Final = frozenset(
    {"title", "description", "$comment", "examples", "default", "deprecated",
     "readOnly", "writeOnly"}
)  # fmt: skip
_DRAFTS: Final = frozenset(
    {"https://json-schema.org/draft/2020-12/schema",
     "http://json-schema.org/draft-07/schema#"}
)  # fmt: skip
_PER_KEYWORD: Final = 2_000


class BadSchema(ValueError):
    """A schema that is not used; the message is a sentence for whoever wrote it."""


class SchemaCondition:
    """A schema that was looked through once, to be asked about many values."""

    def __init__(self, schema: Any) -> None:
        """Raises `BadSchema` with a sentence."""
        _look_through(schema)
        self._schema = schema
        self._bytes = len(msgspec.json.encode(schema))

    def holds(self, value: Value, budget: Budget) -> bool:
        """Whether `value` is valid.

        Raises `Undecided` where that cannot be said and `BudgetSpent` when the trace
        has cost too much.
        """
        budget.charge(value.size)
        meter = _Meter(budget, size=value.size, schema_bytes=self._bytes)
        # The library hands its format checker on to every part of a schema; formats
        # are not checked, so ours carries the meter.
        checker = _Validator(self._schema, registry=_NOTHING, format_checker=meter)
        try:
            return next(iter(checker.iter_errors(value.plain)), None) is None
        except RecursionError:
            raise Undecided("the schema refers to itself without an end") from None
        except ArithmeticError:
            raise Undecided("the schema cannot count with a recorded number") from None


class _Meter:
    """Charges the keywords of one evaluation, to the trace and to this step."""

    def __init__(self, budget: Budget, *, size: int, schema_bytes: int) -> None:
        self._budget = budget
        self._here = Budget(MOST_PER_STEP)
        self.size = size
        self.schema_bytes = schema_bytes

    def charge(self, units: int) -> None:
        self._budget.charge(units)
        try:
            self._here.charge(units)
        except BudgetSpent:
            raise Undecided("the schema needs too much work on this value") from None


_Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


def _paying(name: str, rule: _Keyword) -> _Keyword:
    """`rule`, charged before it looks and for each message that it writes."""

    def paid(checker: Any, keyword: Any, value: Any, schema: Any) -> Iterator[Any]:
        meter: _Meter = checker.format_checker
        meter.charge(_PER_KEYWORD + _width(keyword) * 50 + _width(value))
        if name in _COMPARING:
            meter.charge(meter.schema_bytes)
        if name in _COPYING:
            meter.charge(meter.size)
        patterns = _patterns_in(name, keyword, schema)
        if patterns:
            meter.charge(_search_cost(patterns, value))
        for error in rule(checker, keyword, value, schema) or ():
            # The library writes the whole value into each of its messages.
            meter.charge(meter.size)
            yield error

    return paid


def _width(value: Any) -> int:
    return len(value) if isinstance(value, str | list | dict) else 1


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[Any]:
    if isinstance(value, str) and not _compiled(pattern).search(value):
        yield exceptions.ValidationError("no match")


def _pattern_properties(
    checker: Any, patterns: dict[str, Any], value: Any, _: Any
) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    for pattern, schema in patterns.items():
        compiled = _compiled(pattern)
        for key, held in value.items():
            if compiled.search(key):
                yield from checker.descend(held, schema, path=key, schema_path=pattern)


def _additional(checker: Any, extra: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    named = schema.get("properties", {})
    patterns = [_compiled(each) for each in schema.get("patternProperties", {})]
    for key, held in value.items():
        if key not in named and not any(each.search(key) for each in patterns):
            yield from checker.descend(held, extra, path=key)


def _unique(_: Any, wanted: Any, value: Any, __: Any) -> Iterator[Any]:
    if wanted and isinstance(value, list):
        seen = {_canonical(each) for each in value}
        if len(seen) < len(value):
            yield exceptions.ValidationError("not unique")


def _canonical(value: Any) -> bytes:
    """The same bytes for equal JSON values: 1 and 1.0 are one number, true is none."""
    return msgspec.json.encode(_whole_numbers(value), order="deterministic")


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    # Beyond 64 bits the encoder refuses a number.
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return ["a large number", str(value)]
    if isinstance(value, list):
        return [_whole_numbers(each) for each in value]
    if isinstance(value, dict):
        return {key: _whole_numbers(held) for key, held in value.items()}
    return value


_OWN: Final[dict[str, _Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "uniqueItems": _unique,
}
_COMPARING: Final = frozenset({"enum", "const"})
_COPYING: Final = frozenset({"uniqueItems"})
_Validator: Final[Any] = validators.extend(
    Draft202012Validator,
    {
        name: _paying(name, _OWN.get(name, rule))
        for name, rule in Draft202012Validator.VALIDATORS.items()
        if name in _MAPS | _LISTS | _ONES | _PLAIN
    },
)
_NOTHING: Final[Any] = Registry()
_MOST_KEPT: Final = 1_000
_compiled_patterns: dict[str, Pattern] = {}


def _compiled(pattern: str) -> Pattern:
    """A pattern of a schema that was looked through; the last ones are kept."""
    found = _compiled_patterns.get(pattern)
    if found is None:
        if len(_compiled_patterns) >= _MOST_KEPT:
            _compiled_patterns.clear()
        found = _compiled_patterns[pattern] = regular_expression(pattern)
    return found


def _patterns_in(name: str, keyword: Any, schema: Any) -> tuple[str, ...]:
    """The patterns that a keyword searches with."""
    if name == "pattern":
        return (keyword,)
    if name in {"patternProperties", "additionalProperties"}:
        return tuple(schema.get("patternProperties", ()))
    return ()


def _search_cost(patterns: tuple[str, ...], value: Any) -> int:
    """What searching costs at most: every character with every state of a pattern."""
    length = len(value) if isinstance(value, str) else 0
    if isinstance(value, dict):
        length = sum(map(len, value))
    return length * sum(_compiled(pattern).programsize for pattern in patterns)


def _look_through(schema: Any) -> None:
    """Raise `BadSchema` for a schema that is too large, wrong, or refers elsewhere."""
    if not isinstance(schema, dict | bool):
        raise BadSchema("A schema is a JSON object.")
    try:
        encoded = msgspec.json.encode(schema)
    except (RecursionError, ValueError, OverflowError):
        raise BadSchema(
            "The schema is nested too deep or has a number too large."
        ) from None
    if len(encoded) > LARGEST_SCHEMA:
        raise BadSchema(f"A schema may have at most {LARGEST_SCHEMA:,} bytes.")
    if b"\\u0000" in encoded:
        # The database does not take it in a text.
        raise BadSchema("A schema cannot hold the character NUL.")
    _bound(schema, 0)
    worst = exceptions.best_match(_META.iter_errors(schema))
    if worst is not None:
        place = ".".join(str(part) for part in worst.absolute_path) or "the schema"
        raise BadSchema(f"In “{place}”: {worst.message[:200]}.")
    _look_at(schema)


_META: Final[Any] = Draft202012Validator(Draft202012Validator.META_SCHEMA)


def _bound(value: Any, depth: int) -> None:
    if depth > DEEPEST_SCHEMA:
        raise BadSchema(f"A schema may be nested {DEEPEST_SCHEMA} levels deep.")
    if isinstance(value, dict | list):
        for held in value.values() if isinstance(value, dict) else value:
            _bound(held, depth + 1)


def _look_at(schema: Any) -> None:
    """Look at the keywords of a schema and of the schemas inside it."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        _look_at_keyword(keyword, value)
        for inside in _schemas_in(keyword, value):
            _look_at(inside)


def _schemas_in(keyword: str, value: Any) -> list[Any]:
    if keyword in _MAPS:
        return list(value.values())
    if keyword in _LISTS:
        return list(value)
    return [value] if keyword in _ONES else []


def _look_at_keyword(keyword: str, value: Any) -> None:
    if keyword == "$schema":
        if value not in _DRAFTS:
            raise BadSchema("Schemas are read as JSON Schema 2020-12 only.")
    elif keyword == "$ref":
        if not _REFERENCE.fullmatch(value):
            raise BadSchema(
                f"“{value}” is not followed: “$ref” may name “#” or “#/$defs/…” only."
            )
    elif keyword == "pattern":
        _look_at_patterns((value,))
    elif keyword == "patternProperties":
        _look_at_patterns(value)
    elif keyword not in _MAPS | _LISTS | _ONES | _PLAIN | _SAID:
        raise BadSchema(f"The keyword “{keyword[:60]}” is not supported here.")


_REFERENCE: Final = re.compile(r"#|#/(\$defs|definitions)/[A-Za-z0-9_.-]{1,100}")


def _look_at_patterns(patterns: Iterable[str]) -> None:
    for pattern in patterns:
        try:
            _compiled(pattern)
        except BadPattern as error:
            raise BadSchema(str(error)) from None
