"""The form of a batch of replays: cases, repeats, regimes, and stubs tool by tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from django import forms
from django.conf import settings

from apps.engine.contracts.expressions import LONGEST_EXPRESSION
from apps.engine.replay.paraphrases import PARAPHRASES, refuse_wordings
from apps.engine.replay.regimes import RegimesAsked
from apps.engine.replay.stub_plan import (
    Again,
    BadPlan,
    MissPolicy,
    StubKind,
    StubPlan,
    decoded_plan,
)
from apps.replays.models import ReplayCase
from apps.replays.planning import DEFAULT_REPEATS, MOST_REPEATS
from apps.web.agent_fields import area, check, choice, several, text
from apps.web.forms import MarkedForm, WholeField
from apps.web.replay_batch_forms import BatchForm

MOST_TOOLS: Final = 60
LONGEST_ANSWER: Final = 200_000
HOTTEST: Final = 2.0
MOST_TEMPERATURES: Final = 8
_MATCHED: Final = [
    (StubKind.RECORDED, "by their arguments: the same call gets the recorded answer"),
    (StubKind.IN_ORDER, "in their order, whatever the arguments are"),
]
_AGAIN: Final = [
    (Again.LAST, "give the last one again"),
    (Again.MISS, "it is a miss"),
]
_MISSES: Final = [
    (MissPolicy.ERROR, "an error, as from a failed tool"),
    (MissPolicy.EMPTY, "an empty result"),
    (MissPolicy.STOP, "nothing: the run ends there"),
]
_AS: Final = [("text", "a text"), ("json", "JSON")]
_WRITES: Final = [
    ("", "as recorded, or by its name"),
    ("yes", "it changes something"),
    ("no", "it only reads"),
]


class PlanForm(BatchForm):
    """A batch of replays of one agent."""

    repeats = WholeField(
        label="Runs of each case in each regime",
        initial=DEFAULT_REPEATS,
        min_value=1,
        max_value=MOST_REPEATS,
        help_text="5 show whether it wavers at all; the interval stays wide.",
    )
    determinism = check("Temperature 0")
    own_temperature = check("The target's own temperature")
    temperatures = text(
        "Temperatures above 0",
        most=100,
        hint="With commas between them. Each is a regime.",
        example="0.7, 1",
    )
    paraphrases = several(
        "Other wordings that must not change the answer",
        [(one.slug, one.label) for one in PARAPHRASES],
    )
    declared = area(
        "Wordings of your own",
        most=100_000,
        hint="One a line, in the place of the input. Longer ones are parted by a line "
        "with three hyphens.",
    )
    matched = choice("Recordings are matched", _MATCHED)
    again = choice("When they are used up", _AGAIN)
    misses = choice("A call that no stub knows is answered", _MISSES)
    seed = WholeField(
        label="Seed", initial=1, required=False, min_value=0, max_value=2**31 - 1
    )

    def __init__(self, *args: Any, cases: list[ReplayCase], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cases = {str(one.pk): one for one in cases}
        self.fields["case"] = several(
            "Cases", [(key, one.name) for key, one in self.cases.items()]
        )
        self.fields["case"].error_messages["invalid_choice"] = (
            "One of the cases is not of this agent, or was retired."
        )

    @property
    def heat(self) -> list[Any]:
        """The regimes by temperature."""
        return [self["determinism"], self["own_temperature"], self["temperatures"]]

    @property
    def wordings(self) -> list[Any]:
        """The regimes by wording."""
        return [self["paraphrases"], self["declared"]]

    @property
    def stubbing(self) -> list[Any]:
        """How tools are answered that have no answer of their own."""
        return [self["matched"], self["again"], self["misses"]]

    def chosen_cases(self) -> list[ReplayCase]:
        """The cases that were ticked, in the order in which they are listed."""
        ticked = set(self.cleaned_data["case"])
        return [one for key, one in self.cases.items() if key in ticked]

    def clean(self) -> dict[str, Any]:
        """Read the temperatures and wordings."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            data["read_temperatures"] = _temperatures(data.get("temperatures", ""))
        except ValueError as error:
            self.add_error("temperatures", str(error))
        data["read_wordings"] = wordings_in(data.get("declared", ""))
        try:
            refuse_wordings(data["read_wordings"])
        except ValueError as error:
            self.add_error("declared", str(error))
        asked = ("determinism", "own_temperature", "temperatures", "paraphrases")
        if not any(data.get(name) for name in (*asked, "declared")):
            self.add_error("determinism", "Choose at least one regime.")
        return data

    def regimes(self) -> RegimesAsked:
        """The regimes that were chosen."""
        data = self.cleaned_data
        own = (None,) if data["own_temperature"] else ()
        return RegimesAsked(
            determinism=data["determinism"],
            sampling=(*data["read_temperatures"], *own),
            paraphrases=tuple(data["paraphrases"]),
            declared=tuple(data["read_wordings"]),
        )


