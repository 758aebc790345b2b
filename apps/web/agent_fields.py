"""The fields of what must hold of one value, and what people type into them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from django import forms
from msgspec import UNSET

from apps.engine.agent_contracts import BadDefinition, Kind, Rule, Subject
from apps.engine.contracts.expressions import LONGEST_EXPRESSION
from apps.engine.contracts.patterns import LONGEST_PATTERN
from apps.engine.contracts.schemas import LARGEST_SCHEMA
from apps.engine.extraction import NORMALISERS, BadDecision
from apps.web.forms import MarkedForm, WholeField

LONGEST_LIST: Final = 20_000
LONGEST_NOTE: Final = 500
KINDS: Final = {
    Kind.EQUALITY: "Is a value",
    Kind.ONE_OF: "Is one of some values",
    Kind.RANGE: "Is a number in a range",
    Kind.REGEX: "Fits a pattern",
    Kind.SUBSET: "Contains something",
    Kind.WHEN_THEN: "When …, then …",
    Kind.TEMPORAL: "Takes its steps in order",
    Kind.JSON_SCHEMA: "Fits a JSON Schema",
    Kind.CEL: "A CEL expression",
}
THEN_KINDS: Final = tuple(
    [one for one in KINDS if one not in {Kind.WHEN_THEN, Kind.TEMPORAL}]
)
_SUBJECTS: Final = [
    (Subject.OUTPUT, "its output"),
    (Subject.DECISION, "its agent decision"),
    (Subject.INPUT, "its input"),
    (Subject.CALLS, "the arguments of each call of a tool"),
]
_AS: Final = [
    ("text", "a text, as it is typed"),
    ("json", "a number, true, false, null or other JSON"),
]
_COMPARED: Final = frozenset({Kind.EQUALITY, Kind.ONE_OF, Kind.RANGE, Kind.SUBSET})


def text(
    label: str,
    *,
    most: int,
    hint: str = "",
    example: str = "",
    required: bool = False,
) -> forms.CharField:
    """A field of one line."""
    widget = forms.TextInput(attrs={"placeholder": example, "autocomplete": "off"})
    return forms.CharField(
        label=label,
        max_length=most,
        required=required,
        help_text=hint,
        widget=widget,
    )


def area(
    label: str, *, most: int, hint: str = "", example: str = ""
) -> forms.CharField:
    """A field of several lines."""
    attrs = {"rows": 3, "placeholder": example, "spellcheck": "false"}
    return forms.CharField(
        label=label,
        max_length=most,
        required=False,
        help_text=hint,
        strip=False,
        widget=forms.Textarea(attrs=attrs),
    )


def choice(label: str, choices: list[Any]) -> forms.ChoiceField:
    """A field that is one of some values, the first one where nothing was sent."""
    plain = [(str(value), words) for value, words in choices]
    return forms.ChoiceField(label=label, choices=plain, required=False)


def check(label: str) -> forms.BooleanField:
    """A box to tick."""
    return forms.BooleanField(label=label, required=False)


def several(
    label: str, choices: Iterable[tuple[Any, str]], *, initial: Iterable[Any] = ()
) -> forms.MultipleChoiceField:
    """Boxes to tick."""
    return forms.MultipleChoiceField(
        label=label,
        choices=[(str(value), words) for value, words in choices],
        required=False,
        initial=[str(one) for one in initial],
        widget=forms.CheckboxSelectMultiple,
    )


def rule_fields(kind: Kind, part: str = "") -> dict[str, forms.Field]:
    """The fields of one kind; `part` stands before their names."""
    fields: dict[str, forms.Field] = {}
    if kind is not Kind.CEL:
        fields["subject"] = choice("What is looked at", _SUBJECTS)
        fields["tool"] = text(
            "Tool",
            most=LONGEST_PATTERN,
            hint="* and ? stand for anything, | for alternatives; * alone is every tool.",
            example="refund",
        )
        fields["path"] = text(
            "The field in it",
            most=LONGEST_EXPRESSION,
            hint="The name of a field, or a JMESPath expression. Empty: all of it.",
            example="order.amount",
        )
    fields |= _kind_fields(kind)
    if kind in _COMPARED:
        fields["normalisers"] = several(
            "What does not count as a difference", NORMALISERS.items()
        )
    return {f"{part}{name}": field for name, field in fields.items()}


def _kind_fields(kind: Kind) -> dict[str, forms.Field]:
    if kind in {Kind.EQUALITY, Kind.SUBSET}:
        label = "It must be" if kind is Kind.EQUALITY else "It must contain"
        return {
            "expected": area(label, most=LONGEST_LIST, example=_example(kind)),
            "expected_as": choice("which is", _AS),
        }
    if kind is Kind.ONE_OF:
        hint = "One a line."
        return {
            "values": area("It must be one of", most=LONGEST_LIST, hint=hint),
            "values_as": choice("each of which is", _AS),
        }
    if kind is Kind.RANGE:
        return {
            "minimum": text("At least", most=40, example="0"),
            "exclusive_minimum": check("above it, not equal to it"),
            "maximum": text("At most", most=40, example="100"),
            "exclusive_maximum": check("below it, not equal to it"),
        }
    if kind is Kind.REGEX:
        return {
            "pattern": text(
                "Pattern",
                most=LONGEST_EXPRESSION,
                hint="A regular expression (RE2), searched for in the text.",
                example=r"ending \d+",
            ),
            "full": check("It must fit the whole text"),
        }
    if kind is Kind.JSON_SCHEMA:
        return {
            "json_schema": area(
                "JSON Schema", most=LARGEST_SCHEMA, example='{"required": ["route"]}'
            )
        }
    return {
        "expression": area(
            "The expression that must be true",
            most=LONGEST_EXPRESSION,
            hint="Of output, input, tools, calls, status and agent.",
            example='output.route == "billing" || size(tools) > 0',
        )
    }


def _example(kind: Kind) -> str:
    return "billing" if kind is Kind.EQUALITY else '{"route": "billing"}'


def rule_of(data: Mapping[str, Any], kind: Kind, part: str = "") -> dict[str, Any]:
    """What was typed as the engine reads it; raises `BadDefinition` with the field."""
    given = {name: data[f"{part}{name}"] for name in rule_fields(kind)}
    rule: dict[str, Any] = {}
    if kind is not Kind.CEL:
        rule["subject"] = given.pop("subject") or Subject.OUTPUT.value
        tool = given.pop("tool")
        if rule["subject"] == Subject.CALLS:
            rule["tool"] = tool
    field = part.replace("_", ".")
    for name, value in given.items():
        if name.endswith("_as"):
            continue
        found = _typed(name, value, given.get(f"{name}_as", ""), field)
        if found is not UNSET:
            rule[name] = found
    return rule


def _typed(name: str, value: Any, written_as: str, part: str) -> Any:
    if name in {"minimum", "maximum"}:
        return UNSET if not value else _number(value, f"{part}{name}")
    if name == "json_schema":
        return UNSET if not value.strip() else _json(value, f"{part}{name}")
    if name == "expected":
        return _expected(value, written_as, f"{part}{name}")
    if name == "values":
        lines = written(value)
        if written_as == "json":
            return [_json(line, f"{part}{name}") for line in lines]
        return lines
    return value or UNSET


def _expected(value: str, written_as: str, field: str) -> Any:
    if written_as == "json":
        return UNSET if not value.strip() else _json(value, field)
    return value.strip() or UNSET


def _number(typed: str, field: str) -> int | float:
    value = _json(typed.replace(",", "."), field)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadDefinition("Write a number, such as 12 or 0.5.", field=field)
    return value


def _json(typed: str, field: str) -> Any:
    try:
        return msgspec.json.decode(typed)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        why = str(error).rstrip(".")[:200]
        raise BadDefinition(
            f"This is not JSON: {why}. Texts stand in double quotes there.", field=field
        ) from None


def written(typed: str) -> list[str]:
    """The lines of what was typed, without empty ones."""
    return [line.strip() for line in typed.splitlines() if line.strip()]


def rule_initial(rule: Rule, part: str = "") -> dict[str, Any]:
    """The values of the fields of a stored rule."""
    values: dict[str, Any] = {
        "subject": rule.subject.value,
        "tool": rule.tool,
        "path": rule.path,
        "normalisers": [one.value for one in rule.normalisers],
        "pattern": rule.pattern,
        "full": rule.full,
        "expression": rule.expression,
        "exclusive_minimum": rule.exclusive_minimum,
        "exclusive_maximum": rule.exclusive_maximum,
    }
    for name in ("minimum", "maximum"):
        bound = getattr(rule, name)
        values[name] = "" if bound is None else str(bound)
    if rule.expected is not UNSET:
        is_text = (
            isinstance(rule.expected, str) and rule.expected == rule.expected.strip()
        )
        values["expected"] = rule.expected if is_text else _as_json(rule.expected)
        values["expected_as"] = "text" if is_text else "json"
    if rule.values:
        are_texts = all(
            isinstance(one, str) and written(one) == [one] for one in rule.values
        )
        lines = rule.values if are_texts else [_line(one) for one in rule.values]
        values["values"] = "\n".join(lines)
        values["values_as"] = "text" if are_texts else "json"
    if rule.json_schema is not UNSET:
        values["json_schema"] = _as_json(rule.json_schema)
    return {f"{part}{name}": value for name, value in values.items()}


def _line(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _as_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


class AskingForm(MarkedForm):
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

    def wrong(self) -> list[tuple[str, str]]:
        """Everything that is wrong: the label of the field and a sentence."""
        return [
            (str(self.fields[name].label) if name in self.fields else "", str(error))
            for name, errors in self.errors.items()
            for error in errors
        ]
