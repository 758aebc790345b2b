"""The form of a contract of an agent: the kind is chosen first, then it has its fields."""

from __future__ import annotations

from typing import Any, Final

from apps.engine.agent_contracts import (
    AgentContractSpec,
    BadDefinition,
    Kind,
    Language,
    Subject,
    canonical,
    decoded_agent_contract,
)
from apps.engine.agent_contracts.decoding import LONGEST_NAME
from apps.engine.contracts.expressions import LONGEST_EXPRESSION
from apps.engine.contracts.patterns import LONGEST_PATTERN
from apps.engine.contracts.spec import LONGEST_SENTENCE
from apps.engine.extraction import (
    BadDecision,
)
from apps.web.agent_fields import (
    KINDS,
    THEN_KINDS,
    AskingForm,
    choice,
    rule_fields,
    rule_initial,
    rule_of,
    text,
)
from apps.web.contract_forms import ContractForm as StepsForm
from apps.web.contract_forms import initial_of as steps_initial

LANGUAGES: Final = [
    (Language.JMESPATH, "a path (JMESPath)"),
    (Language.CEL, "a CEL expression"),
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


class HeldForm(AskingForm):
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
    def applies(self) -> list[Any]:
        """The fields of the condition for which inputs it is asked."""
        return [self["applies_when_expression"], self["applies_when_language"]]

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


def kinds_of_contract(chosen: Kind) -> list[tuple[str, str, bool]]:
    """The kinds of contracts as code, words, and whether it is the chosen one."""
    return [(one.value, words, one is chosen) for one, words in KINDS.items()]


def kinds_of_then(chosen: Kind) -> list[tuple[str, str, bool]]:
    """The kinds that may stand in `then`."""
    return [(one.value, KINDS[one], one is chosen) for one in THEN_KINDS]