class StubForm(MarkedForm):
    """How one tool is answered, where it is not answered like the rest."""

    name = forms.CharField(max_length=200, widget=forms.HiddenInput)
    kind = choice("Answered", [("", "like the rest")])
    value = area("The result", most=LONGEST_ANSWER)
    value_as = choice("which is", _AS)
    error = text("or it fails with", most=2_000)
    expression = area(
        "A CEL expression that gives the result",
        most=LONGEST_EXPRESSION,
        hint="Of arguments, tool and call (the how-manieth, from 1).",
        example='{"id": arguments.id, "status": "open"}',
    )
    handler = choice("Handler", [])
    writes = choice("What it does", _WRITES)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"auto_id": "f_%s", **kwargs})
        named = [(one, one) for one in settings.REPLAY_HANDLERS]
        kinds = [
            ("", "like the rest"),
            ("recorded", "from recordings, by their arguments"),
            ("in_order", "from recordings, in their order"),
            ("static", "always the same"),
            ("expression", "by an expression"),
        ]
        if named:
            kinds.append(("handler", "by a handler"))
        self.fields["kind"] = choice("Answered", kinds)
        self.fields["handler"] = choice("Handler", [("", "Choose one"), *named])

    def stub(self) -> dict[str, Any]:
        """The stub as the engine reads it; empty where it is answered like the rest."""
        data = self.cleaned_data
        kind = data["kind"]
        found: dict[str, Any] = {}
        if data["writes"]:
            found["writes"] = data["writes"] == "yes"
        if kind == "static" and data["error"]:
            found["error"] = data["error"]
        elif kind == "static":
            found["value"] = self._value()
        elif kind in {"expression", "handler"}:
            found[kind] = data[kind]
        return {"kind": kind, **found} if kind else found

    def _value(self) -> Any:
        typed = self.cleaned_data["value"]
        if self.cleaned_data["value_as"] != "json":
            return typed
        try:
            return msgspec.json.decode(typed)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
            why = str(error).rstrip(".")[:200]
            self.add_error("value", f"This is not JSON: {why}.")
            return None

    def put_error(self, error: BadPlan, field: str) -> None:
        """Show what the engine says at the field that it names."""
        self.add_error(field if field in self.fields else None, str(error))
        self.mark_errors()


def stub_forms(data: Mapping[str, Any] | None, tools: list[str]) -> list[StubForm]:
    """One form for each tool; those that were sent, else one for each known tool."""
    if data is None:
        return [
            StubForm(prefix=f"tool-{place}", initial={"name": name})
            for place, name in enumerate(tools[:MOST_TOOLS])
        ]
    found: list[StubForm] = []
    while len(found) < MOST_TOOLS and f"tool-{len(found)}-name" in data:
        found.append(StubForm(data, prefix=f"tool-{len(found)}"))
    sent = {str(data[f"tool-{place}-name"]) for place in range(len(found))}
    new = [name for name in tools if name not in sent]
    for name in new[: MOST_TOOLS - len(found)]:
        prefix = f"tool-{len(found)}"
        found.append(StubForm({f"{prefix}-name": name}, prefix=prefix))
    return found


def stub_plan(form: PlanForm, tools: list[StubForm]) -> StubPlan | None:
    """The plan of stubs; None where something is wrong, which is said at its field."""
    wrong = [one for one in tools if not one.is_valid()]
    if wrong:
        return None
    again = form.cleaned_data["again"] or Again.LAST.value
    matched = form.cleaned_data["matched"] or StubKind.RECORDED.value
    rest = {"kind": matched, "again": again}
    by_name: dict[str, StubForm] = {}
    value: dict[str, Any] = {
        "default": rest,
        "misses": form.cleaned_data["misses"] or MissPolicy.ERROR.value,
        "tools": {},
    }
    for one in tools:
        stub = one.stub()
        if stub:
            name = one.cleaned_data["name"]
            by_name[name] = one
            value["tools"][name] = {**({} if "kind" in stub else rest), **stub}
    if any(one.errors for one in tools):
        return None
    try:
        return decoded_plan(value)
    except BadPlan as error:
        _put(error, form, by_name)
        return None


def _put(error: BadPlan, form: PlanForm, by_name: Mapping[str, StubForm]) -> None:
    for name, one in by_name.items():
        if error.field.startswith(f"tools.{name}"):
            one.put_error(error, error.field.removeprefix(f"tools.{name}").strip("."))
            return
    form.add_error(None, str(error))


def _temperatures(typed: str) -> list[float]:
    """The temperatures in a text; raises `ValueError` with a sentence."""
    found: list[float] = []
    for part in typed.replace(";", ",").split(","):
        if not part.strip():
            continue
        try:
            value = msgspec.json.decode(part.strip(), type=float)
        except (msgspec.DecodeError, UnicodeEncodeError):
            raise ValueError("Write numbers, such as 0.7, 1.") from None
        if not 0 < value <= HOTTEST:
            raise ValueError(f"A temperature here is above 0 and at most {HOTTEST:g}.")
        found.append(value)
    if len(found) > MOST_TEMPERATURES:
        raise ValueError(f"Name at most {MOST_TEMPERATURES} temperatures.")
    return list(dict.fromkeys(found))


def wordings_in(typed: str) -> list[str]:
    """The wordings in a text: parted by lines of hyphens, else one a line."""
    lines = typed.replace("\r\n", "\n").split("\n")
    if not any(line.strip() == "---" for line in lines):
        return [line.strip() for line in lines if line.strip()]
    found: list[str] = []
    held: list[str] = []
    for line in [*lines, "---"]:
        if line.strip() == "---":
            found.append("\n".join(held).strip())
            held = []
        else:
            held.append(line)
    return [one for one in found if one]
