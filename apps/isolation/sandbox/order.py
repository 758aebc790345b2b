"""What is ordered of a sandbox, and what comes back."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from apps.engine.replay.run import (
    Effect,
    Ending,
    ErrorKind,
    Event,
    Limits,
    RunError,
)
from apps.isolation.sandbox.levels import Level, Reached

_CALLABLE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class Refused(Exception):
    """The run is not begun: why, as a sentence for a person."""


class StopRun(Exception):
    """Raised by whoever answers the agent: the run ends here, as `ending` says."""

    def __init__(self, ending: Ending, error: RunError) -> None:
        super().__init__(error.sentence)
        self.ending = ending
        self.error = error


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator lets run: `module:name` and absolute programs, exactly so."""

    callables: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()

    def check(self, target: str | tuple[str, ...]) -> None:
        """Raises `Refused` for what is not on the list. Imports nothing."""
        if isinstance(target, str):
            if not _CALLABLE.fullmatch(target):
                raise Refused(f'"{target[:200]}" is no name like package.module:name.')
            if target not in self.callables:
                raise Refused(
                    f"{target} is not on the operator's list of callables, so it is "
                    "not run."
                )
        elif not target or target[0] not in self.commands:
            name = target[0][:200] if target else "An empty command"
            raise Refused(
                f"{name} is not on the operator's list of commands, so it is not run."
            )


class RelayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the agent to its model endpoint, as it came out of the sandbox.

    Inside of `waiting()` the time of the run stands still.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext


class RelayResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent is answered; a body in pieces is streamed.

    `event` is what goes down among the events of the run, if anything does.
    """

    status: int = 200
    headers: dict[str, str] = {}
    body: bytes | Iterable[bytes] = b""
    event: Event | None = None


Relay = Callable[[RelayRequest], RelayResponse]

RELAY_HOST, RELAY_PORT = "127.0.0.1", 4180
RELAY_URL = f"http://{RELAY_HOST}:{RELAY_PORT}"
"""Where the agent finds its model endpoint; nothing listens there outside of a run."""


class SandboxOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One run of local code.

    `target` is a callable `module:name` or the words of a command. `given` is the JSON
    handed over. `python` is the interpreter of a callable. `code` are folders to
    import from, `readable` further ones to read; none may hold or lie in one of
    `never`. `env` is all of its environment but HOME, TMPDIR, PATH and LANG. `secrets`
    are looked for in all that comes out, and hidden. `at_most` keeps to a lower level
    than could be reached. `has_turns` asks a stateful callable turn by turn.
    """

    target: str | tuple[str, ...]
    given: dict[str, Any] = {}
    allowed: Allowed = Allowed()
    limits: Limits = Limits()
    python: Path = Path(sys.executable)
    code: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    never: tuple[Path, ...] = ()
    env: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    least: Level = Level.LANDLOCK_SECCOMP
    at_most: Level = Level.NAMESPACES
    relay: Relay | None = None
    has_turns: bool = False

    def __repr__(self) -> str:
        return f"SandboxOrder({self.name!r})"

    @property
    def is_command(self) -> bool:
        """Whether it is a command and not a callable."""
        return not isinstance(self.target, str)

    @property
    def name(self) -> str:
        """The target in a word, for sentences."""
        return self.target if isinstance(self.target, str) else self.target[0]


class Isolated(msgspec.Struct, frozen=True, kw_only=True):
    """How an isolated process ended, and everything it tried on the way.

    `input_after` is "" where it never told what it holds of its input. `exit_code` is
    that of its process (negative: the number of the signal), `None` where that is not
    known. `peak_bytes` and `cpu_seconds` are those of its first process.
    """

    ending: Ending
    output: Any = None
    state: Any = None
    error: RunError | None = None
    effects: tuple[Effect, ...] = ()
    printed: str = ""
    reached: Reached
    input_before: str
    input_after: str
    exit_code: int | None = None
    peak_bytes: int | None = None
    cpu_seconds: float | None = None
    start_ns: int
    end_ns: int


def failed(kind: ErrorKind, sentence: str) -> RunError:
    """An error with its sentence."""
    return RunError(kind=kind, sentence=sentence)
