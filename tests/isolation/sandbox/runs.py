"""Running planted agents, as the tests here do it."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import msgspec

from apps.engine.replay.run import Limits
from apps.isolation.sandbox import Allowed, Level, SandboxOrder, run_program

PLANTED = Path(__file__).resolve().parent / "planted"
SMALL = Limits(
    seconds=20,
    memory_bytes=512 * 1024**2,
    file_bytes=2 * 1024**2,
    answer_bytes=1024**2,
    printed_bytes=64 * 1024,
    processes=16,
)
WALLED = (Level.NAMESPACES, Level.LANDLOCK_SECCOMP)
_clock = itertools.count(1_000)


def ordered(target, *, seconds=None, **changes):
    """An order for a planted agent, which is on the list."""
    limits = changes.pop("limits", SMALL)
    if seconds:
        limits = msgspec.structs.replace(limits, seconds=seconds)
    name = {target} if isinstance(target, str) else set()
    command = set() if isinstance(target, str) else {target[0]}
    order = {
        "target": target,
        "allowed": Allowed(callables=frozenset(name), commands=frozenset(command)),
        "limits": limits,
        "code": (PLANTED,),
        "given": {"input": {"amount": 5}, "tools": [{"name": "look"}]},
    }
    return SandboxOrder(**{**order, **changes})


def ran(target, *, ask=None, stop=None, **changes):
    """What came of one run of a planted agent."""
    return run_program(
        ordered(target, **changes),
        ask=ask or (lambda question: {"result": question.get("arguments")}),
        stop=stop or (lambda: False),
        clock_ns=lambda: next(_clock),
    )


def of_kind(isolated, kind):
    return [one for one in isolated.effects if one.kind == kind]


def processes_with(word: str) -> list[int]:
    """Processes of this machine that have a word as an argument or in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = b"".join(
                    (folder / one).read_bytes() for one in ("cmdline", "environ")
                )
            except OSError:
                continue
            if word.encode() in text:
                found.append(int(folder.name))
    return found


def ended_within(word: str, seconds: float = 2.0) -> bool:
    """Whether no process with this word is left after a short while."""
    until = time.monotonic() + seconds
    while processes_with(word):
        if time.monotonic() > until:
            return False
    return True
