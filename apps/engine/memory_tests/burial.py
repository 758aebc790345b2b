"""How recall goes with depth: counts, intervals, and where it stops being certain.

A depth that was not tried is not tested, never 0. Trials that failed, and answers that
name several candidates, are in the denominator. Nothing is said of depths in between.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from statistics import NormalDist
from typing import Final

import msgspec

from apps.engine.memory.recall import Place
from apps.engine.memory_tests.conversation import TrialRecord
from apps.engine.memory_tests.judging import Recollection
from apps.engine.memory_tests.probes import Probed, is_untried, probed_in
from apps.engine.memory_tests.spec import Length, MemoryTest
from apps.engine.memory_tests.trend import Trend, falling_trend
from apps.engine.nulls.intervals import Interval, newcombe, wilson

_Z: Final = NormalDist().inv_cdf(0.975)


class Standing(StrEnum):
    """What the trials of one depth say of recall there.

    Certain: the lower end of the interval reaches the declared share. Too few: all were
    recalled, and there are too few of them to show that share. Uncertain: some were
    not, and the lower end lies below it. Unanswered: no question of the whole test has
    an answer, at whatever depth, so that nothing is known of what is remembered.
    """

    CERTAIN = "certain"
    TOO_FEW = "too_few"
    UNCERTAIN = "uncertain"
    UNANSWERED = "unanswered"
    NOT_TESTED = "not_tested"


class DepthPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One depth: how many of how many recalled, with the Wilson 95 % interval.

    `counts` are the recollections, `places` where failures were lost, by their value.
    `held` of `held_known` states before asking named the value. `interval` is `None`
    where nothing was tried, and where it is unanswered.
    """

    depth: int
    recalled: int
    trials: int
    interval: Interval | None
    standing: Standing
    counts: dict[str, int]
    places: dict[str, int]
    held: int = 0
    held_known: int = 0


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Recall by depth. `name` is the slug of a fact or the words for a position."""

    name: str
    points: tuple[DepthPoint, ...]

    @property
    def first_uncertain(self) -> int | None:
        """The least tested depth that is uncertain; `None` where none is."""
        return self._first({Standing.UNCERTAIN})

    @property
    def first_lapse(self) -> int | None:
        """The least tested depth at which any trial was not recalled."""
        lapsed = [
            one.depth
            for one in self.points
            if one.recalled < one.trials and one.standing is not Standing.UNANSWERED
        ]
        return lapsed[0] if lapsed else None

    @property
    def last_before(self) -> int | None:
        """The greatest tested depth below the first uncertain one."""
        first = self.first_uncertain
        if first is None:
            return None
        tested = [one.depth for one in self.points if one.trials and one.depth < first]
        return tested[-1] if tested else None

    def _first(self, standings: set[Standing]) -> int | None:
        found = [one.depth for one in self.points if one.standing in standings]
        return found[0] if found else None


class Middle(msgspec.Struct, frozen=True, kw_only=True):
    """Recall at the least and the greatest depth beside that in between.

    Counts are (recalled, trials); `interval` is that of ends minus middle.
    """

    ends: tuple[int, int]
    middle: tuple[int, int]
    interval: Interval


class Burial(msgspec.Struct, frozen=True, kw_only=True):
    """What all trials of a memory test show.

    `whole` counts a trial as recalled where each of its facts was. `facts` is a curve
    for each fact; `positions` for each place at which a fact was told among the others,
    empty with one fact. `trend` is that of `whole`. `middle` is there where all
    conversations are equally long. `needed` trials without a lapse show the declared
    share. `untried` trials were cancelled or stopped for their cost and count nowhere;
    in `renamed` trials an answer in between named a fact again.
    """

    certain_from: float
    needed: int
    whole: Curve
    facts: tuple[Curve, ...]
    positions: tuple[Curve, ...]
    trend: Trend | None
    middle: Middle | None
    untried: int
    renamed: int
    probed: tuple[Probed, ...]

    @property
    def is_unanswered(self) -> bool:
        """Whether questions were due and none of them has an answer."""
        return bool(self.probed) and all(
            one.recollection is Recollection.FAILED for one in self.probed
        )


def needed_for(share: float) -> int:
    """How many trials, all recalled, put the lower Wilson 95 % end at a share.

    The lower end for n of n is n / (n + z²), so it is the least n from z² s / (1 - s).
    """
    return max(1, math.ceil(_Z * _Z * share / (1 - share) - 1e-9))


def burial_of(test: MemoryTest, records: Iterable[TrialRecord]) -> Burial:
    """The curves of a test from the records of its trials, in any order.

    The intervals assume independent trials with one rate. That is why the facts of one
    conversation are never pooled: each curve has at most one observation a trial.
    """
    probed: list[Probed] = []
    untried = 0
    for record in records:
        untried += is_untried(record)
        probed += probed_in(test, record)
    return burial_from(test, probed, untried=untried)


def burial_from(
    test: MemoryTest, probed: Sequence[Probed], *, untried: int = 0
) -> Burial:
    """As `burial_of`, from what was judged of each trial before, in any order."""
    whole = _curve(test, "", _by_trial(probed))
    positions = range(1, len(test.facts) + 1) if len(test.facts) > 1 else ()
    found = Burial(
        certain_from=test.certain_from,
        needed=needed_for(test.certain_from),
        whole=whole,
        facts=tuple(
            [
                _curve(test, fact.slug, _each(probed, _is_fact(fact.slug)))
                for fact in test.facts
            ]
        ),
        positions=tuple(
            [
                _curve(test, position_words(at, len(test.facts)), _at(probed, at))
                for at in positions
            ]
        ),
        trend=falling_trend([(one.recalled, one.trials) for one in whole.points]),
        middle=_middle(test, whole),
        untried=untried,
        renamed=len({(one.depth, one.repeat) for one in probed if one.named_between}),
        probed=tuple(probed),
    )
    return _unanswered(found) if found.is_unanswered else found


def _unanswered(found: Burial) -> Burial:
    """The same without a word of recall: what always failed was never asked."""
    return msgspec.structs.replace(
        found,
        whole=_without_standing(found.whole),
        facts=tuple(map(_without_standing, found.facts)),
        positions=tuple(map(_without_standing, found.positions)),
        middle=None,
    )


def _without_standing(curve: Curve) -> Curve:
    points = [
        msgspec.structs.replace(one, standing=Standing.UNANSWERED, interval=None)
        if one.trials
        else one
        for one in curve.points
    ]
    return Curve(name=curve.name, points=tuple(points))


def position_words(position: int, of: int) -> str:
    """A place among facts in words: told first, told last, told 2nd of 4."""
    if position == 1:
        return "told first"
    if position == of:
        return "told last"
    ending = {2: "nd", 3: "rd"}.get(position, "th")
    return f"told {position}{ending} of {of}"


_Trials = list[list[Probed]]
"""For each trial the facts that a curve counts as one observation."""


def _by_trial(probed: Sequence[Probed]) -> _Trials:
    # Depth and repeat name a trial, also where plans of single depths were run.
    trials: dict[tuple[int, int], list[Probed]] = {}
    for one in probed:
        trials.setdefault((one.depth, one.repeat), []).append(one)
    return list(trials.values())


def _each(probed: Sequence[Probed], takes: Callable[[Probed], bool]) -> _Trials:
    return [[one] for one in probed if takes(one)]


def _is_fact(slug: str) -> Callable[[Probed], bool]:
    return lambda one: one.fact == slug


def _at(probed: Sequence[Probed], position: int) -> _Trials:
    return _each(probed, lambda one: one.position == position)


def _curve(test: MemoryTest, name: str, trials: _Trials) -> Curve:
    by_depth: dict[int, _Trials] = {depth: [] for depth in test.depths}
    for trial in trials:
        by_depth.setdefault(trial[0].depth, []).append(trial)
    points = [_point(test, depth, found) for depth, found in sorted(by_depth.items())]
    return Curve(name=name, points=tuple(points))


def _point(test: MemoryTest, depth: int, trials: _Trials) -> DepthPoint:
    recalled = sum(all(one.is_recalled for one in trial) for trial in trials)
    interval = wilson(recalled, len(trials))
    probed = [one for trial in trials for one in trial]
    known = [one.held for one in probed if one.held is not None]
    places = Counter([one.place.value for one in probed if one.place is not None])
    counts = Counter([one.recollection.value for one in probed])
    return DepthPoint(
        depth=depth,
        recalled=recalled,
        trials=len(trials),
        interval=interval,
        standing=_standing(test, recalled, len(trials), interval),
        counts={one.value: counts[one.value] for one in Recollection},
        places={one.value: places[one.value] for one in Place if places[one.value]},
        held=sum(known),
        held_known=len(known),
    )


def _standing(
    test: MemoryTest, recalled: int, trials: int, interval: Interval | None
) -> Standing:
    if interval is None:
        return Standing.NOT_TESTED
    if recalled == trials:
        is_enough = trials >= needed_for(test.certain_from)
        return Standing.CERTAIN if is_enough else Standing.TOO_FEW
    is_certain = interval.low >= test.certain_from
    return Standing.CERTAIN if is_certain else Standing.UNCERTAIN


def _middle(test: MemoryTest, curve: Curve) -> Middle | None:
    tested = [one for one in curve.points if one.trials]
    if test.length is not Length.EQUAL or len(tested) < 3:
        return None
    ends = _sum([tested[0], tested[-1]])
    middle = _sum(tested[1:-1])
    interval = newcombe(ends, middle)
    if interval is None:
        return None
    return Middle(ends=ends, middle=middle, interval=interval)


def _sum(points: Sequence[DepthPoint]) -> tuple[int, int]:
    return sum([one.recalled for one in points]), sum([one.trials for one in points])
