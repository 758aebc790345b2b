"""How a decision is found, in plain English for pages."""

from __future__ import annotations

from typing import Final

from apps.engine.extraction.spec import (
    DecisionKind,
    DecisionNormaliser,
    DecisionSpec,
    Place,
    Source,
    Which,
)

NORMALISERS: Final = {
    DecisionNormaliser.WHITE_SPACE: "white space of any length alike",
    DecisionNormaliser.DATE: "all writings of a date alike",
    DecisionNormaliser.NUMBER: "all writings of a number alike",
    DecisionNormaliser.ID: "ids alike with or without separators",
    DecisionNormaliser.CASE: "upper and lower case alike",
}
_SIMPLE: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_LONGEST: Final = 160


def sentence_of(spec: DecisionSpec) -> str:
    """How the decision is found and what counts as the same, one sentence."""
    parts = [_where(spec), *[NORMALISERS[one] for one in spec.normalisers]]
    if spec.of is Which.FIRST:
        parts.append("in its first invocation")
    elif spec.of is Which.EACH:
        parts.append("in each of its invocations")
    return f"{', '.join(parts)}."


def _where(spec: DecisionSpec) -> str:
    if spec.kind is DecisionKind.JMESPATH:
        return _path(spec)
    if spec.kind is DecisionKind.REGEX:
        place = "first" if spec.place is Place.FIRST else "last"
        return f"The {place} match of “{_cut(spec.expression)}” in {_subject(spec)}"
    if spec.kind is DecisionKind.LAST_TOOL_CALL:
        return _call(spec)
    if spec.kind is DecisionKind.LABEL:
        labels = _cut(", ".join(f"“{label}”" for label in spec.labels))
        return f"The one label that the output names, of {labels}"
    if spec.kind is DecisionKind.WHOLE_OUTPUT:
        return "The whole output" + (", prose too" if spec.prose else "")
    return "What the automatic rules find first"


def _path(spec: DecisionSpec) -> str:
    is_field = all(char in _SIMPLE for char in spec.expression)
    what = "The field" if is_field else "What is found at"
    of = "of" if is_field else "in"
    return f"{what} “{_cut(spec.expression)}” {of} {_subject(spec)}"


def _call(spec: DecisionSpec) -> str:
    said = f"The last call of {_tool(spec)}"
    if not spec.arguments:
        return f"{said} with its arguments"
    return f"{said} with {_cut(', '.join(f'“{one}”' for one in spec.arguments))}"


def _subject(spec: DecisionSpec) -> str:
    if spec.source is Source.OUTPUT:
        return "the output"
    return f"the {spec.source} of the last call of {_tool(spec)}"


def _tool(spec: DecisionSpec) -> str:
    if not spec.tool.strip("* "):
        return "any tool"
    names = [f"“{name.strip()}”" for name in spec.tool.split("|")]
    return _cut(" or ".join(names))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
