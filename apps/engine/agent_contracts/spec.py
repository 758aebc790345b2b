"""What a contract of an agent says, as plain values: what is read, and what must hold.

A spec is a JSON value in the database and in files; `canonical` is its one encoding,
so that its hash (`hash_of_spec` of `engine/contracts/spec.py`) is stable.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from apps.engine.contracts.spec import ContractSpec
from apps.engine.extraction.spec import DecisionNormaliser


class Kind(StrEnum):
    """What must hold."""

    EQUALITY = "equality"
    ONE_OF = "one_of"
    RANGE = "range"
    REGEX = "regex"
    SUBSET = "subset"
    WHEN_THEN = "when_then"
    JSON_SCHEMA = "json_schema"
    CEL = "cel"
    TEMPORAL = "temporal"


class Subject(StrEnum):
    """What of an invocation a value is read from."""

    OUTPUT = "output"
    INPUT = "input"
    DECISION = "decision"
    CALLS = "calls"


class Language(StrEnum):
    """How a condition on an invocation is written."""

    JMESPATH = "jmespath"
    CEL = "cel"


class _Spec(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """Fields with their default are left out of the encoding."""


class When(_Spec, frozen=True, kw_only=True):
    """A condition on what an invocation was given, or on what it gave back.

    A JMESPath expression is asked of `of`, and is true where what it finds is true in
    the sense of JMESPath (not null, false, "" or empty). CEL names `input` and `output`
    itself and has no `of`.
    """

    language: Language = Language.JMESPATH
    expression: str
    of: Subject = Subject.INPUT


class Rule(_Spec, frozen=True, kw_only=True):
    """What is read, and what must hold of it.

    `subject` and the JMESPath `path` say what is read; `tool` names the tool (`*`, `?`
    and `|` as in names) whose arguments are read where the subject is `calls`.
    `expected` is the value of `equality` and `subset` (unset is not null), `values`
    those of `one_of`; both are compared after the `normalisers`. `minimum` and
    `maximum` are allowed themselves unless they are exclusive. `pattern` is RE2's and is
    searched for unless `full` asks that it fits all of the text.
    """

    kind: Kind
    subject: Subject = Subject.OUTPUT
    tool: str = ""
    path: str = ""
    normalisers: tuple[DecisionNormaliser, ...] = ()
    expected: Any | UnsetType = UNSET
    values: tuple[Any, ...] = ()
    minimum: int | float | None = None
    maximum: int | float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    pattern: str = ""
    full: bool = False
    json_schema: Any | UnsetType = UNSET
    expression: str = ""


class AgentContractSpec(Rule, frozen=True, kw_only=True):
    """What an agent must hold for an input.

    `tasks` limits it to tasks of these names (`*`, `?`, `|`), `applies_when` to inputs.
    `when_then` asks `then` of the invocations of which `when` is true. `temporal` is a
    contract over the agent's own steps. `sentence` is the author's own wording.
    """

    name: str
    tasks: str = ""
    applies_when: When | None = None
    when: When | None = None
    then: Rule | None = None
    temporal: ContractSpec | None = None
    sentence: str = ""


def canonical(spec: msgspec.Struct) -> dict[str, Any]:
    """The one encoding of a spec as a JSON value: the same spec, the same value."""
    encoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(spec))
    return encoded
