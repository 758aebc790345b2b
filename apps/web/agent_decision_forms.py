"""Forms of agents beside contracts: how a decision is found, what outcomes must be."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django import forms

from apps.engine.agent_contracts import (
    BadDefinition,
    Expect,
    OutcomeExpectation,
    decoded_expectation,
)
from apps.engine.contracts.expressions import LONGEST_EXPRESSION
from apps.engine.contracts.patterns import LONGEST_PATTERN
from apps.engine.extraction import (
    NORMALISERS,
    DecisionKind,
    DecisionSpec,
    Place,
    Source,
    Which,
    decoded_decision,
    encoded,
)
from apps.engine.extraction.spec import USUAL
from apps.web.agent_fields import (
    LONGEST_LIST,
    AskingForm,
    area,
    check,
    choice,
    several,
    text,
    written,
)

DECISIONS: Final = {
    DecisionKind.AUTOMATIC: "Automatic",
    DecisionKind.JMESPATH: "A field",
    DecisionKind.LABEL: "A label in the text",
    DecisionKind.LAST_TOOL_CALL: "The last tool call",
    DecisionKind.REGEX: "A pattern",
    DecisionKind.WHOLE_OUTPUT: "The whole output",
}
EXPECTED: Final = [
    (Expect.SUCCESS, "a pass, or a full score"),
    (Expect.SHARE, "at least a share of the possible score"),
    (Expect.POINTS, "at least so many points"),
    (Expect.LABEL, "one of these labels"),
]


_OF: Final = [
    (Which.LAST, "its last invocation in the trace"),
    (Which.FIRST, "its first invocation in the trace"),
    (Which.EACH, "each of its invocations, in order"),
]
_SOURCES: Final = [
    (Source.OUTPUT, "the output"),
    (Source.ARGUMENTS, "the arguments of the last call of a tool"),
    (Source.RESULT, "the result of the last call of a tool"),
]


def _decision_fields(kind: DecisionKind) -> dict[str, forms.Field]:
    source = choice("Read from", _SOURCES)
    tool = text(
        "Tool",
        most=LONGEST_PATTERN,
        hint="* and ? stand for anything, | for alternatives. Empty: any tool.",
        example="send_* | reply",
    )
    if kind is DecisionKind.JMESPATH:
        path = text(
            "Path of the field",
            most=LONGEST_EXPRESSION,
            hint="The name of a field, or a JMESPath expression.",
            example="route",
        )
        return {"expression": path, "source": source, "tool": tool}
    if kind is DecisionKind.REGEX:
        pattern = text(
            "Pattern",
            most=LONGEST_EXPRESSION,
            hint="A regular expression (RE2). A group in parentheses is the decision.",
            example=r"Category: (\w+)",
        )
        places = [(Place.LAST, "the last match"), (Place.FIRST, "the first match")]
        return {
            "expression": pattern,
            "place": choice("Take", places),
            "source": source,
            "tool": tool,
        }
    if kind is DecisionKind.LAST_TOOL_CALL:
        arguments = area(
            "Arguments that count",
            most=LONGEST_LIST,
            hint="One a line. Empty: all. Those that a call does not have are left out.",
        )
        return {"tool": tool, "arguments": arguments}
    if kind is DecisionKind.LABEL:
        hint = "One a line. The output must name exactly one of them."
        return {"labels": area("Labels", most=LONGEST_LIST, hint=hint)}
    if kind is DecisionKind.WHOLE_OUTPUT:
        return {"prose": check("Compare running text too, word for word")}
    return {}


class DecisionForm(AskingForm):
    """How the decision of an agent is found, by one kind of rule."""

    of = choice("Which decides", _OF)
    normalisers = several(
        "What does not count as a difference",
        [(one, words) for one, words in NORMALISERS.items()],
        initial=USUAL,
    )

    def __init__(self, *args: Any, kind: DecisionKind, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        self.fields |= _decision_fields(kind)

    @property
    def rule(self) -> list[Any]:
        """The fields of this kind."""
        return [self[name] for name in _decision_fields(self.kind)]

    @property
    def general(self) -> list[Any]:
        """The fields of every kind."""
        return [self[name] for name in ("normalisers", "of", "note")]

    def wanted(self) -> DecisionSpec:
        """The definition; raises `BadDecision` with the field that is wrong."""
        data = self.cleaned_data
        spec: dict[str, Any] = {
            "kind": self.kind.value,
            "of": data["of"] or Which.LAST.value,
            "normalisers": data["normalisers"],
        }
        for name in _decision_fields(self.kind):
            value = data[name]
            if name in {"labels", "arguments"}:
                value = written(value)
            if value or name in {"expression", "labels"}:
                spec[name] = value
        if spec.get("source", Source.OUTPUT) == Source.OUTPUT and "source" in data:
            spec.pop("tool", None)
        return decoded_decision(spec)


def decision_initial(spec: DecisionSpec) -> dict[str, Any]:
    """The values of the fields of a stored definition."""
    plain = encoded(spec)
    return plain | {
        "arguments": "\n".join(spec.arguments),
        "labels": "\n".join(spec.labels),
    }


class ExpectationForm(AskingForm):
    """What the outcome of some tasks must be."""

    task = text(
        "Tasks named",
        most=LONGEST_PATTERN,
        hint="A name, or a pattern with * and ?, alternatives after |. * is every task; "
        "the closest one counts.",
        required=True,
    )
    expect = choice("The outcome must be", EXPECTED)
    at_least = text("At least", most=40, hint="A share between 0 and 1, or points.")
    labels = area("Labels", most=LONGEST_LIST, hint="One a line, exactly as recorded.")

    @property
    def expects(self) -> list[Any]:
        """What is expected."""
        return [self["expect"]]

    @property
    def bounds(self) -> list[Any]:
        """The bound of a share or of points."""
        return [self["at_least"]]

    @property
    def labelled(self) -> list[Any]:
        """The labels that pass."""
        return [self["labels"]]

    def wanted(self) -> tuple[str, OutcomeExpectation]:
        """The tasks and what is expected; raises `BadDefinition` with the field."""
        data = self.cleaned_data
        expect = data["expect"] or Expect.SUCCESS.value
        spec: dict[str, Any] = {"expect": expect}
        if expect in {Expect.SHARE, Expect.POINTS}:
            spec["at_least"] = _number(data["at_least"])
        if expect == Expect.LABEL:
            spec["labels"] = written(data["labels"])
        return data["task"].strip(), decoded_expectation(spec)


def _number(typed: str) -> float | None:
    if not typed:
        return None
    try:
        value = msgspec.json.decode(typed.replace(",", "."), type=float)
    except msgspec.DecodeError:
        raise BadDefinition(
            "Write a number, such as 0.8 or 12.", field="at_least"
        ) from None
    return value


class AgentNameForm(forms.Form):
    """The name of an agent, and what it is for."""

    name = forms.CharField(max_length=300)
    description = forms.CharField(max_length=2_000, required=False)
    seen = forms.CharField(max_length=16, required=False)


class ToolsForm(forms.Form):
    """Which tools change something: those that are ticked, and others by name."""

    tools = forms.CharField(max_length=20_000, required=False)
    seen = forms.CharField(max_length=16, required=False)


class FileForm(forms.Form):
    """A file of definitions, chosen or pasted."""

    text = forms.CharField(
        max_length=300_000, required=False, strip=False, label="The file as text"
    )
    seen = forms.CharField(max_length=16, required=False)


def kinds_of_decision(chosen: DecisionKind) -> list[tuple[str, str, bool]]:
    """The kinds of rules that find a decision."""
    return [(one.value, words, one is chosen) for one, words in DECISIONS.items()]
