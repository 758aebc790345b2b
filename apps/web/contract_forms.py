"""Forms of contracts and planted facts: fields for people, a spec for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from django import forms
from django.forms.boundfield import BoundField

from apps.engine.check import Level
from apps.engine.contracts import BadDefinition
from apps.engine.contracts.definitions import CONTRACT, LONGEST_LABEL, PLANTED_FACT
from apps.engine.contracts.expressions import LONGEST_EXPRESSION
from apps.engine.contracts.fact_spec import LONGEST_MARK, LONGEST_VALUE
from apps.engine.contracts.mentions import Normaliser
from apps.engine.contracts.patterns import LONGEST_PATTERN
from apps.engine.contracts.schemas import LARGEST_SCHEMA
from apps.engine.contracts.spec import (
    LONGEST_SENTENCE,
    MOST_STEPS,
    Language,
    Operator,
    Scope,
    Subject,
)
from apps.engine.contracts.wording import KINDS
from apps.engine.trace import StepStatus
from apps.screening.definitions import Wanted
from apps.web.forms import MarkedForm, WholeField

OPERATORS: Final = [
    (Operator.PRECEDES, "No such step without another one before it"),
    (Operator.NEVER, "There is never such a step"),
    (Operator.ALWAYS, "Every such step also is or holds something"),
    (Operator.EVENTUALLY, "There is such a step at least once"),
    (Operator.AT_MOST, "There are at most n such steps"),
]
SCOPES: Final = [
    (Scope.TRACE, "each trace"),
    (Scope.INVOCATION, "each invocation of the agent"),
]
LEVELS: Final = [
    (Level.REVIEW_SIGNAL, "queued for review"),
    (Level.TELEMETRY, "shown on the trace only"),
]
CONDITIONS: Final = [
    ("", "no condition"),
    ("cel", "a CEL expression that is true"),
    (Subject.ARGUMENTS, "a JSON Schema of the arguments"),
    (Subject.RESULT, "a JSON Schema of the result"),
    (Subject.OUTPUT, "a JSON Schema of the output"),
    (Subject.STEP, "a JSON Schema of the step, without texts"),
]
NORMALISERS: Final = [
    (Normaliser.SPACE, "capitals and white space do not count"),
    (Normaliser.CASE, "capitals do not count"),
    (Normaliser.ID, "an id: capitals and separators do not count"),
    (Normaliser.NUMBER, "a number, however it is written"),
    (Normaliser.EXACT, "letter by letter"),
]
_PARTS: Final = {"select": "Which steps", "then": "What", "before": "Which step"}


def _text(label: str, *, most: int, hint: str = "", example: str = "") -> forms.Field:
    return forms.CharField(
        label=label,
        max_length=most,
        required=False,
        help_text=hint,
        widget=forms.TextInput(attrs={"placeholder": example, "autocomplete": "off"}),
    )


def _choice(label: str, choices: list[Any]) -> forms.Field:
    return forms.ChoiceField(label=label, choices=choices, required=False)


def _area(label: str, *, most: int, hint: str = "", example: str = "") -> forms.Field:
    return forms.CharField(
        label=label,
        max_length=most,
        required=False,
        help_text=hint,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 3, "placeholder": example, "spellcheck": "false"}
        ),
    )


def _selector_fields() -> dict[str, forms.Field]:
    return {
        "kind": _choice(
            "Kind", [(kind, label if kind else "any") for kind, label in KINDS.items()]
        ),
        "name": _text(
            "Tool or step name", most=LONGEST_PATTERN, example="refund_* | pay"
        ),
        "agent": _text("Agent", most=LONGEST_PATTERN, example="any"),
        "model": _text("Model", most=LONGEST_PATTERN, example="any"),
        "status": _choice(
            "Status", [("", "any"), *((one.value, one.value) for one in StepStatus)]
        ),
        "asks": _choice("Condition", CONDITIONS),
        "condition": _area(
            "The condition",
            most=max(LARGEST_SCHEMA, LONGEST_EXPRESSION),
            example="step.arguments.amount <= 100",
        ),
    }


class DefinitionForm(MarkedForm):
    """What contracts and planted facts have in common."""

    kind = ""
    label = forms.CharField(label="Name", max_length=LONGEST_LABEL)
    sentence = _text(
        "In your words",
        most=LONGEST_SENTENCE,
        hint="Why it must hold. Shown beside the contract.",
    )
    level = _choice("What breaks it is", LEVELS)

    def wanted(self) -> Wanted:
        """What is to be defined; raises `BadDefinition` for JSON that is none."""
        spec = {
            "level": self.cleaned_data["level"] or Level.REVIEW_SIGNAL.value,
            "sentence": self.cleaned_data["sentence"],
        }
        return Wanted(
            kind=self.kind, label=self.cleaned_data["label"], spec=spec | self._spec()
        )

    def _spec(self) -> dict[str, Any]:
        raise NotImplementedError

    def put_error(self, error: BadDefinition) -> None:
        """Show what is wrong with the definition at the field that says it."""
        field = self._field_of(error.field)
        self.add_error(field if field in self.fields else None, str(error))

    def _field_of(self, place: str) -> str:
        return place


class ContractForm(DefinitionForm):
    """A contract over steps."""

    kind = CONTRACT
    operator = forms.ChoiceField(label="What must hold", choices=OPERATORS)
    scope = _choice("In", SCOPES)
    n = WholeField(label="At most", min_value=1, max_value=MOST_STEPS, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for part in _PARTS:
            for name, field in _selector_fields().items():
                self.fields[f"{part}_{name}"] = field

    def part(self, name: str) -> list[BoundField]:
        """The fields of one selector."""
        return [self[f"{name}_{field}"] for field in _selector_fields()]

    @property
    def counts(self) -> list[BoundField]:
        """The number of `at most`."""
        return [self["n"]]

    @property
    def choices(self) -> list[BoundField]:
        """Of what it is asked, and what a signal of it is."""
        return [self["scope"], self["level"]]

    @property
    def selects(self) -> list[BoundField]:
        """The fields of the steps that the contract is about."""
        return self.part("select")

    @property
    def thens(self) -> list[BoundField]:
        """The fields of what those steps must be."""
        return self.part("then")

    @property
    def befores(self) -> list[BoundField]:
        """The fields of the step that must come before."""
        return self.part("before")

    def _spec(self) -> dict[str, Any]:
        operator = self.cleaned_data["operator"]
        spec: dict[str, Any] = {
            "operator": operator,
            "scope": self.cleaned_data["scope"] or Scope.TRACE.value,
            "select": self._selector("select"),
        }
        if operator == Operator.ALWAYS:
            spec["then"] = self._selector("then")
        if operator == Operator.PRECEDES:
            spec["before"] = self._selector("before")
        if operator == Operator.AT_MOST:
            spec["n"] = self.cleaned_data["n"] or 0
        return spec

    def _selector(self, part: str) -> dict[str, Any]:
        data = self.cleaned_data
        chosen: dict[str, Any] = {
            name: data[f"{part}_{name}"]
            for name in ("kind", "name", "agent", "model", "status")
        }
        asks, text = data[f"{part}_asks"], data[f"{part}_condition"]
        if asks == Language.CEL:
            chosen["condition"] = {"language": asks, "expression": text.strip()}
        elif asks:
            chosen["condition"] = {
                "language": Language.JSON_SCHEMA.value,
                "subject": asks,
                "json_schema": _json(text, field=f"{part}_condition"),
            }
        return chosen

    def _field_of(self, place: str) -> str:
        part, _, rest = place.partition(".")
        if part not in _PARTS:
            return place
        name = rest.partition(".")[0]
        return f"{part}_{name or 'name'}"


class FactForm(DefinitionForm):
    """A planted fact."""

    kind = PLANTED_FACT
    value = forms.CharField(
        label="The fact",
        max_length=LONGEST_VALUE,
        help_text="As it is told, word for word: an id, a number, a name.",
        widget=forms.TextInput(attrs={"placeholder": "X9-4417", "autocomplete": "off"}),
    )
    normaliser = _choice("The same is", NORMALISERS)
    plant = _text(
        "Words of the message that tells it",
        most=LONGEST_MARK,
        hint="Empty: the first message that names the fact.",
    )
    probe = forms.CharField(
        label="Words of the message that needs it",
        max_length=LONGEST_MARK,
        help_text="A part of it is enough; * stands for anything.",
        widget=forms.TextInput(
            attrs={"placeholder": "what was my order number", "autocomplete": "off"}
        ),
    )
    decoys = _area(
        "Wrong answers",
        most=5_000,
        hint="One a line. Values that look like the fact are found without this.",
    )

    @property
    def choices(self) -> list[BoundField]:
        """What counts as the same, and what a signal of it is."""
        return [self["normaliser"], self["level"]]

    def _spec(self) -> dict[str, Any]:
        data = self.cleaned_data
        decoys = [line.strip() for line in data["decoys"].splitlines()]
        return {
            "value": data["value"],
            "probe": data["probe"],
            "plant": data["plant"],
            "normaliser": data["normaliser"] or Normaliser.SPACE.value,
            "decoys": [line for line in decoys if line],
        }


FORMS: Final[dict[str, type[DefinitionForm]]] = {
    CONTRACT: ContractForm,
    PLANTED_FACT: FactForm,
}


def _json(text: str, *, field: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        why = str(error).rstrip(".")[:200]
        raise _not_json(why, field) from None


def _not_json(why: str, field: str) -> BadDefinition:
    part = field.partition("_")[0]
    return BadDefinition(f"This is not JSON: {why}.", field=f"{part}.condition")


def initial_of(*, label: str, spec: Any) -> dict[str, Any]:
    """The values of the fields of a stored definition; only its name where it is none."""
    if not isinstance(spec, Mapping):
        return {"label": label}
    values = {"label": label, **spec}
    if "decoys" in spec:
        values["decoys"] = "\n".join(spec["decoys"])
    for part in _PARTS:
        for name, value in (values.pop(part, None) or {}).items():
            values[f"{part}_{name}"] = value
        condition = values.pop(f"{part}_condition", None)
        if condition is not None:
            values |= _condition_fields(part, condition)
    return values


def _condition_fields(part: str, condition: Mapping[str, Any]) -> dict[str, str]:
    if condition["language"] == Language.CEL:
        asks, text = Language.CEL.value, condition["expression"]
    else:
        asks = condition.get("subject", Subject.STEP.value)
        encoded = msgspec.json.encode(condition["json_schema"])
        text = msgspec.json.format(encoded, indent=2).decode()
    return {f"{part}_asks": asks, f"{part}_condition": text}
