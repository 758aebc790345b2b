"""What each trial of a memory test shows of each of its facts."""

from __future__ import annotations

from typing import Final

import msgspec

from apps.engine.memory.recall import Place
from apps.engine.memory_tests.conversation import TrialRecord
from apps.engine.memory_tests.judging import Judged, Recollection, judged_turn
from apps.engine.memory_tests.lost import Seen, held_before, lost_in, seen_of
from apps.engine.memory_tests.named import names_fact
from apps.engine.memory_tests.plan import ActKind, TurnKind
from apps.engine.memory_tests.spec import Fact, MemoryTest
from apps.engine.replay.run import ErrorKind

_UNTRIED: Final = frozenset({ErrorKind.CANCELLED, ErrorKind.BUDGET})
_GONE: Final = frozenset({Recollection.LOST, Recollection.CONTRADICTED})


class Probed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fact in one trial.

    `position` counts from 1 in which place among the facts of the trial it was told.
    `held` says whether the last state before it was asked for named the value, `None`
    where none was given out. `named_between` turns in between had an answer that named
    it, so that it lay less deep than planned. `place`, `why` and `seen` say where a
    fact that was lost or contradicted went.
    """

    fact: str
    trial: int
    depth: int
    repeat: int
    position: int
    recollection: Recollection
    sentence: str
    others: tuple[str, ...] = ()
    held: bool | None = None
    summaries_between: int = 0
    named_between: int = 0
    place: Place | None = None
    why: str = ""
    seen: tuple[Seen, ...] = ()

    @property
    def is_recalled(self) -> bool:
        """Whether the fact was given back."""
        return self.recollection is Recollection.RECALLED


def probed_in(test: MemoryTest, record: TrialRecord) -> tuple[Probed, ...]:
    """What a trial shows of each fact, in the order in which they are asked for.

    Empty where the trial was cancelled or stopped for its cost before it came to an
    end: it tried nothing. Every other trial that broke off counts as failed for each
    fact that was not asked for any more.
    """
    if is_untried(record):
        return ()
    by_slug = {fact.slug: fact for fact in test.facts}
    return tuple(
        [
            _probed(by_slug[slug], record, position)
            for position, slug in enumerate(record.trial.facts, start=1)
            if slug in by_slug
        ]
    )


def is_untried(record: TrialRecord) -> bool:
    """Whether somebody or a budget stopped the trial, not the agent."""
    return record.error is not None and record.error.kind in _UNTRIED


def _probed(fact: Fact, record: TrialRecord, position: int) -> Probed:
    trial = record.trial
    planted = trial.place_of(TurnKind.PLANT, fact.slug)
    asked = trial.place_of(TurnKind.PROBE, fact.slug)
    judged = _judged(fact, record, asked)
    seen = seen_of(record, fact)
    lost = lost_in(seen) if judged.recollection in _GONE else None
    return Probed(
        fact=fact.slug,
        trial=trial.number,
        depth=trial.depth,
        repeat=trial.repeat,
        position=position,
        recollection=judged.recollection,
        sentence=judged.sentence,
        others=judged.others,
        held=held_before(seen),
        summaries_between=sum(planted <= place < asked for place in trial.summaries),
        named_between=_named_between(fact, record, planted, asked),
        place=None if lost is None else lost.place,
        why="" if lost is None else lost.why,
        seen=seen,
    )


def _judged(fact: Fact, record: TrialRecord, asked: int) -> Judged:
    heard = record.answer_to(asked)
    if heard is not None:
        return judged_turn(heard, fact)
    why = "It ended early." if record.error is None else record.error.sentence
    return Judged(
        recollection=Recollection.FAILED,
        sentence=f"The trial broke off before it was asked for: {why}",
    )


def _named_between(fact: Fact, record: TrialRecord, planted: int, asked: int) -> int:
    """In how many turns in between the agent itself named the value again."""
    return sum(
        bool(names_fact(heard.value, fact))
        for heard in record.heard
        if heard.act.kind is ActKind.TURN and planted < heard.act.turn < asked
    )
