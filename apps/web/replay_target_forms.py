"""The form of a target: the kind is chosen first, then it has its fields."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django import forms

from apps.agents.models import Agent
from apps.engine.replay.run import TargetKind
from apps.replays.sealing import LONGEST as LONGEST_SECRET
from apps.replays.target_settings import LONGEST_URL, Allowed, WrongTarget
from apps.replays.targets import LONGEST_NAME
from apps.web.agent_fields import area, check, choice, text, written
from apps.web.forms import MarkedForm, WholeField

KINDS: Final = {
    TargetKind.OPENAI: "Model endpoint",
    TargetKind.HTTP: "HTTP agent",
    TargetKind.CALLABLE: "Python callable",
    TargetKind.COMMAND: "Command",
    TargetKind.RECORDED: "Recorded only",
}
EXPLAINED: Final = {
    TargetKind.OPENAI: (
        "The model with the recorded system prompt, messages and tool definitions is the "
        "agent. The harness runs the tool loop and answers each tool call from the stubs. "
        "Any endpoint that speaks the OpenAI API will do."
    ),
    TargetKind.HTTP: (
        "Your own agent, running somewhere, is sent a POST with the case as JSON. It "
        "reaches its tools at addresses made for this one run, over HTTP or MCP, so that "
        "nothing real is called as long as it has no other tools."
    ),
    TargetKind.CALLABLE: (
        "A Python function of yours runs in the sandbox, with its tools answered from the "
        "stubs. Its folder is one that the operator listed."
    ),
    TargetKind.COMMAND: (
        "A program of yours runs in the sandbox. The case comes as one line of JSON on "
        "its standard input, which stays open: read a line, and not to the end. A line "
        '{"ask": "tool", "tool": …, "arguments": …} that it prints asks for a tool, and '
        'the answer comes as a line with "result" or "error". The line {"output": …, '
        '"state": …} is its answer; without one, all that it printed is.'
    ),
    TargetKind.RECORDED: (
        "The agent cannot be run alone. Its trials in the traces are what there is; this "
        "says so wherever replays are asked for."
    ),
}
WITH_KEY: Final = frozenset(TargetKind) - {TargetKind.RECORDED}
_APIS: Final = [
    ("chat_completions", "Chat completions"),
    ("responses", "Responses"),
]
_EXAMPLE_URL: Final = "https://api.example.com/v1"


def key_field() -> forms.CharField:
    """A field for a secret: never shown again, never filled in by a browser."""
    attrs = {"autocomplete": "new-password", "spellcheck": "false"}
    return forms.CharField(
        label="Key",
        max_length=LONGEST_SECRET,
        required=False,
        help_text="Kept sealed and never shown again. It is sent to this target only.",
        widget=forms.PasswordInput(attrs=attrs, render_value=False),
    )


def _whole(label: str, initial: int, hint: str = "") -> WholeField:
    return WholeField(label=label, initial=initial, required=False, help_text=hint)


def _paced() -> dict[str, forms.Field]:
    return {
        "seconds": _whole(
            "Seconds at most",
            120,
            "For one call of an endpoint, or one run of an agent.",
        ),
        "concurrency": _whole("Runs at once", 2),
        "requests_per_minute": _whole("Requests per minute", 0, "0 is no limit."),
    }


def _of_a_model(*, is_required: bool) -> dict[str, forms.Field]:
    hint = (
        "Where the API begins; its paths are added by the harness."
        if is_required
        else "The model that it may ask, through the harness. Empty: none."
    )
    return {
        "base_url": text("Base URL", most=LONGEST_URL, hint=hint, example=_EXAMPLE_URL),
        "model": text("Model", most=200, example="gpt-4o-mini"),
    }


def _of_openai() -> dict[str, forms.Field]:
    return {
        **_of_a_model(is_required=True),
        "api": choice("API", _APIS),
        "stream": check("Answers are streamed"),
        "max_tokens": _whole("Output tokens of one call", 1_024),
        "parameters": area(
            "Further parameters",
            most=20_000,
            hint="A JSON object, sent as it is. Temperature and seed come with a batch, "
            "before these; a temperature of null is never sent.",
            example='{"top_p": 1}',
        ),
    }


def _of_http() -> dict[str, forms.Field]:
    prefix = text("Before the key", most=40, hint="Such as “Bearer ”, with its blank.")
    prefix.strip = False
    prefix.initial = "Bearer "
    header = text("The key is sent in the header", most=64)
    header.initial = "Authorization"
    return {
        "url": text(
            "Address of the agent",
            most=LONGEST_URL,
            example="https://agent.example.com/run",
        ),
        "header": header,
        "prefix": prefix,
    }


def _listed(label: str, names: Any, setting: str) -> forms.ChoiceField:
    field = choice(label, [("", "Choose one"), *((name, name) for name in names)])
    field.help_text = (
        f"Those that the operator lists in {setting}."
        if names
        else f"The operator of this site lists none. They are named in {setting}; nobody "
        "can add one here."
    )
    field.error_messages["invalid_choice"] = (
        f"“%(value)s” is not among those that the operator lists in {setting}."
    )
    return field


def kind_fields(kind: TargetKind, allowed: Allowed) -> dict[str, forms.Field]:
    """The fields of one kind; callables and commands are those that are allowed."""
    if kind is TargetKind.RECORDED:
        return {}
    if kind is TargetKind.OPENAI:
        return {**_of_openai(), **_paced()}
    if kind is TargetKind.HTTP:
        return {**_of_http(), **_paced()}
    if kind is TargetKind.CALLABLE:
        own: dict[str, forms.Field] = {
            "callable": _listed(
                "Callable", allowed.callables, "EVALSITE_REPLAY_CALLABLES"
            )
        }
    else:
        own = {
            "command": _listed("Command", allowed.commands, "EVALSITE_REPLAY_COMMANDS"),
            "arguments": area("Arguments", most=20_000, hint="One a line."),
        }
    return {**own, **_of_a_model(is_required=False), **_paced()}


class TargetForm(MarkedForm):
    """What a target is set to; with agents it is a new one and has name and key too."""

    def __init__(
        self,
        *args: Any,
        kind: TargetKind,
        allowed: Allowed,
        agents: list[Agent] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        self.own = kind_fields(kind, allowed)
        if agents is not None:
            self.fields["agent"] = choice("Agent", [(one.pk, one) for one in agents])
            self.fields["name"] = text("Name", most=LONGEST_NAME, required=True)
        self.fields |= self.own
        if agents is not None and kind in WITH_KEY:
            self.fields["key"] = key_field()

    @property
    def head(self) -> list[Any]:
        """The fields of a new target before those of its kind."""
        return [self[name] for name in ("agent", "name") if name in self.fields]

    @property
    def rule(self) -> list[Any]:
        """The fields of the kind but how fast it may be used."""
        return [self[name] for name in self.own if name not in _paced()]

    @property
    def pace(self) -> list[Any]:
        """How fast it may be used."""
        return [self[name] for name in self.own if name in _paced()]

    @property
    def tail(self) -> list[Any]:
        """The key, where one may be set here."""
        return [self["key"]] if "key" in self.fields else []

    def settings(self) -> dict[str, Any]:
        """What was typed as it is stored; raises `WrongTarget` with the field."""
        data = self.cleaned_data
        found: dict[str, Any] = {}
        for name, field in self.own.items():
            value = data[name]
            if name == "parameters":
                found[name] = _parameters(value)
            elif name == "arguments":
                found[name] = written(value)
            elif value is None:
                found[name] = field.initial
            else:
                found[name] = value
        if "api" in found:
            found["api"] = found["api"] or "chat_completions"
        return found

    def put_error(self, error: WrongTarget) -> None:
        """Show what is wrong at the field that says it, else above the form."""
        name = error.field.partition("[")[0].partition(".")[0]
        self.add_error(name if name in self.fields else None, str(error))
        self.mark_errors()


def _parameters(typed: str) -> dict[str, Any]:
    if not typed.strip():
        return {}
    try:
        found = msgspec.json.decode(typed)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        why = str(error).rstrip(".")[:200]
        raise WrongTarget(f"This is not JSON: {why}.", field="parameters") from None
    if not isinstance(found, dict):
        raise WrongTarget(
            'This is a JSON object with names, such as {"top_p": 1}.',
            field="parameters",
        )
    return found


def target_initial(settings: dict[str, Any]) -> dict[str, Any]:
    """The values of the fields of stored settings."""
    values = dict(settings)
    if "parameters" in values:
        plain = values["parameters"]
        values["parameters"] = (
            msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
            if plain
            else ""
        )
    if "arguments" in values:
        values["arguments"] = "\n".join(values["arguments"])
    return values
