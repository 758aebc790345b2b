"""Forms of agents: what each must hold, how its decision is found, what is expected.

The kind is chosen first, so that a form has the fields of its kind and no other.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django import forms

from apps.engine.agent_contracts import (
    AgentContractSpec,
    BadDefinition,
    Expect,
    Kind,
    Language,
    OutcomeExpectation,
    Subject,
    canonical,
    decoded_agent_contract,
    decoded_expectation,
)
from apps.engine.agent_contracts.decoding import LONGEST_NAME
from apps.engine.contracts.expressions import LONGEST_EXPRESSION
from apps.engine.contracts.patterns import LONGEST_PATTERN
from apps.engine.contracts.spec import LONGEST_SENTENCE
from apps.engine.extraction import (
    NORMALISERS,
    BadDecision,
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
    KINDS,
    LONGEST_LIST,
    THEN_KINDS,
    area,
    check,
    choice,
    rule_fields,
    rule_initial,
    rule_of,
    several,
    text,
    written,
)
from apps.web.contract_forms import ContractForm as StepsForm
from apps.web.contract_forms import initial_of as steps_initial
from apps.web.forms import WholeField

LONGEST_NOTE: Final = 500
LANGUAGES: Final = [
    (Language.JMESPATH, "a path (JMESPath)"),
    (Language.CEL, "a CEL expression"),
]
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


class MarkedForm(forms.Form):
    """A form that shows what the engine says of a field beside that field."""

    note = text("Why", most=LONGEST_NOTE, hint="Shown in the history.")
    number = WholeField(min_value=0, max_value=2**31 - 1, required=False)

    def seen(self) -> int | None:
        """The version that the form was opened on, where it says so."""
        number: int | None = self.cleaned_data.get("number")
        return number

    def put_error(self, error: BadDefinition | BadDecision) -> None:
        """Show what is wrong at the field that says it, else above the form."""
        name = error.field.partition("[")[0].replace(".", "_")
        while name and name not in self.fields:
            name = name.rpartition("_")[0]
        self.add_error(name or None, str(error))

    def mark_errors(self) -> None:
        """Tell assistive technology which fields are wrong, and where it says why."""
        for name in self.errors:
            if name in self.fields:
                bound = self[name]
                bound.field.widget.attrs |= {
                    "aria-invalid": "true",
                    "aria-describedby": f"{bound.auto_id}_error",
                }

    def wrong(self) -> list[tuple[str, str]]:
        """Everything that is wrong: the label of the field and a sentence."""
        return [
            (str(self.fields[name].label) if name in self.fields else "", str(error))
            for name, errors in self.errors.items()
            for error in errors
        ]


class TemporalForm(StepsForm):
    """A contract over the steps of one agent: no agent to choose, no level."""

    label = None  # type: ignore[assignment]
    sentence = None  # type: ignore[assignment]
    level = None  # type: ignore[assignment]
    scope = None  # type: ignore[assignment]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in [name for name in self.fields if name.endswith("_agent")]:
            del self.fields[name]

    def part(self, name: str) -> list[Any]:
        """The fields of one selector."""
        return [self[one] for one in self.fields if one.startswith(f"{name}_")]

    def plain(self) -> dict[str, Any]:
        """What the engine reads; raises `BadDefinition` for JSON that is none."""
        self.cleaned_data |= {
            "scope": "",
            **{f"{part}_agent": "" for part in ("select", "then", "before")},
        }
        spec = self._spec()
        del spec["scope"]
        return spec


class HeldForm(MarkedForm):
    """A contract of an agent, of one kind."""

    name = text(
        "Name", most=LONGEST_NAME, example="knows the call back number", required=True
    )
    sentence = text(
        "In your words",
        most=LONGEST_SENTENCE,
        hint="Why it must hold; shown beside it.",
    )
    tasks = text(
        "Only in tasks named",
        most=LONGEST_PATTERN,
        hint="* and ? stand for anything, | for alternatives. Empty: in all tasks.",
        example="refund *",
    )
    applies_when_expression = text(
        "Only for inputs of which this is true",
        most=LONGEST_EXPRESSION,
        hint="Empty: for all inputs.",
        example="plan == 'gold'",
    )
    applies_when_language = choice("written as", LANGUAGES)

    def __init__(
        self, *args: Any, kind: Kind, then: Kind = Kind.EQUALITY, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.kind, self.then = kind, then
        self.steps: TemporalForm | None = None
        if kind is Kind.TEMPORAL:
            self.steps = TemporalForm(*args, **kwargs)
        elif kind is Kind.WHEN_THEN:
            self._add_when()
            self.fields |= rule_fields(then, "then_")
        else:
            self.fields |= rule_fields(kind)

    def _add_when(self) -> None:
        self.fields["when_expression"] = text(
            "When this is true",
            most=LONGEST_EXPRESSION,
            hint="A path such as plan == 'gold'; in CEL, input and output are named.",
            example="plan == 'gold'",
            required=True,
        )
        self.fields["when_of"] = choice(
            "of", [(Subject.INPUT, "its input"), (Subject.OUTPUT, "its output")]
        )
        self.fields["when_language"] = choice("written as", LANGUAGES)

    @property
    def kind_words(self) -> str:
        """The kind for people."""
        return KINDS[self.kind]

    @property
    def rule(self) -> list[Any]:
        """The fields of what must hold."""
        part = "then_" if self.kind is Kind.WHEN_THEN else ""
        kind = self.then if part else self.kind
        return [self[name] for name in rule_fields(kind, part) if name in self.fields]

    @property
    def whens(self) -> list[Any]:
        """The fields of the condition of `when_then`."""
        return [self[one] for one in self.fields if one.startswith("when_")]

    def is_valid(self) -> bool:
        """Whether every field is, those of the steps included."""
        is_valid = super().is_valid()
        return (self.steps is None or self.steps.is_valid()) and is_valid

    def put_error(self, error: BadDefinition | BadDecision) -> None:
        """Show what is wrong at its field; that of a step among the steps."""
        if self.steps is not None and error.field.startswith("temporal."):
            field = error.field.partition(".")[2]
            self.steps.put_error(BadDefinition(str(error), field=field))
            if not self.steps.errors:
                self.add_error(None, str(error))
            return
        super().put_error(error)

    def mark_errors(self) -> None:
        """As that of all forms, for the steps too."""
        super().mark_errors()
        if self.steps is not None:
            self.steps.mark_errors()

    def wrong(self) -> list[tuple[str, str]]:
        """Everything that is wrong, those of the steps included."""
        found = super().wrong()
        steps = self.steps
        if steps is None:
            return found
        return found + [
            (str(steps.fields[name].label) if name in steps.fields else "", str(error))
            for name, errors in steps.errors.items()
            for error in errors
        ]

    def wanted(self) -> AgentContractSpec:
        """The contract; raises `BadDefinition` with the field that is wrong."""
        data = self.cleaned_data
        spec: dict[str, Any] = {
            "kind": self.kind.value,
            **{name: data[name] for name in ("name", "tasks", "sentence")},
        }
        if data["applies_when_expression"]:
            spec["applies_when"] = self._condition("applies_when")
        if self.steps is not None:
            spec["temporal"] = _in_steps(self.steps)
        elif self.kind is Kind.WHEN_THEN:
            when = self._condition("when")
            if when["language"] == Language.JMESPATH:
                when["of"] = data["when_of"] or Subject.INPUT.value
            then = {"kind": self.then.value, **rule_of(data, self.then, "then_")}
            spec |= {"when": when, "then": then}
        else:
            spec |= rule_of(data, self.kind)
        return decoded_agent_contract(spec)

    def _condition(self, part: str) -> dict[str, Any]:
        language = self.cleaned_data[f"{part}_language"] or Language.JMESPATH.value
        return {
            "language": language,
            "expression": self.cleaned_data[f"{part}_expression"],
        }


def _in_steps(steps: TemporalForm) -> dict[str, Any]:
    try:
        return steps.plain()
    except BadDefinition as error:
        raise BadDefinition(str(error), field=f"temporal.{error.field}") from None


def held_initial(spec: AgentContractSpec) -> dict[str, Any]:
    """The values of the fields of a stored contract."""
    values: dict[str, Any] = {
        "name": spec.name,
        "tasks": spec.tasks,
        "sentence": spec.sentence,
    }
    for part, when in (("applies_when", spec.applies_when), ("when", spec.when)):
        if when is not None:
            values |= {
                f"{part}_expression": when.expression,
                f"{part}_language": when.language.value,
                f"{part}_of": when.of.value,
            }
    if spec.temporal is not None:
        plain = canonical(spec.temporal)
        plain.pop("sentence", None)
        return values | {
            name: value
            for name, value in steps_initial(label="", spec=plain).items()
            if name not in {"label", "scope", "level"}
        }
    if spec.then is not None:
        return values | rule_initial(spec.then, "then_")
    return values | rule_initial(spec)


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
            "Arguments that count", most=LONGEST_LIST, hint="One a line. Empty: all."
        )
        return {"tool": tool, "arguments": arguments}
    if kind is DecisionKind.LABEL:
        hint = "One a line. The output must name exactly one of them."
        return {"labels": area("Labels", most=LONGEST_LIST, hint=hint)}
    if kind is DecisionKind.WHOLE_OUTPUT:
        return {"prose": check("Compare running text too, word for word")}
    return {}


class DecisionForm(MarkedForm):
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


class ExpectationForm(MarkedForm):
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


class ToolsForm(forms.Form):
    """Which tools change something: those that are ticked, and others by name."""

    tools = forms.CharField(max_length=20_000, required=False)


class FileForm(forms.Form):
    """A file of definitions, chosen or pasted."""

    text = forms.CharField(
        max_length=300_000, required=False, strip=False, label="The file as text"
    )
    seen = forms.CharField(max_length=16, required=False)


def kinds_of_contract(chosen: Kind) -> list[tuple[str, str, bool]]:
    """The kinds of contracts as code, words, and whether it is the chosen one."""
    return [(one.value, words, one is chosen) for one, words in KINDS.items()]


def kinds_of_then(chosen: Kind) -> list[tuple[str, str, bool]]:
    """The kinds that may stand in `then`."""
    return [(one.value, KINDS[one], one is chosen) for one in THEN_KINDS]


def kinds_of_decision(chosen: DecisionKind) -> list[tuple[str, str, bool]]:
    """The kinds of rules that find a decision."""
    return [(one.value, words, one is chosen) for one, words in DECISIONS.items()]
