"""How the decision of an agent is found, as plain values that people write and store.

Decoding names the field that is wrong in a sentence; `encoded` is the one encoding, so
that the same definition is the same value and has the same hash.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from apps.engine.bodies.patterns import (
    LONGEST_PATTERN,
    BadPattern,
    names,
    regular_expression,
)
from apps.engine.extraction.paths import BadPath, Path
from apps.engine.shape_words import wrong_shape

MOST_LABELS: Final = 50
LONGEST_LABEL: Final = 100
MOST_ARGUMENTS: Final = 50
LONGEST_ARGUMENT: Final = 200


class BadDecision(ValueError):
    """A definition that is not used: `field` names the place, the message says why."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class DecisionKind(StrEnum):
    """By which rule a decision is found."""

    AUTOMATIC = "automatic"
    JMESPATH = "jmespath"
    REGEX = "regex"
    LAST_TOOL_CALL = "last_tool_call"
    LABEL = "label"
    WHOLE_OUTPUT = "whole_output"


class Source(StrEnum):
    """What a path or a pattern is applied to."""

    OUTPUT = "output"
    ARGUMENTS = "arguments"
    RESULT = "result"


class Place(StrEnum):
    """Which of several matches of a pattern is taken."""

    FIRST = "first"
    LAST = "last"


class Which(StrEnum):
    """Which invocation of the agent in a trace decides, or each of them."""

    FIRST = "first"
    LAST = "last"
    EACH = "each"


class DecisionNormaliser(StrEnum):
    """What does not count as a difference; applied in the order they stand in here."""

    WHITE_SPACE = "white_space"
    DATE = "date"
    NUMBER = "number"
    ID = "id"
    CASE = "case"


USUAL: Final = (
    DecisionNormaliser.WHITE_SPACE,
    DecisionNormaliser.NUMBER,
    DecisionNormaliser.CASE,
)
"""What is used where a definition names no normalisers; an empty list is none."""


class DecisionSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the decision of an agent is found, and what of it counts as the same.

    `expression` is that of `jmespath` and `regex`. `source` is what they read: the
    output, or the arguments or the result of the last call of a tool; `tool` names it
    with `*`, `?` and alternatives after `|` (empty for any), for `last_tool_call` too.
    `place` is which match of a pattern is taken. `arguments` are those that
    `last_tool_call` keeps of a call that has them (empty for all), `labels` those that `label` looks for.
    `prose` asks `whole_output` to compare running text as well.
    """

    kind: DecisionKind = DecisionKind.AUTOMATIC
    expression: str = ""
    source: Source = Source.OUTPUT
    tool: str = ""
    place: Place = Place.LAST
    arguments: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    prose: bool = False
    of: Which = Which.LAST
    normalisers: tuple[DecisionNormaliser, ...] = USUAL


AUTOMATIC: Final = DecisionSpec()
"""What is used where nobody said how the decision of an agent is found."""

_ORDER: Final = tuple(DecisionNormaliser)
_EVERY_KIND: Final = frozenset({"kind", "of", "normalisers"})
_FIELDS: Final = {
    DecisionKind.AUTOMATIC: frozenset[str](),
    DecisionKind.JMESPATH: frozenset({"expression", "source", "tool"}),
    DecisionKind.REGEX: frozenset({"expression", "source", "tool", "place"}),
    DecisionKind.LAST_TOOL_CALL: frozenset({"tool", "arguments"}),
    DecisionKind.LABEL: frozenset({"labels"}),
    DecisionKind.WHOLE_OUTPUT: frozenset({"prose"}),
}


def decoded_decision(value: Any) -> DecisionSpec:
    """The definition in a JSON value; raises `BadDecision` with field and sentence.

    Normalisers come back in the order in which they are applied, each once.
    """
    try:
        spec = msgspec.convert(value, DecisionSpec)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _in_words(error) from None
    _refuse_strangers(spec)
    _refuse_expression(spec)
    _refuse_tool(spec)
    _refuse_labels(spec)
    declared = tuple([one for one in _ORDER if one in spec.normalisers])
    return msgspec.structs.replace(spec, normalisers=declared)


def encoded(spec: DecisionSpec) -> dict[str, Any]:
    """The one encoding of a definition as a JSON value, every field in it."""
    value: dict[str, Any] = msgspec.to_builtins(spec)
    return value


def _in_words(error: Exception) -> BadDecision:
    if isinstance(error, RecursionError):
        return BadDecision("The definition is nested too deep.")
    what, field = wrong_shape(error)
    where = f" in “{field}”" if field else ""
    return BadDecision(f"{what}{where}.", field=field)


def _refuse_strangers(spec: DecisionSpec) -> None:
    """A field that says nothing for this kind is a misunderstanding, so it is told."""
    taken = _FIELDS[spec.kind] | _EVERY_KIND
    for name in DecisionSpec.__struct_fields__:
        if name not in taken and getattr(spec, name) != getattr(AUTOMATIC, name):
            raise BadDecision(f"“{spec.kind}” takes no “{name}”.", field=name)


def _refuse_expression(spec: DecisionSpec) -> None:
    if "expression" not in _FIELDS[spec.kind]:
        return
    if not spec.expression.strip():
        raise BadDecision(
            "Say where the decision stands: the expression is empty.",
            field="expression",
        )
    try:
        if spec.kind is DecisionKind.JMESPATH:
            Path(spec.expression)
        else:
            regular_expression(spec.expression)
    except (BadPath, BadPattern) as error:
        raise BadDecision(str(error), field="expression") from None


def _refuse_tool(spec: DecisionSpec) -> None:
    if spec.tool and "source" in _FIELDS[spec.kind] and spec.source is Source.OUTPUT:
        raise BadDecision(
            "A tool is named, but the output is what is read; choose its arguments or "
            "its result.",
            field="tool",
        )
    if len(spec.tool) > LONGEST_PATTERN:
        raise BadDecision(
            f"A name may have at most {LONGEST_PATTERN} characters.", field="tool"
        )
    names(spec.tool)
    if len(spec.arguments) > MOST_ARGUMENTS:
        raise BadDecision(
            f"Name at most {MOST_ARGUMENTS} arguments.", field="arguments"
        )
    if any(not 0 < len(one) <= LONGEST_ARGUMENT for one in spec.arguments):
        raise BadDecision(
            f"The name of an argument has 1 to {LONGEST_ARGUMENT} characters.",
            field="arguments",
        )


def _refuse_labels(spec: DecisionSpec) -> None:
    if spec.kind is not DecisionKind.LABEL:
        return
    if not 1 <= len(spec.labels) <= MOST_LABELS:
        raise BadDecision(
            f"Declare 1 to {MOST_LABELS} labels to look for.", field="labels"
        )
    if any(not label.strip() or len(label) > LONGEST_LABEL for label in spec.labels):
        raise BadDecision(
            f"A label has 1 to {LONGEST_LABEL} characters.", field="labels"
        )
    folded = [" ".join(label.casefold().split()) for label in spec.labels]
    if len(set(folded)) < len(folded):
        raise BadDecision(
            "Two labels differ in case or white space only, which a text does not "
            "tell apart.",
            field="labels",
        )
