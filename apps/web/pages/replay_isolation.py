"""How far this site can wall off a run, in words."""

from __future__ import annotations

from functools import cache

import msgspec

from apps.isolation.sandbox.levels import LEVEL_WORDS, Level, Reached
from apps.isolation.sandbox.probing import probe
from apps.replays.allowed import least_level


class Isolation(msgspec.Struct, frozen=True):
    """The level that is reached here, its layers, what they do not hold, and the least.

    `sentence` says that less is reached than this site asks for, "" where it is not.
    """

    level: str
    words: str
    tone: str
    wall: list[str]
    not_walled: list[str]
    least: str
    sentence: str


def isolation_here() -> Isolation:
    """What is reached where pages are made. A run says what its own worker reached."""
    reached, least = _reached(), least_level()
    is_enough = reached.level.is_at_least(least)
    return Isolation(
        level=reached.level.value,
        words=LEVEL_WORDS[reached.level],
        tone=("green" if reached.level is Level.NAMESPACES else "amber")
        if is_enough
        else "red",
        wall=list(reached.wall),
        not_walled=list(reached.not_walled),
        least=LEVEL_WORDS[least],
        sentence=""
        if is_enough
        else (
            f"This site asks for {LEVEL_WORDS[least]} at least "
            "(EVALSITE_REPLAY_LEAST_ISOLATION), so callables and commands are not run "
            "here."
        ),
    )


@cache
def _reached() -> Reached:
    return probe()
