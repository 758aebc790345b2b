"""What chance does to decisive forks, in words: beside one fork and over all tasks."""

from __future__ import annotations

from typing import Final

from apps.engine.branching import Branching, Fork, decisive_chance
from apps.reports import words
from apps.scoring.decisive import DecisiveForks

CAVEAT: Final = (
    "Fisher's exact test for this one fork. It does not count how many forks were "
    "looked at, and it does not say that the fork is the cause."
)


def caveat_of(branching: Branching, fork: Fork) -> str:
    """What the p of one fork leaves out, and what chance alone does to these trials."""
    if fork.p is None:
        return ""
    by_chance = decisive_chance(branching)
    return f"{CAVEAT} {by_chance.sentence}" if by_chance else CAVEAT


def decisive_words(found: DecisiveForks | None) -> str:
    """How many mixed tasks have a decisive fork beside chance; "" where none is mixed."""
    if found is None:
        return ""
    tasks = "task has" if found.mixed == 1 else "tasks have"
    said = (
        f"{found.found:,} of {found.mixed:,} mixed {tasks} a decisive fork; dealing the "
        f"outcomes of each task to its trials at random gives "
        f"{words.expected(found.expected)} ({found.low:,} to {found.high:,})."
    )
    if found.is_more_than_chance:
        return said
    return f"{said} That is within what chance gives."
