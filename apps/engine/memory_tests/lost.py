"""Where a fact that a trial did not give back was lost.

It rests on what was given out: states, summaries, and what the model was given for its
answer. The last place where the value provably did not pass is named; where these do
not show it, the answer is that it is not known. A value that is kept in other words
counts as not kept.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from apps.engine.memory import Place
from apps.engine.memory_tests.conversation import Heard, TrialRecord
from apps.engine.memory_tests.heard_trace import handed_in
from apps.engine.memory_tests.named import names_fact
from apps.engine.memory_tests.plan import ActKind, TurnKind
from apps.engine.memory_tests.spec import Fact

_UNSEEN: Final = (
    " What the model was given for its answer is not known, so it may have stood there."
)


class Of(StrEnum):
    """What was looked at."""

    STATE = "state"
    SUMMARY = "summary"
    HANDED = "handed"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Whether something named the value after the turn at a place (from 0).

    `names` is `None` where it was not given out, or not whole.
    """

    what: Of
    turn: int
    names: bool | None


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """Where it was lost, why that is said, and everything that was looked at."""

    place: Place
    why: str
    seen: tuple[Seen, ...]


class _Trail(msgspec.Struct):
    """What one keeper is known to hold: where it was last seen, or how it went."""

    holder: Seen | None = None
    lost: tuple[Place, tuple[Seen, ...]] | None = None

    def held_by(self, one: Seen) -> None:
        self.holder, self.lost = one, None

    def missed_by(self, one: Seen, place: Place) -> None:
        if self.holder is not None:
            self.lost = (Place.DROPPED_BY_SUMMARISER, (self.holder, one))
            self.holder = None
        elif self.lost is None:
            self.lost = (place, (one,))


class _Trails:
    """States and summaries, which may be two memories; a state may hold the summary."""

    def __init__(self, seen: tuple[Seen, ...]) -> None:
        self.state, self.summary = _Trail(), _Trail()
        self._made: Seen | None = None
        for one in seen:
            if one.what is Of.STATE:
                self._follow_state(one)
            elif one.what is Of.SUMMARY:
                self._made = one
                self._follow_summary(one)

    @property
    def holder(self) -> Seen | None:
        return self.state.holder or self.summary.holder

    @property
    def lost(self) -> tuple[Place, tuple[Seen, ...]] | None:
        found = [one.lost for one in (self.state, self.summary) if one.lost is not None]
        return max(found, key=lambda lost: lost[1][-1].turn, default=None)

    def _follow_state(self, one: Seen) -> None:
        if one.names is None:
            # What held it before may not any more, where its successor is not seen.
            self.state.holder = None
        elif one.names:
            self.state.held_by(one)
            # From here on the state tells, whatever the summary said.
            self.summary = _Trail()
        else:
            made = self._made
            is_made = made is not None and made.turn == one.turn and not made.names
            by = made if is_made and made is not None and self.state.holder else one
            self.state.missed_by(by, Place.NEVER_STORED)

    def _follow_summary(self, one: Seen) -> None:
        if one.names is None:
            self.summary.holder = None
        elif one.names:
            self.summary.held_by(one)
        else:
            # What was told was said by then, so that the summary was made of it too.
            self.summary.missed_by(one, Place.DROPPED_BY_SUMMARISER)


def seen_of(record: TrialRecord, fact: Fact) -> tuple[Seen, ...]:
    """What states, summaries and the model's input say of a fact, in order.

    From the turn that tells it up to the one that asks for it.
    """
    trial = record.trial
    planted = trial.place_of(TurnKind.PLANT, fact.slug)
    asked = trial.place_of(TurnKind.PROBE, fact.slug)
    seen = [
        _seen(heard, fact)
        for heard in record.heard
        if heard.act.kind is not ActKind.TURN and planted <= heard.act.turn < asked
    ]
    answer = record.answer_to(asked)
    if answer is not None:
        names = names_fact(handed_in(answer), fact)
        seen.append(Seen(what=Of.HANDED, turn=asked, names=names))
    return tuple(seen)


def held_before(seen: tuple[Seen, ...]) -> bool | None:
    """Whether the last state before the turn that asks named the value."""
    states = [one for one in seen if one.what is Of.STATE]
    return states[-1].names if states else None


def lost_in(seen: tuple[Seen, ...]) -> Lost:
    """Where a fact that was not given back was lost, by what was seen of it."""
    handed = next((one for one in seen if one.what is Of.HANDED), None)
    if handed is not None and handed.names:
        return Lost(
            place=Place.IGNORED,
            why=f"What the model was given in turn {_at(handed)} names it; the answer "
            "does not give it.",
            seen=seen,
        )
    trails = _Trails(seen)
    is_handed_known = handed is not None and handed.names is False
    if trails.holder is not None:
        return _held(trails.holder, handed if is_handed_known else None, seen)
    if trails.lost is not None:
        place, steps = trails.lost
        why = _how(place, steps) + ("" if is_handed_known else _UNSEEN)
        return Lost(place=place, why=why, seen=seen)
    return Lost(place=Place.CANNOT_TELL, why=_nothing_shown(seen, handed), seen=seen)


def _seen(heard: Heard, fact: Fact) -> Seen:
    is_state = heard.act.kind is ActKind.STATE
    return Seen(
        what=Of.STATE if is_state else Of.SUMMARY,
        turn=heard.act.turn,
        names=names_fact(heard.value, fact),
    )


def _held(holder: Seen, handed: Seen | None, seen: tuple[Seen, ...]) -> Lost:
    kept = f"The {holder.what} after turn {_at(holder)} names it"
    if handed is None:
        return Lost(
            place=Place.CANNOT_TELL,
            why=f"{kept}; what the model was given for its answer is not known, so it "
            "was either not retrieved or ignored.",
            seen=seen,
        )
    return Lost(
        place=Place.NOT_RETRIEVED,
        why=f"{kept}; what the model was given in turn {_at(handed)} does not.",
        seen=seen,
    )


def _how(place: Place, steps: tuple[Seen, ...]) -> str:
    last = steps[-1]
    after = f"the {last.what} after turn {_at(last)} does not"
    if place is Place.NEVER_STORED:
        return f"{after.capitalize()} name it, though it had just been told."
    if len(steps) == 1:
        return f"It was said before the summary, and {after} name it."
    first = steps[0]
    if last.what is Of.STATE:
        after += "; whatever shortens the state in between dropped it"
    return f"The {first.what} after turn {_at(first)} names it, {after}."


def _nothing_shown(seen: tuple[Seen, ...], handed: Seen | None) -> str:
    is_silent = all(one.names is None for one in seen if one.what is not Of.HANDED)
    why = (
        "No state and no summary was given out"
        if is_silent
        else "The last state before the turn that asks was not given out"
    )
    if handed is None or handed.names is None:
        return f"{why}, nor what the model was given for its answer."
    return f"{why}; what the model was given in turn {_at(handed)} does not name it."


def _at(one: Seen) -> int:
    """The number of a turn as people count."""
    return one.turn + 1
