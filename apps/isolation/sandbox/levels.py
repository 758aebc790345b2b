"""How far a run can be walled off, in steps, and what stands and does not stand then."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec


class Level(StrEnum):
    """What isolation was reached; `NONE` leaves limits and the watch alone."""

    NAMESPACES = "namespaces"
    LANDLOCK_SECCOMP = "landlock_seccomp"
    NONE = "none"

    def is_at_least(self, least: Level) -> bool:
        """Whether this level is `least` or better."""
        return _RANK[self] >= _RANK[least]


_RANK = {Level.NONE: 0, Level.LANDLOCK_SECCOMP: 1, Level.NAMESPACES: 2}
LEVEL_WORDS = {
    Level.NAMESPACES: "namespaces",
    Level.LANDLOCK_SECCOMP: "Landlock and seccomp",
    Level.NONE: "none",
}


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way to wall a run off on this machine.

    `bubblewrap` is the program that makes the namespaces, in a user namespace where
    `has_own_users`. `landlock` is the version (0: none). With `asks` the kernel asks us
    about each system call that is held back, so that it can be written down.
    """

    level: Level
    bubblewrap: Path | None = None
    has_own_users: bool = False
    landlock: int = 0
    has_filter: bool = False
    asks: bool = False
    takes_account: bool = False


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """What was reached: the layers of the wall in words, and what none of them holds."""

    level: Level
    wall: tuple[str, ...]
    not_walled: tuple[str, ...]
    versions: dict[str, str]


def wall_of(way: Way) -> tuple[str, ...]:
    """The layers of a way in words."""
    found = []
    if way.bubblewrap:
        found.append("namespaces of its own for files, network, processes and IPC")
    if way.landlock:
        found.append(f"Landlock (ABI {way.landlock})")
    if way.has_filter:
        found.append("filter of system calls (seccomp)")
    if way.asks:
        found.append("the kernel reports what the filter holds back")
    if way.takes_account:
        found.append("an account of its own without rights")
    found += [
        "limits on memory, time, files and processes",
        "a clean environment",
        "an audit hook that writes attempts down",
    ]
    return tuple(found)


def not_walled_by(way: Way) -> tuple[str, ...]:
    """What this way does not hold, in sentences."""
    found = [
        "Bugs of the kernel and side channels.",
        "What native code reads or writes without Python is held back but not listed.",
        "Each process that a command starts has the limit of memory for itself.",
    ]
    if not way.bubblewrap:
        found.append(
            "Names, sizes and dates of files outside, and which connections there are on "
            "this machine, can be asked for."
        )
    if not way.asks:
        found.append("System calls made without Python are not listed.")
    if way.level == Level.NONE:
        found.append("Files, network and processes of this machine can be reached.")
    elif way.landlock < 6 and not way.bubblewrap:
        found.append("Signals are held back by number of the process alone.")
    return tuple(found)
