"""JSON Schema (2020-12) as a condition: what a schema may hold, and what it may cost.

Nothing is fetched, patterns are RE2's, and every keyword that is looked at is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from jsonschema import exceptions, validators
from jsonschema.validators import Draft202012Validator
from referencing import Registry

from apps.engine.contracts.budget import MOST_PER_STEP, Budget, BudgetSpent, Undecided, Value
from apps.engine.contracts.patterns import (
    LARGEST_PROGRAM,
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
_PER_KEYWORD: Final = 1_000


class BadSchema(ValueError):
    """A schema that is not used; the message is a sentence for whoever wrote it."""


class SchemaCondition:
    """A schema that was looked through once, to be asked about many values."""

    def __init__(self, schema: Any) -> None:
        """Raises `BadSchema` with a sentence."""
        _look_through(schema)
        self._schema = schema
        self._bytes = len(msgspec.json.encode(schema))

    def holds(self, recorded: Any, budget: Budget) -> bool:
        """Whether `recorded` is valid.

        Raises `Undecided` for a value that cannot be looked at and `BudgetSpent` when
        the trace has cost too much.
        """
        value = Value(recorded, decimals=False)
        budget.charge(value.size)
        meter = _Meter(budget, size=value.size, schema_bytes=self._bytes)
        checker = _metered(meter)(self._schema, registry=Registry())
        try:
            return next(iter(checker.iter_errors(value.plain)), None) is None
        except RecursionError:
            raise Undecided("the schema refers to itself without an end") from None
        except (ArithmeticError, exceptions.ValidationError) as error:
            raise Undecided(f"the schema fails on this value ({error})") from None


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
            raise Undecided("the schema needs too much work on this step") from None


_Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


def _metered(meter: _Meter) -> Any:
    """The validator of 2020-12, of which every keyword pays before it looks."""
    known = {
        name: rule
        for name, rule in Draft202012Validator.VALIDATORS.items()
        if name in _MAPS | _LISTS | _ONES | _PLAIN
    }
    charged = {name: _paying(rule, meter) for name, rule in (known | _OWN).items()}
    kind: Any = validators.create(
        meta_schema=True,
        validators=charged,
        type_checker=Draft202012Validator.TYPE_CHECKER,
        format_checker=Draft202012Validator.FORMAT_CHECKER,
        id_of=lambda _: "",
    )
    return kind


def _paying(rule: _Keyword, meter: _Meter) -> _Keyword:
    def paid(checker: Any, keyword: Any, value: Any, schema: Any) -> Iterator[Any]:
        meter.charge(_PER_KEYWORD + _width(keyword) * 50 + _width(value))
        if rule in _COMPARING:
            meter.charge(meter.schema_bytes)
        if rule in _SEARCHING:
            meter.charge(_search_cost(keyword, value))
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
_COMPARING: Final = frozenset(
    Draft202012Validator.VALIDATORS[name] for name in ("enum", "const")
)
_SEARCHING: Final = frozenset({_pattern, _pattern_properties, _additional})
_patterns: dict[str, Pattern] = {}
_MOST_KEPT: Final = 1_000


def _compiled(pattern: str) -> Pattern:
    """A pattern of a schema that was looked through; few enough are kept."""
    found = _patterns.get(pattern)
    if found is None:
        if len(_patterns) >= _MOST_KEPT:
            _patterns.clear()
        found = _patterns[pattern] = regular_expression(pattern)
    return found


def _search_cost(keyword: Any, value: Any) -> int:
    """What searching costs at most: every character with every state of the pattern."""
    if isinstance(keyword, str):
        length = len(value) if isinstance(value, str) else 0
        return length * _compiled(keyword).programsize
    if not isinstance(value, dict):
        return 0
    patterns = keyword if isinstance(keyword, dict) else {}
    states = sum(_states(each) for each in patterns)
    return sum(map(len, value)) * states


def _states(pattern: str) -> int:
    try:
        return _compiled(pattern).programsize
    except BadPattern:
        # Names of `additionalProperties` as a schema are keywords, not patterns.
        return LARGEST_PROGRAM


def _look_through(schema: Any) -> None:
    """Raise `BadSchema` for a schema that is too large, wrong, or refers elsewhere."""
    if not isinstance(schema, dict | bool):
        raise BadSchema("A schema is a JSON object.")
    if len(msgspec.json.encode(schema)) > LARGEST_SCHEMA:
        raise BadSchema(f"A schema may have at most {LARGEST_SCHEMA:,} bytes.")
    _look_at(schema, 0, "")
    _look_at_references(schema)
    worst = exceptions.best_match(
        Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema)
    )
    if worst is not None:
        place = ".".join(str(part) for part in worst.absolute_path) or "the schema"
        raise BadSchema(f"{place}: {worst.message[:200]}.")
