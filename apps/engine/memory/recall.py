"""What is said about one fact in one trace: whether it was recalled, and where it went."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

LONGEST_SHOWN: Final = 200
MOST_OTHERS: Final = 5
MOST_STEPS: Final = 8


class State(StrEnum):
    """What became of a fact where it was needed."""

    RECALLED = "recalled"
    LOST = "lost"
    CONTRADICTED = "contradicted"
    AMBIGUOUS = "ambiguous"
    NOT_TOLD = "not_told"
    NOT_PROBED = "not_probed"
    UNDECIDED = "undecided"


FAILED: Final = frozenset({State.LOST, State.CONTRADICTED})
"""The states that speak against an agent."""

_DECIDED: Final = FAILED | {State.RECALLED}


class Source(StrEnum):
    """Whether a person declared the fact, or exact reuse of a value showed it."""

    DECLARED = "declared"
    DETECTED = "detected"


class Place(StrEnum):
    """Where a fact that failed was last seen not to pass."""

    NEVER_STORED = "never_stored"
    DROPPED_BY_SUMMARISER = "dropped_by_summariser"
    NOT_RETRIEVED = "not_retrieved"
    IGNORED = "ignored"
    CANNOT_TELL = "cannot_tell"


class Recall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fact, one place that needs it, and what became of it there.

    Steps are `seq`, `None` where there is none. `probe` counts from 1 the places that
    need a declared fact, 0 where none does. `turns_between` are the messages of users
    and `steps_between` the steps that lie strictly between telling and needing.
    `others` are candidates that were named besides the value. `place`, `place_steps`
    and `why` localise a failure. `agent` is the recorded name of the agent of the step
    that dropped the fact, else of the one that answered; empty where none is recorded.
    """

    fact: str
    source: Source
    value: str
    state: State
    sentence: str
    probe: int = 0
    told_step: int | None = None
    needed_step: int | None = None
    answer_step: int | None = None
    turns_between: int | None = None
    steps_between: int | None = None
    others: tuple[str, ...] = ()
    place: Place | None = None
    place_steps: tuple[int, ...] = ()
    why: str = ""
    agent: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether the fact was lost or contradicted."""
        return self.state in FAILED


def counted(recalls: Iterable[Recall]) -> tuple[int, int]:
    """How many of the decided ones were recalled, and how many are decided.

    Ambiguous, undecided, not needed and not told ones are not in either number.
    """
    states = [recall.state for recall in recalls]
    decided = [state for state in states if state in _DECIDED]
    return decided.count(State.RECALLED), len(decided)


def cut(text: str, most: int = LONGEST_SHOWN) -> str:
    """A text that is short enough to be stored with each trace, as valid UTF-8."""
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    return valid_text(text)


def valid_text(text: str) -> str:
    """The text with `?` for each half of a character, which JSON cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
