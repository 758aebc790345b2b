"""Contracts of agents out of JSON values, refused with the field and a sentence."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET

from apps.engine.agent_contracts.judging import CompiledContract
from apps.engine.agent_contracts.plain import refuse_unless_plain
from apps.engine.agent_contracts.spec import (
    AgentContractSpec,
    Kind,
    Language,
    Rule,
    Subject,
    When,
)
from apps.engine.contracts.patterns import LONGEST_PATTERN
from apps.engine.contracts.spec import (
    LONGEST_SENTENCE,
    BadDefinition,
    decoded_contract,
    in_words,
    selectors_of,
)
from apps.engine.extraction.spec import DecisionNormaliser

LONGEST_NAME: Final = 80
MOST_VALUES: Final = 200
MOST_CONTRACTS: Final = 200
"""Contracts of one agent."""

_READS: Final = frozenset({"subject", "tool", "path"})
_COMPARES: Final = _READS | {"normalisers"}
_TAKES: Final = {
    Kind.EQUALITY: _COMPARES | {"expected"},
    Kind.ONE_OF: _COMPARES | {"values"},
    Kind.RANGE: _COMPARES
    | {"minimum", "maximum", "exclusive_minimum", "exclusive_maximum"},
    Kind.REGEX: _READS | {"pattern", "full"},
    Kind.SUBSET: _COMPARES | {"expected"},
    Kind.JSON_SCHEMA: _READS | {"json_schema"},
    Kind.CEL: frozenset({"expression"}),
    Kind.WHEN_THEN: frozenset({"when", "then"}),
    Kind.TEMPORAL: frozenset({"temporal"}),
}
_NEEDS: Final = {
    Kind.EQUALITY: ("expected",),
    Kind.ONE_OF: ("values",),
    Kind.REGEX: ("pattern",),
    Kind.SUBSET: ("expected",),
    Kind.JSON_SCHEMA: ("json_schema",),
    Kind.CEL: ("expression",),
    Kind.WHEN_THEN: ("when", "then"),
    Kind.TEMPORAL: ("temporal",),
}
_EVERY_KIND: Final = frozenset({"kind", "name", "tasks", "applies_when", "sentence"})
_DEFAULTS: Final = {
    one.name: one.default for one in msgspec.structs.fields(AgentContractSpec)
}


def decoded_agent_contract(value: Any) -> AgentContractSpec:
    """The contract in a JSON value; raises `BadDefinition` with field and sentence.

    Everything in it has been compiled once: what comes back can be asked.
    """
    refuse_unless_plain(value)
    try:
        spec = msgspec.convert(value, AgentContractSpec)
    except (msgspec.ValidationError, RecursionError) as error:
        raise in_words(error) from None
    _refuse_names(spec)
    _refuse_parts(spec, "")
    _refuse_conditions(spec)
    if spec.then is not None:
        if spec.then.kind in {Kind.WHEN_THEN, Kind.TEMPORAL}:
            raise BadDefinition(
                f"“{spec.then.kind}” cannot stand in “then”.", field="then.kind"
            )
        _refuse_parts(spec.then, "then.")
    _refuse_temporal(spec)
    spec = _settled(spec)
    CompiledContract(spec)
    return spec


def _settled(spec: AgentContractSpec) -> AgentContractSpec:
    """The spec with its normalisers in the order in which they are applied."""
    changes: dict[str, Any] = {"normalisers": _in_order(spec)}
    if spec.then is not None:
        changes["then"] = msgspec.structs.replace(
            spec.then, normalisers=_in_order(spec.then)
        )
    return msgspec.structs.replace(spec, **changes)


def _in_order(rule: Rule) -> tuple[DecisionNormaliser, ...]:
    return tuple([one for one in DecisionNormaliser if one in rule.normalisers])


def _refuse_names(spec: AgentContractSpec) -> None:
    if not spec.name.strip() or len(spec.name) > LONGEST_NAME:
        raise BadDefinition(
            f"A contract needs a name of at most {LONGEST_NAME} characters.",
            field="name",
        )
    if len(spec.tasks) > LONGEST_PATTERN:
        raise BadDefinition(
            f"Names of tasks may have at most {LONGEST_PATTERN} characters.",
            field="tasks",
        )
    if len(spec.sentence) > LONGEST_SENTENCE:
        raise BadDefinition(
            f"The sentence may have at most {LONGEST_SENTENCE} characters.",
            field="sentence",
        )


def _refuse_parts(rule: Rule, place: str) -> None:
    """Each kind has its own fields, all that it needs and no other."""
    taken = _TAKES[rule.kind] | _EVERY_KIND
    for name in rule.__struct_fields__:
        if name not in taken and _is_said(rule, name):
            raise BadDefinition(
                f"“{rule.kind}” takes no “{name}”.", field=f"{place}{name}"
            )
    for name in _NEEDS.get(rule.kind, ()):
        if not _is_said(rule, name):
            raise BadDefinition(
                f"“{rule.kind}” needs “{name}”.", field=f"{place}{name}"
            )
    if (rule.subject is Subject.CALLS) != bool(rule.tool.strip()):
        raise BadDefinition(
            "Name the tool whose calls are read, or * for all of them."
            if rule.subject is Subject.CALLS
            else "Only the arguments of calls are read by the name of a tool.",
            field=f"{place}tool",
        )
    if len(rule.tool) > LONGEST_PATTERN:
        raise BadDefinition(
            f"A name may have at most {LONGEST_PATTERN} characters.",
            field=f"{place}tool",
        )
    _refuse_values(rule, place)


def _is_said(rule: Rule, name: str) -> bool:
    """Whether a field is not as where nobody wrote it; a written null is not unset."""
    value, default = getattr(rule, name), _DEFAULTS[name]
    if default is None or default is UNSET:
        return value is not default
    return bool(value != default)


def _refuse_values(rule: Rule, place: str) -> None:
    if rule.kind is Kind.ONE_OF and len(rule.values) > MOST_VALUES:
        raise BadDefinition(
            f"List at most {MOST_VALUES} values.", field=f"{place}values"
        )
    if rule.kind is not Kind.RANGE:
        return
    least, most = rule.minimum, rule.maximum
    if least is None and most is None:
        raise BadDefinition(
            "A range needs a minimum, a maximum, or both.", field=f"{place}minimum"
        )
    for bound, name in ((least, "minimum"), (most, "maximum")):
        if bound is None and getattr(rule, f"exclusive_{name}"):
            raise BadDefinition(
                f"There is no {name} that could be exclusive.",
                field=f"{place}exclusive_{name}",
            )
    if least is None or most is None:
        return
    is_open = rule.exclusive_minimum or rule.exclusive_maximum
    if least > most or (least == most and is_open):
        raise BadDefinition(
            "No number is in this range: the minimum is above the maximum.",
            field=f"{place}maximum",
        )


def _refuse_conditions(spec: AgentContractSpec) -> None:
    _refuse_when(spec.applies_when, "applies_when", frozenset({Subject.INPUT}))
    _refuse_when(spec.when, "when", frozenset({Subject.INPUT, Subject.OUTPUT}))


def _refuse_when(when: When | None, place: str, subjects: frozenset[Subject]) -> None:
    if when is None:
        return
    if when.of not in subjects:
        raise BadDefinition(
            f"This condition is over {' or '.join(sorted(subjects))} only.",
            field=f"{place}.of",
        )
    if when.language is Language.CEL and when.of is not Subject.INPUT:
        raise BadDefinition(
            "CEL names what it reads itself: leave “of” out.", field=f"{place}.of"
        )


def _refuse_temporal(spec: AgentContractSpec) -> None:
    if spec.temporal is None:
        return
    try:
        decoded_contract(msgspec.to_builtins(spec.temporal))
    except BadDefinition as error:
        raise BadDefinition(str(error), field=f"temporal.{error.field}") from None
    for name, selector in selectors_of(spec.temporal).items():
        if selector.agent:
            raise BadDefinition(
                "The contract is over the steps of one agent: leave the agent out.",
                field=f"temporal.{name}.agent",
            )
