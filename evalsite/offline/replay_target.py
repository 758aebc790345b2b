"""The file that says how an agent is run alone by `manage.py replay`.

    name: billing
    kind: openai                 # openai, http, callable or command
    settings:                    # those of the kind, as in the application
      base_url: https://models.example/v1
      model: small
    secret_env: BILLING_KEY      # the variable that holds the key; never the key
    stubs: {misses: stop}        # how tools are answered; recordings if left out
    limits: {seconds: 60}
    code: [agents]               # folders of a callable or command, beside this file
    least_isolation: landlock_seccomp

What it may name is for whoever calls the command to allow, as an operator does in the
application.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from apps.engine.agent_contracts.plain_yaml import BadYaml, read_yaml
from apps.engine.replay.run import Limits, TargetKind
from apps.engine.replay.stub_plan import BadPlan, StubPlan, decoded_plan
from apps.isolation.sandbox import Level
from apps.isolation.wall import (
    InnerHosts,
    NotAHost,
    RefusedAddress,
    checked_url,
    inner_hosts,
)
from apps.replays.target_settings import (
    Allowed,
    TargetSettings,
    WrongTarget,
    decoded_settings,
)
from evalsite.walking import name_in_words

LARGEST: Final = 1_000_000


class CannotReplay(Exception):
    """The call cannot be done as it is; each of `problems` is a sentence."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__(" ".join(problems))


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller allows targets to be."""

    hosts: InnerHosts = frozenset()
    callables: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        hosts: list[str],
        callables: list[str],
        commands: list[str],
        handlers: list[str],
    ) -> Granted:
        """What these words of a call allow; raises `CannotReplay`."""
        try:
            found = inner_hosts(hosts)
        except NotAHost as error:
            raise CannotReplay(f"--allow {error}") from None
        return cls(
            hosts=found,
            callables=tuple(callables),
            commands=tuple(commands),
            handlers=tuple(handlers),
        )

    def refused_url(self, url: str) -> str:
        """Why this address may not be called, "" where it may."""
        try:
            checked_url(url, inner=self.hosts)
        except RefusedAddress as error:
            said = str(error)
            if "list of inner hosts" in said:
                return f"{said.rstrip('.')} (--allow HOST:PORT)."
            return said
        return ""


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: TargetKind
    settings: dict[str, Any] = {}
    name: str = ""
    secret_env: str = ""
    stubs: dict[str, Any] = {}
    limits: Limits = Limits()
    code: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    python: str = ""
    env: dict[str, str] = {}
    least_isolation: Level = Level.LANDLOCK_SECCOMP


class OfflineTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A target as its file says it, with its secret opened."""

    name: str
    kind: TargetKind
    settings: TargetSettings
    stubs: StubPlan
    limits: Limits
    granted: Granted
    secret: str = ""
    code: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    python: Path = Path(sys.executable)
    env: dict[str, str] = {}
    least: Level = Level.LANDLOCK_SECCOMP

    def __repr__(self) -> str:
        return f"OfflineTarget({self.name!r}, {self.kind.value})"

    @property
    def model(self) -> str:
        """The model that it names, "" for none."""
        return getattr(self.settings, "model", "")

    @property
    def concurrency(self) -> int:
        """How many runs of it there may be at the same time."""
        return getattr(self.settings, "concurrency", 1)

    @property
    def per_minute(self) -> int:
        """How many requests a minute it takes; 0 is no limit."""
        return getattr(self.settings, "requests_per_minute", 0)

    @property
    def run_limits(self) -> Limits:
        """The limits of one run: no longer than one may take."""
        seconds = min(self.limits.seconds, getattr(self.settings, "seconds", 120))
        output = getattr(self.settings, "max_tokens", self.limits.output_tokens)
        return msgspec.structs.replace(
            self.limits,
            seconds=seconds,
            output_tokens=min(output, self.limits.output_tokens),
        )


