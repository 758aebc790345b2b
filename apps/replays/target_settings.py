"""What a target of each kind is set to, and whether the operator allows it. Pure.

A project chooses among what the operator listed: callables, commands, private hosts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, Final, Literal, TypeAlias

import msgspec

from apps.engine.replay.run import TargetKind

MOST_AT_ONCE: Final = 20
MOST_PER_MINUTE: Final = 10_000
LONGEST_URL: Final = 1_000
_OURS: Final = frozenset(
    {"model", "messages", "input", "tools", "stream", "stream_options", "instructions"}
)
_NAMED: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_NOT_OURS: Final = frozenset(
    {
        "accept-encoding", "connection", "content-length", "content-type", "cookie",
        "expect", "host", "proxy-authorization", "te", "trailer", "transfer-encoding",
        "upgrade", "user-agent",
    }
)  # fmt: skip
"""Headers that belong to the connection, so that no secret can be sent in them."""
_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")

Api: TypeAlias = Literal["chat_completions", "responses"]


class _Paced(msgspec.Struct, frozen=True, kw_only=True):
    """How fast a target may be used; 0 requests a minute is no limit.

    `seconds` is the longest that one call (of an endpoint) or one run may take.
    """

    concurrency: int = 2
    requests_per_minute: int = 0
    seconds: int = 120


class ModelSettings(_Paced, frozen=True, kw_only=True):
    """An OpenAI-compatible endpoint: the model with its prompt is the agent.

    `parameters` are sent as they are; what the harness sends itself is not among them.
    """

    base_url: str
    model: str
    api: Api = "chat_completions"
    stream: bool = False
    max_tokens: int = 1_024
    parameters: dict[str, Any] = {}


class HttpSettings(_Paced, frozen=True, kw_only=True):
    """An agent elsewhere that takes a POST. The secret is sent in `header`."""

    url: str
    header: str = "Authorization"
    prefix: str = "Bearer "


class CallableSettings(_Paced, frozen=True, kw_only=True):
    """A Python callable that the operator listed; `base_url` is the model that it may ask.

    It reaches nothing else: its calls to the model go through the harness.
    """

    callable: str
    base_url: str = ""
    model: str = ""


class CommandSettings(_Paced, frozen=True, kw_only=True):
    """A program that the operator listed, with arguments."""

    command: str
    arguments: tuple[str, ...] = ()
    base_url: str = ""
    model: str = ""


class RecordedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """No target: the trials in the traces are what there is."""


TargetSettings: TypeAlias = (
    ModelSettings | HttpSettings | CallableSettings | CommandSettings | RecordedSettings
)
KINDS: Final[dict[TargetKind, type[TargetSettings]]] = {
    TargetKind.OPENAI: ModelSettings,
    TargetKind.HTTP: HttpSettings,
    TargetKind.CALLABLE: CallableSettings,
    TargetKind.COMMAND: CommandSettings,
    TargetKind.RECORDED: RecordedSettings,
}


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator allows. `refused_url` says why a URL may not be called, or ""."""

    refused_url: Callable[[str], str]
    callables: Collection[str] = ()
    commands: Collection[str] = ()


class WrongTarget(ValueError):
    """Settings that no target can have: `field` names the place, the message says why."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def decoded_settings(
    kind: TargetKind, value: dict[str, Any], allowed: Allowed
) -> TargetSettings:
    """The settings of a target of this kind; raises `WrongTarget` with field and sentence."""
    try:
        found = msgspec.convert(value, KINDS[kind])
    except msgspec.ValidationError as error:
        said = str(error)
        field = said.rpartition("`$.")[2].rstrip("`") if "`$." in said else ""
        raise WrongTarget(f"{said.rstrip('.')}.", field=field) from None
    if isinstance(found, _Paced):
        _check_pace(found)
    if isinstance(found, ModelSettings):
        _check_model(found)
    if isinstance(found, HttpSettings):
        _check_header(found)
    if isinstance(found, CallableSettings):
        _check_callable(found, allowed)
    if isinstance(found, CommandSettings):
        _check_command(found, allowed)
    _check_urls(found, allowed)
    return found


def _check_pace(found: _Paced) -> None:
    for field, most in (
        ("concurrency", MOST_AT_ONCE),
        ("seconds", 3_600),
    ):
        if not 1 <= getattr(found, field) <= most:
            raise WrongTarget(f"This is a number from 1 to {most:,}.", field=field)
    if not 0 <= found.requests_per_minute <= MOST_PER_MINUTE:
        raise WrongTarget(
            f"This is a number from 0 (no limit) to {MOST_PER_MINUTE:,}.",
            field="requests_per_minute",
        )


def _check_model(found: ModelSettings) -> None:
    if not found.model.strip() or len(found.model) > 200:
        raise WrongTarget("Name the model, in 200 characters at most.", field="model")
    if not 1 <= found.max_tokens <= 200_000:
        raise WrongTarget("This is a number from 1 to 200,000.", field="max_tokens")
    if taken := sorted(_OURS & found.parameters.keys()):
        raise WrongTarget(
            f"“{taken[0]}” is set by the replay itself and cannot be a parameter.",
            field="parameters",
        )


def _check_header(found: HttpSettings) -> None:
    if not _HEADER.fullmatch(found.header):
        raise WrongTarget(
            "A header is letters, digits and hyphens, such as X-Api-Key.",
            field="header",
        )
    if found.header.lower() in _NOT_OURS:
        raise WrongTarget(
            f"“{found.header}” belongs to the connection; a secret is sent in another "
            "header.",
            field="header",
        )
    if not found.prefix.isascii() or not (found.prefix + "x").isprintable():
        raise WrongTarget("The prefix is plain letters and signs.", field="prefix")


def _check_callable(found: CallableSettings, allowed: Allowed) -> None:
    if not _NAMED.fullmatch(found.callable):
        raise WrongTarget(
            "A callable is named as module:name, such as agents.memory:run.",
            field="callable",
        )
    if found.callable not in allowed.callables:
        raise WrongTarget(
            f"“{found.callable}” is not among the callables that the operator allows "
            "(EVALSITE_REPLAY_CALLABLES).",
            field="callable",
        )


def _check_command(found: CommandSettings, allowed: Allowed) -> None:
    if found.command not in allowed.commands:
        raise WrongTarget(
            f"“{found.command}” is not among the commands that the operator allows "
            "(EVALSITE_REPLAY_COMMANDS).",
            field="command",
        )
    if any("\x00" in one or len(one) > 4_000 for one in found.arguments):
        raise WrongTarget("An argument is too long or holds a NUL.", field="arguments")


def _check_urls(found: TargetSettings, allowed: Allowed) -> None:
    for field in ("base_url", "url"):
        url = getattr(found, field, "")
        if not url and (field == "url" or not isinstance(found, ModelSettings)):
            if isinstance(found, HttpSettings) and field == "url":
                raise WrongTarget("Give the address of the agent.", field=field)
            continue
        if len(url) > LONGEST_URL:
            raise WrongTarget(
                f"An address has at most {LONGEST_URL:,} characters.", field=field
            )
        if refused := allowed.refused_url(url):
            raise WrongTarget(refused, field=field)
