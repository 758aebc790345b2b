"""What isolation this machine lets us reach, tried out for real and kept in mind."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from typing import Final

from apps.isolation.sandbox import bubblewrap
from apps.isolation.sandbox.inside import landlock
from apps.isolation.sandbox.inside.syscalls import ARCHITECTURES
from apps.isolation.sandbox.launching import launch
from apps.isolation.sandbox.levels import (
    LEVEL_WORDS,
    Level,
    Reached,
    Way,
    not_walled_by,
    wall_of,
)
from apps.isolation.sandbox.order import Refused, SandboxOrder
from apps.isolation.sandbox.scratch import new_folder, remove_abandoned, remove_folder

_SECONDS: Final = 30.0
"""A wall that is not up by then may be one that a busy machine was too slow for."""
_KNOWN: Final[dict[Level, Way]] = {}
_SECONDS_BETWEEN: Final = 600.0
_TIDIED: Final[dict[str, float]] = {}


def probe(at_most: Level = Level.NAMESPACES) -> Reached:
    """The level reached here, no better than `at_most`. Tried out once per process."""
    return reached_by(best_way(at_most))


def reached_by(way: Way) -> Reached:
    """What a run reaches that is walled in this way."""
    return Reached(
        level=way.level,
        wall=wall_of(way),
        not_walled=not_walled_by(way),
        versions=dict(_versions(way)),
    )


def best_way(at_most: Level) -> Way:
    """The best way that worked when it was tried, with a run that does nothing.

    It is kept in mind unless a better one was not up in time: that one is tried again.
    """
    _tidy()
    if at_most in _KNOWN:
        return _KNOWN[at_most]
    is_sure = True
    for way in _ways(at_most):
        try:
            if _works(way):
                break
        except TimeoutError:
            is_sure = False
    else:
        way = Way(level=Level.NONE)
    if is_sure:
        _KNOWN[at_most] = way
    return way


def _tidy() -> None:
    """Remove what killed workers left, at most every few minutes of a process.

    Before every run, for only a worker of replays is sure to see their folders.
    """
    now = time.monotonic()
    if now >= _TIDIED.get("again_at", now):
        _TIDIED["again_at"] = now + _SECONDS_BETWEEN
        remove_abandoned()


def check_level(reached: Reached, least: Level) -> None:
    """Raises `Refused` where less was reached than is asked for."""
    if not reached.level.is_at_least(least):
        raise Refused(
            f"Runs here are isolated by {LEVEL_WORDS[reached.level]} at best, and "
            f"{LEVEL_WORDS[least]} is the least that is asked for, so it is not run."
        )


def _ways(at_most: Level) -> Iterator[Way]:
    """All ways from the best to the least, `at_most` kept to."""
    is_root = os.geteuid() == 0
    version = landlock.abi()
    has_filter = platform.machine() in ARCHITECTURES
    program = bubblewrap.found_bubblewrap()
    variants = [(True, True), (True, False)] if has_filter else []
    if at_most == Level.NAMESPACES and program:
        for own_users in (False, True) if is_root else (True,):
            for filters, asks in [*variants, (False, False)]:
                yield Way(
                    level=Level.NAMESPACES,
                    bubblewrap=program,
                    has_own_users=own_users,
                    landlock=version,
                    has_filter=filters,
                    asks=asks,
                    takes_account=is_root and not own_users,
                )
    if at_most != Level.NONE and version:
        for takes_account in (True, False) if is_root else (False,):
            for _, asks in variants:
                yield Way(
                    level=Level.LANDLOCK_SECCOMP,
                    landlock=version,
                    has_filter=True,
                    asks=asks,
                    takes_account=takes_account,
                )


def _works(way: Way) -> bool:
    """Whether a run that does nothing gets its wall up; raises `TimeoutError`."""
    scratch = new_folder()
    order = SandboxOrder(target="nothing:nothing")
    try:
        launched = launch(order, way, scratch, kind="nothing")
        try:
            launched.line.settimeout(_SECONDS)
            with launched.line.makefile("rb") as lines:
                told = lines.readline()
        finally:
            launched.close()
        return bool(json.loads(told).get("ready"))
    except TimeoutError:
        raise
    except (OSError, ValueError, Refused):
        return False
    finally:
        remove_folder(scratch)


@cache
def _versions(way: Way) -> dict[str, str]:
    found = {
        "python": sys.version.partition(" ")[0],
        "kernel": platform.release(),
        "machine": platform.machine(),
        "landlock_abi": str(way.landlock),
    }
    if way.bubblewrap:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            said = subprocess.run(  # noqa: S603 - the program that was found
                [way.bubblewrap, "--version"],
                capture_output=True,
                check=True,
                timeout=5,
                text=True,
            )
            found["bubblewrap"] = said.stdout.split()[-1]
    return found