def target_in_file(path: Path, granted: Granted) -> OfflineTarget:
    """The target of a file; raises `CannotReplay` with a sentence for each problem."""
    named = name_in_words(path)
    try:
        value = read_yaml(text_in(path))
    except BadYaml as error:
        raise CannotReplay(f"{named}: {error}") from None
    try:
        return _target(value, granted, path.parent)
    except CannotReplay as error:
        raise CannotReplay(*[f"{named}: {one}" for one in error.problems]) from None


def target_of_callable(name: str, granted: Granted, here: Path) -> OfflineTarget:
    """A callable as a target, with the folder of the call as its code."""
    value = {"kind": "callable", "settings": {"callable": name}, "code": ["."]}
    return _target(value, granted, here)


def text_in(path: Path) -> str:
    """The UTF-8 text of a small file; raises `CannotReplay`."""
    named = name_in_words(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise CannotReplay(f"{named} cannot be opened: {error.strerror}.") from None
    if len(data) > LARGEST:
        raise CannotReplay(f"{named} is larger than {LARGEST:,} bytes.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CannotReplay(f"{named} is no text in UTF-8.") from None


def _target(value: Any, granted: Granted, beside: Path) -> OfflineTarget:
    if isinstance(value, dict) and "secret" in value:
        raise CannotReplay(
            "A key does not belong into a file. Put it into a variable of the "
            "environment and name that in “secret_env”."
        )
    try:
        found = msgspec.convert(value, _File)
    except msgspec.ValidationError as error:
        raise CannotReplay(f"{str(error).rstrip('.')}.") from None
    if found.kind is TargetKind.RECORDED:
        raise CannotReplay(
            "A target of the kind “recorded” runs nothing; manage.py compare shows "
            "what is in traces."
        )
    return OfflineTarget(
        name=found.name or found.kind.value,
        kind=found.kind,
        settings=_settings(found, granted),
        stubs=_stubs(found.stubs, granted),
        limits=found.limits,
        granted=granted,
        secret=_secret(found.secret_env, os.environ),
        code=tuple(beside.resolve() / one for one in found.code),
        readable=tuple(beside.resolve() / one for one in found.readable),
        python=beside.resolve() / found.python
        if found.python
        else Path(sys.executable),
        env=found.env,
        least=found.least_isolation,
    )


def _settings(found: _File, granted: Granted) -> TargetSettings:
    allowed = Allowed(
        refused_url=granted.refused_url,
        callables=granted.callables,
        commands=granted.commands,
    )
    try:
        return decoded_settings(found.kind, found.settings, allowed)
    except WrongTarget as error:
        where = f"“settings.{error.field}”: " if error.field else ""
        raise CannotReplay(where + _of_a_call(str(error))) from None


def _of_a_call(said: str) -> str:
    """A sentence of the application, with what allows it in a call."""
    return said.replace("EVALSITE_REPLAY_CALLABLES", "--callable MODULE:NAME").replace(
        "EVALSITE_REPLAY_COMMANDS", "--command PATH"
    )


def _stubs(value: dict[str, Any], granted: Granted) -> StubPlan:
    try:
        plan = decoded_plan(value)
    except BadPlan as error:
        raise CannotReplay(f"“stubs”: {error}") from None
    unknown = [name for name in plan.handlers if name not in granted.handlers]
    if unknown:
        raise CannotReplay(
            f"The handler “{unknown[0]}” is not allowed; name it with "
            "--handler MODULE:NAME. It runs in the sandbox."
        )
    return plan


def _secret(name: str, environment: Mapping[str, str]) -> str:
    if not name:
        return ""
    found = environment.get(name, "").strip()
    if not found:
        raise CannotReplay(f"The variable {name} of “secret_env” is not set.")
    if not found.isascii() or not found.isprintable():
        raise CannotReplay(f"The variable {name} holds what no header can carry.")
    return found
