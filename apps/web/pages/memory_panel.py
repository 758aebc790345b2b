"""What became of the facts that one trace told and needed again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from apps.engine.memory import FAILED, Place, Recall, Source, State, counted
from apps.web.words import number_in_words

PLACES = {
    Place.NEVER_STORED: "never stored",
    Place.DROPPED_BY_SUMMARISER: "dropped by the summariser",
    Place.NOT_RETRIEVED: "not retrieved",
    Place.IGNORED: "at hand, and ignored",
    Place.CANNOT_TELL: "where it was lost cannot be told",
}
STATES = {
    State.RECALLED: ("recalled", "green"),
    State.LOST: ("lost", "red"),
    State.CONTRADICTED: ("contradicted", "red"),
    State.AMBIGUOUS: ("ambiguous", ""),
    State.NOT_TOLD: ("not told", ""),
    State.NOT_PROBED: ("not needed again", ""),
    State.UNDECIDED: ("undecided", ""),
}
MOST = 50


class RecallRow(msgspec.Struct, frozen=True):
    """One fact at one place that needed it. Steps count from 1."""

    fact: str
    value: str
    state: str
    tone: str
    is_declared: bool
    sentence: str
    told: int | None
    needed: int | None
    answered: int | None
    depth: str
    place: str
    place_steps: list[int]
    why: str
    agent: str


class MemoryPanel(msgspec.Struct, frozen=True):
    """The facts of a trace; `words` counts the recalled of those that were decided.

    `rows` has declared facts and what was not recalled, failures first; `quiet` the
    values that were only seen to be used again as they were told.
    """

    rows: list[RecallRow]
    quiet: list[RecallRow]
    words: str
    left_out: int

    @property
    def has_places(self) -> bool:
        """Whether it is said of any where it was lost."""
        return any(row.place for row in self.rows)


def memory_panel(recalls: Iterable[dict[str, Any]]) -> MemoryPanel | None:
    """The facts of a trace as stored with its score; `None` where there are none."""
    found = [msgspec.convert(one, Recall) for one in recalls]
    if not found:
        return None
    found.sort(key=lambda one: (one.state not in FAILED, one.source is Source.DETECTED))
    recalled, decided = counted(found)
    shown = found[:MOST]
    return MemoryPanel(
        rows=[_row(one) for one in shown if not _is_quiet(one)],
        quiet=[_row(one) for one in shown if _is_quiet(one)],
        words=(
            f"{number_in_words(recalled)} of {number_in_words(decided)} recalled"
            if decided
            else "none could be decided"
        ),
        left_out=max(0, len(found) - MOST),
    )


def _is_quiet(one: Recall) -> bool:
    return one.source is Source.DETECTED and one.state is State.RECALLED


def _row(one: Recall) -> RecallRow:
    word, tone = STATES[one.state]
    return RecallRow(
        fact=one.fact,
        value=one.value,
        state=word,
        tone=tone,
        is_declared=one.source is Source.DECLARED,
        sentence=one.sentence,
        told=_from_one(one.told_step),
        needed=_from_one(one.needed_step),
        answered=_from_one(one.answer_step),
        depth=_depth(one),
        place=PLACES[one.place] if one.place else "",
        place_steps=[step + 1 for step in one.place_steps],
        why=one.why,
        agent=one.agent,
    )


def _depth(one: Recall) -> str:
    """How deep the fact was buried: turns and steps between telling and needing it."""
    parts = [
        f"{number_in_words(count)} {noun if count == 1 else noun + 's'}"
        for count, noun in (
            (one.turns_between, "turn"),
            (one.steps_between, "step"),
        )
        if count is not None
    ]
    return ", ".join(parts)


def _from_one(seq: int | None) -> int | None:
    return None if seq is None else seq + 1
