"""Which turns each trial of a memory test has: the same test and seed, the same plan."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from random import Random

import msgspec

from apps.engine.contracts.spec import BadDefinition
from apps.engine.memory_tests.filler import filler_of, shuffled
from apps.engine.memory_tests.spec import Length, MemoryTest, Mode, told


class TurnKind(StrEnum):
    """Why something is said."""

    PLANT = "plant"
    FILLER = "filler"
    DECOY = "decoy"
    PROBE = "probe"


class PlannedTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the user says in one turn; `fact` is the slug of the fact that it is about."""

    kind: TurnKind
    text: str
    fact: str = ""


class PlannedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation from its start: all turns of the user in order.

    `number` counts from 1 over the whole plan, `repeat` from 1 within the depth.
    Summaries are asked for after the turns in `summaries` (places from 0).
    """

    number: int
    depth: int
    repeat: int
    turns: tuple[PlannedTurn, ...]
    summaries: tuple[int, ...] = ()

    def place_of(self, kind: TurnKind, fact: str) -> int:
        """The place (from 0) of the turn that tells a fact or asks for it."""
        return next(
            place
            for place, turn in enumerate(self.turns)
            if turn.kind is kind and turn.fact == fact
        )

    @property
    def facts(self) -> tuple[str, ...]:
        """The slugs of the facts in the order in which they are told and asked for."""
        return tuple([t.fact for t in self.turns if t.kind is TurnKind.PLANT])


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All trials of a test. `left_out` texts named a value and are not said."""

    trials: tuple[PlannedTrial, ...]
    left_out: int = 0

    @property
    def calls(self) -> int:
        """How often an agent or its summariser is asked something at least."""
        return sum([len(one.turns) + len(one.summaries) for one in self.trials])


class ActKind(StrEnum):
    """What is done with a conversation."""

    TURN = "turn"
    STATE = "state"
    SUMMARISE = "summarise"


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do. `turn` is the place of the turn that is said or was said last."""

    kind: ActKind
    turn: int
    text: str = ""


def planned(test: MemoryTest, seed: int | None = None) -> Plan:
    """Every trial, depth by depth. `seed` takes the place of that of the test.

    A trial does not depend on which other depths and repeats there are. Facts change
    places from repeat to repeat, so that none is always the first one. Decoys stand
    between telling and asking where there is room, the others before the facts. Raises
    `BadDefinition` where no text is left that does not name a value.
    """
    texts, left_out = _said_between(test)
    trials = [
        _trial(test, (depth, repeat), seed, texts)
        for depth in test.depths
        for repeat in range(1, test.repeats + 1)
    ]
    return Plan(trials=tuple(trials), left_out=left_out)


def planned_trial(
    test: MemoryTest, *, depth: int, repeat: int, seed: int | None = None
) -> PlannedTrial:
    """The same trial as in `planned`, alone. Raises as it does.

    Raises `ValueError` for a depth or a repeat (from 1) that the test does not have.
    """
    if depth not in test.depths or not 1 <= repeat <= test.repeats:
        raise ValueError(f"The test has no trial {repeat} at depth {depth}.")
    texts, _ = _said_between(test)
    return _trial(test, (depth, repeat), seed, texts)


def _said_between(test: MemoryTest) -> tuple[tuple[str, ...], int]:
    texts, left_out = filler_of(test)
    if not texts:
        raise BadDefinition(
            "Every text names the value of a fact or of a decoy, or one that looks "
            "like it; nothing is left to say in between.",
            field="filler.texts",
        )
    return texts, left_out


def _trial(
    test: MemoryTest, place: tuple[int, int], seed: int | None, texts: tuple[str, ...]
) -> PlannedTrial:
    depth, repeat = place
    base = test.seed if seed is None else seed
    turns = _turns(test, depth, repeat, base, texts)
    return PlannedTrial(
        number=test.depths.index(depth) * test.repeats + repeat,
        depth=depth,
        repeat=repeat,
        turns=turns,
        summaries=_summaries(test, turns),
    )


def acts_of(trial: PlannedTrial) -> tuple[Act, ...]:
    """What is done in a trial, in order, once the conversation was started anew.

    The state is read after each turn that tells a fact, around each summary and before
    each turn that asks, and once where two of these meet.
    """
    return tuple(_acts(trial))


def _acts(trial: PlannedTrial) -> Iterator[Act]:
    last = len(trial.turns) - 1
    for place, turn in enumerate(trial.turns):
        yield Act(kind=ActKind.TURN, turn=place, text=turn.text)
        is_summarised = place in trial.summaries
        is_next_asked = place < last and trial.turns[place + 1].kind is TurnKind.PROBE
        if turn.kind is TurnKind.PLANT or is_summarised or is_next_asked:
            yield Act(kind=ActKind.STATE, turn=place)
        if is_summarised:
            yield Act(kind=ActKind.SUMMARISE, turn=place)
            yield Act(kind=ActKind.STATE, turn=place)


def _turns(
    test: MemoryTest, depth: int, repeat: int, seed: int, texts: tuple[str, ...]
) -> tuple[PlannedTurn, ...]:
    source = Random(f"{seed}:{depth}:{repeat}")  # noqa: S311 - an order, not a secret
    said = shuffled(texts, source)
    first = (repeat - 1) % len(test.facts)
    facts = test.facts[first:] + test.facts[:first]
    decoys = [
        PlannedTurn(
            kind=TurnKind.DECOY, text=told(decoy.telling, decoy.value), fact=fact.slug
        )
        for fact in facts
        for decoy in fact.decoys
    ]
    source.shuffle(decoys)
    between = depth - (len(facts) - 1)
    lead = test.depths[-1] - depth if test.length is Length.EQUAL else 0
    outside = decoys[between:]
    before = _mixed(outside, max(0, lead - len(outside)), said, source)
    inside = decoys[:between]
    return (
        *before,
        *[
            PlannedTurn(
                kind=TurnKind.PLANT, text=told(one.telling, one.value), fact=one.slug
            )
            for one in facts
        ],
        *_mixed(inside, between - len(inside), said, source),
        *[
            PlannedTurn(kind=TurnKind.PROBE, text=one.probe, fact=one.slug)
            for one in facts
        ],
    )


def _mixed(
    decoys: list[PlannedTurn], number: int, said: Iterator[str], source: Random
) -> list[PlannedTurn]:
    """So many turns of filler with decoys at places of chance among them."""
    turns = [
        PlannedTurn(kind=TurnKind.FILLER, text=text) for text in islice(said, number)
    ]
    for decoy in decoys:
        turns.insert(source.randint(0, len(turns)), decoy)
    return turns


def _summaries(test: MemoryTest, turns: tuple[PlannedTurn, ...]) -> tuple[int, ...]:
    """After every so many turns, up to the turn before the first one that asks."""
    if test.mode is not Mode.SUMMARISED:
        return ()
    asked = next(n for n, turn in enumerate(turns) if turn.kind is TurnKind.PROBE)
    every = test.summary_every
    return tuple(range(every - 1, asked, every))
