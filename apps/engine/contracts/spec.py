"""What a contract says, as plain values: which steps, which operator, what must hold.

A spec is a JSON value in the database and in exports. Decoding names the field that
is wrong in a sentence; `canonical` is the one encoding, so that its hash is stable.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, Final

import msgspec

from apps.engine.check import Level
from apps.engine.contracts.patterns import LONGEST_PATTERN
from apps.engine.shape_words import wrong_shape
from apps.engine.trace import StepKind, StepStatus


class BadDefinition(ValueError):
    """A definition that is not used: `field` names the place, the message says why."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Operator(StrEnum):
    """What must hold of the chosen steps."""

    ALWAYS = "always"
    NEVER = "never"
    EVENTUALLY = "eventually"
    PRECEDES = "precedes"
    AT_MOST = "at_most"


class Scope(StrEnum):
    """Of what a contract is asked once."""

    TRACE = "trace"
    INVOCATION = "invocation"


class Language(StrEnum):
    """How a condition is written."""

    JSON_SCHEMA = "json_schema"
    CEL = "cel"


class Subject(StrEnum):
    """What of a step a JSON Schema is about."""

    ARGUMENTS = "arguments"
    RESULT = "result"
    OUTPUT = "output"
    STEP = "step"


class _Spec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Fields with their default are left out of the encoding."""


class Condition(_Spec, frozen=True):
    """A condition on one step: a JSON Schema over its subject, or a CEL expression."""

    language: Language
    json_schema: Any = None
    subject: Subject = Subject.STEP
    expression: str = ""


class Selector(_Spec, frozen=True):
    """Which steps: every field that is not empty must agree.

    `name`, `agent` and `model` take `*` and `?`, and alternatives after `|`. `kind`
    and `status` are empty for any.
    """

    kind: str = ""
    name: str = ""
    agent: str = ""
    model: str = ""
    status: str = ""
    condition: Condition | None = None


class ContractSpec(_Spec, frozen=True):
    """What a project asks of its traces.

    `then` is what `always` asks of the chosen steps, `before` what `precedes` wants
    before each of them, `n` the bound of `at_most`. `sentence` is the author's own
    wording of it all, which may be empty.
    """

    operator: Operator
    select: Selector = Selector()
    then: Selector | None = None
    before: Selector | None = None
    n: int = 0
    scope: Scope = Scope.TRACE
    level: Level = Level.REVIEW_SIGNAL
    sentence: str = ""


MOST_STEPS: Final = 100_000
LONGEST_SENTENCE: Final = 300
_KINDS: Final = frozenset({"", *StepKind})
_STATUSES: Final = frozenset({"", *StepStatus})


def decoded_contract(spec: Any) -> ContractSpec:
    """The contract in a JSON value; raises `BadDefinition` with field and sentence."""
    try:
        contract = msgspec.convert(spec, ContractSpec)
    except (msgspec.ValidationError, RecursionError) as error:
        raise in_words(error) from None
    _refuse_parts(contract)
    for place, selector in selectors_of(contract).items():
        _refuse_selector(place, selector)
    return contract


def selectors_of(contract: ContractSpec) -> dict[str, Selector]:
    """The selectors that a contract has, by the name of their field."""
    named = {
        "select": contract.select,
        "then": contract.then,
        "before": contract.before,
    }
    return {name: selector for name, selector in named.items() if selector is not None}


def canonical(spec: msgspec.Struct) -> dict[str, Any]:
    """The one encoding of a spec as a JSON value: the same spec, the same value."""
    encoded: dict[str, Any] = msgspec.to_builtins(spec)
    return encoded


def hash_of_spec(spec: msgspec.Struct) -> str:
    """The SHA-256 (hex) of the canonical encoding."""
    return hashlib.sha256(
        msgspec.json.encode(canonical(spec), order="deterministic")
    ).hexdigest()


def in_words(error: Exception) -> BadDefinition:
    """What is wrong with the shape of a spec, with the place that msgspec names."""
    if isinstance(error, RecursionError):
        return BadDefinition("The definition is nested too deep.")
    what, field = wrong_shape(error)
    where = f" in “{field}”" if field else ""
    return BadDefinition(f"{what}{where}.", field=field)


def _refuse_parts(contract: ContractSpec) -> None:
    """Each operator has its own further part, and no other."""
    operator = contract.operator
    if (operator is Operator.ALWAYS) != (contract.then is not None):
        raise BadDefinition(
            "“always” needs to know what must hold of the chosen steps."
            if contract.then is None
            else "Only “always” says what must hold of the chosen steps.",
            field="then",
        )
    if (operator is Operator.PRECEDES) != (contract.before is not None):
        raise BadDefinition(
            "“precedes” needs to know which step must come before."
            if contract.before is None
            else "Only “precedes” names a step that must come before.",
            field="before",
        )
    if operator is Operator.AT_MOST and not 1 <= contract.n <= MOST_STEPS:
        raise BadDefinition(
            f"“at most” needs a number from 1 to {MOST_STEPS:,}; for none at all use "
            "“never”.",
            field="n",
        )
    if operator is not Operator.AT_MOST and contract.n:
        raise BadDefinition("Only “at most” has a number.", field="n")
    if len(contract.sentence) > LONGEST_SENTENCE:
        raise BadDefinition(
            f"The sentence may have at most {LONGEST_SENTENCE} characters.",
            field="sentence",
        )


def _refuse_selector(place: str, selector: Selector) -> None:
    if selector.kind not in _KINDS:
        raise BadDefinition(
            f"“{selector.kind[:60]}” is no kind of step.", field=f"{place}.kind"
        )
    if selector.status not in _STATUSES:
        raise BadDefinition(
            f"“{selector.status[:60]}” is no status of a step.", field=f"{place}.status"
        )
    for name in ("name", "agent", "model"):
        if len(getattr(selector, name)) > LONGEST_PATTERN:
            raise BadDefinition(
                f"A name may have at most {LONGEST_PATTERN} characters.",
                field=f"{place}.{name}",
            )
    # Nothing would be said about the chosen steps otherwise.
    if place in {"then", "before"} and selector == Selector():
        raise BadDefinition(
            "Say at least one thing about the step: a kind, a name, a condition.",
            field=place,
        )
