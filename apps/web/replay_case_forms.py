"""The forms of cases: one written by hand, and a file of JSON lines."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from django import forms

from apps.agents.models import Agent
from apps.engine.replay.case import Case
from apps.engine.replay.cases_file import cases_from_jsonl
from apps.replays.cases import LONGEST_NAME
from apps.web.agent_fields import area, choice, text
from apps.web.forms import MarkedForm

LONGEST: Final = 500_000
_JSON_FIELDS: Final = {
    "tools": list,
    "calls": list,
    "state": None,
    "context": dict,
    "parameters": dict,
}
_AS: Final = [("text", "a text"), ("json", "JSON")]


class CaseByHandForm(MarkedForm):
    """A case that a person writes."""

    name = text("Name", most=LONGEST_NAME, required=True, example="double charge")
    system = area("System prompt", most=LONGEST, hint="Empty: none.")
    given = area("Input", most=LONGEST, example="I was charged twice.")
    given_as = choice("which is", _AS)
    tools = area(
        "Tools",
        most=LONGEST,
        hint="A JSON list of name, description and parameters (a JSON Schema).",
        example='[{"name": "get_order", "parameters": {"type": "object"}}]',
    )
    calls = area(
        "Recorded tool calls",
        most=LONGEST,
        hint="A JSON list of tool, arguments and result, or error. Stubs answer with them.",
        example='[{"tool": "get_order", "arguments": {"id": 7}, "result": "paid"}]',
    )
    state = area("State", most=LONGEST, hint="What it remembers from before, as JSON.")
    context = area(
        "Context", most=LONGEST, hint="What else came from upstream: a JSON object."
    )
    model = text(
        "Model", most=200, hint="Of the recorded calls; the target has its own."
    )
    parameters = area("Parameters", most=20_000, hint="A JSON object.")

    def __init__(self, *args: Any, agents: list[Agent], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agents = {str(one.pk): one for one in agents}
        self.fields["agent"] = choice(
            "Agent", [(one.pk, one) for one in self.agents.values()]
        )

    @property
    def head(self) -> list[Any]:
        """Of which agent it is, and what it is called."""
        return [self["agent"], self["name"]]

    @property
    def asked(self) -> list[Any]:
        """What the agent is asked."""
        return [self["given"], self["given_as"], self["system"]]

    @property
    def more(self) -> list[Any]:
        """What its tools answer, and what it knows."""
        return [self[name] for name in (*_JSON_FIELDS, "model")]

    def wanted(self) -> tuple[Agent, Case] | None:
        """The agent and the case; None with the errors at their fields."""
        if not self.is_valid():
            return None
        agent = self.agents.get(self.cleaned_data["agent"])
        if agent is None:
            self.add_error("agent", "Choose the agent that is run.")
            return None
        value = self._value(agent)
        if self.errors:
            return None
        read = cases_from_jsonl([json.dumps(value)])
        if not read.cases:
            self._put(read.refused[0].reason)
            return None
        return agent, read.cases[0]

    def _value(self, agent: Agent) -> dict[str, Any]:
        data = self.cleaned_data
        value: dict[str, Any] = {"agent": agent.key, "name": data["name"]}
        given = data["given"]
        if given.strip():
            value["input"] = (
                self._json("given") if data["given_as"] == "json" else given
            )
        elif data["system"].strip():
            self.add_error("given", "Say what the agent is asked.")
        if data["system"].strip():
            asked = value.get("input")
            value["messages"] = [
                {"role": "system", "content": data["system"]},
                {
                    "role": "user",
                    "content": asked if isinstance(asked, str) else json.dumps(asked),
                },
            ]
        for name, kind in _JSON_FIELDS.items():
            if data[name].strip():
                value[name] = self._json(name, kind)
        if data["model"]:
            value["model"] = data["model"]
        return value

    def _json(self, name: str, kind: Any = None) -> Any:
        try:
            found = msgspec.json.decode(self.cleaned_data[name])
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
            why = str(error).rstrip(".")[:200]
            self.add_error(name, f"This is not JSON: {why}.")
            return None
        if kind is not None and not isinstance(found, kind):
            what = "list" if kind is list else "object with names"
            self.add_error(name, f"This is JSON, and no {what}.")
        return found

    def _put(self, reason: str) -> None:
        """Show a refusal of the reader at the field that it names."""
        named = [name for name in _JSON_FIELDS if f"“{name}" in reason]
        place = [name for name in _JSON_FIELDS if f"“$.{name}" in reason]
        is_input = "“input”" in reason
        self.add_error(
            next(iter([*named, *place]), "given" if is_input else None), reason
        )


class CasesFileForm(forms.Form):
    """A file of cases, chosen or pasted, and the agent of lines that name none."""

    text = forms.CharField(
        max_length=1_500_000, required=False, strip=False, label="The lines"
    )
    agent = forms.CharField(max_length=20, required=False)
