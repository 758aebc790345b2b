"""The search for short rules that say which runs have a target more often.

All rules of a fixed list are tried. The strongest is compared with the strongest
after each of many shuffles that deal the targets of whole tasks to other tasks
(max-statistic permutation: Westfall and Young 1993), so that p is corrected for the
number of rules and for the dependence within tasks at once. A rule is kept only if it
still beats chance among the runs that the rules before it leave over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from apps.engine.nulls import fisher_exact
from apps.engine.patterns.candidates import (
    Candidate,
    Minimum,
    Support,
    candidates_of,
)
from apps.engine.patterns.columns import bits_at, columns_of
from apps.engine.patterns.findings import (
    Finding,
    Near,
    Patterns,
    Share,
    Wording,
    answer_sentence,
    finding_sentence,
)
from apps.engine.patterns.shuffles import Shuffles
from apps.engine.patterns.strength import Counts, Strength
from apps.engine.patterns.units import Unit, in_order

ALPHA: Final = 0.01
"""A rule is reported up to this corrected p: so often is any reported by chance."""

SHUFFLES: Final = 499
SHUFFLES_OF_MANY: Final = 199
"""For more units than `MANY`, so that 20,000 take seconds."""

MANY: Final = 5_000
MINIMUM: Final = Minimum()

_NEAR: Final = 0.6
"""Rules that share at least this part of the units of both are merged."""

_ALIKE: Final = 0.8
_CLOSE: Final = 2.0
"""Of rules this much alike and this close in strength the simplest is shown."""

_MOST_NEAR: Final = 8
_MOST_FINDINGS: Final = 20
_ROUNDING: Final = 1e-9
_FEWEST_REACHED: Final = 10


class Plan(msgspec.Struct, frozen=True):
    """The parameters of a search. `alpha` needs at least 1 / alpha - 1 shuffles.

    `shuffles` is chosen by the number of units where it is `None`.
    """

    alpha: float = ALPHA
    shuffles: int | None = None
    minimum: Minimum = MINIMUM
    seed: int = 1


DEFAULT: Final = Plan()


def find_patterns(
    units: Iterable[Unit], *, target: str, unit: str = "run", plan: Plan = DEFAULT
) -> Patterns:
    """The rules over features that go with the target more than chance accounts for.

    `target` and `unit` are the words for sentences ("unstable", "run"). The order of
    the units never matters, and the same arguments give the same answer. Raises
    `ValueError` for two units of one id or fewer shuffles than `alpha` needs.
    """
    ordered = in_order(units)
    shuffles = plan.shuffles
    if shuffles is None:
        shuffles = SHUFFLES_OF_MANY if len(ordered) > MANY else SHUFFLES
    allowed = math.floor(plan.alpha * (shuffles + 1) + _ROUNDING) - 1
    if allowed < 0:
        raise ValueError(
            f"A corrected p of {plan.alpha} needs at least "
            f"{math.ceil(1 / plan.alpha) - 1} shuffles."
        )
    search = _Search(ordered, plan, _Limits(shuffles, allowed))
    return search.answer(Wording(target, unit))


class _Limits(msgspec.Struct, frozen=True):
    """How many shuffles are made, and how many may reach a rule that is reported."""

    shuffles: int
    allowed: int


_Strong: TypeAlias = tuple[float, Candidate]


class _Search:
    """One search over units that are in order."""

    def __init__(self, units: list[Unit], plan: Plan, limits: _Limits) -> None:
        self._units, self._plan, self._limits = units, plan, limits
        self._hits = bits_at(
            [place for place, one in enumerate(units) if one.target], len(units)
        )
        self._support = Support(units, plan.minimum)
        columns = columns_of(units, fewest=plan.minimum.units)
        self._features = len(columns)
        is_mixed = 0 < self._hits.bit_count() < len(units)
        self._rules = candidates_of(columns, self._support) if is_mixed else []
        self._strength = Strength(len(units))
        singles = sum([len(one.conditions) == 1 for one in self._rules])
        # Singles and pairs share the error alike, however many of each there are.
        self._price = {
            1: math.log(max(1, singles)),
            2: math.log(max(1, len(self._rules) - singles)),
        }
        self._largest: list[float] = []
        self._has_stopped = False

    def answer(self, wording: Wording) -> Patterns:
        ranked = self._ranked()
        if ranked:
            self._shuffle(ranked[0][0])
        heads, explained = self._heads(ranked)
        found = [self._finding(*head, wording) for head in heads]
        answer = Patterns(
            wording=wording,
            overall=Share(self._hits.bit_count(), len(self._units)),
            tasks=len({one.task for one in self._units}),
            features=self._features,
            rules=len(self._rules),
            shuffles=len(self._largest),
            smallest_p=self._smallest_p(ranked),
            alpha=self._plan.alpha,
            findings=tuple(found),
            explained=explained,
            sentence="",
        )
        return msgspec.structs.replace(answer, sentence=answer_sentence(answer))

    def _smallest_p(self, ranked: list[_Strong]) -> float | None:
        if not self._rules:
            return None
        if not ranked:
            return 1.0
        return self._p(ranked[0][0])

    def _ranked(self) -> list[_Strong]:
        """The rules that have any strength, strongest first."""
        found = []
        for one in self._rules:
            strength = self._strength_in(one, one.known)
            hits = one.cover & self._hits
            least = self._support.minimum.tasks
            if strength > 0 and self._support.tasks(hits, most=least) == least:
                found.append((strength - self._price[len(one.conditions)], one))
        found.sort(key=lambda pair: (-pair[0], pair[1].simplicity))
        return found

    def _strength_in(self, one: Candidate, within: int) -> float:
        inside, known = one.cover & within, one.known & within
        return self._strength(
            Counts(
                (inside & self._hits).bit_count(),
                inside.bit_count(),
                (known & self._hits).bit_count(),
                known.bit_count(),
            )
        )

    def _shuffle(self, strongest: float) -> None:
        """Fill in the strongest rule of each shuffle; stop once nothing can pass.

        Stopping after a fixed number of shuffles that reach the recorded strength
        keeps p valid (Besag and Clifford 1991).
        """
        shuffles = Shuffles(self._units, self._plan.seed)
        groups = self._groups()
        reached, stop = 0, max(_FEWEST_REACHED, self._limits.allowed + 1)
        for _ in range(self._limits.shuffles):
            largest = self._strongest(shuffles.drawn(), groups)
            self._largest.append(largest)
            reached += largest >= strongest - _ROUNDING
            if reached == stop:
                self._has_stopped = True
                break
        self._largest.sort(reverse=True)

    def _groups(self) -> list[_Group]:
        """The covers of rules that are known in the same units, by their size."""
        found: dict[tuple[int, int], _Group] = {}
        for one in self._rules:
            size = len(one.conditions)
            key = (one.known, size)
            if key not in found:
                found[key] = _Group(one.known, self._price[size], {})
            found[key].covers.setdefault(one.cover.bit_count(), []).append(one.cover)
        return list(found.values())

    def _strongest(self, hits: int, groups: list[_Group]) -> float:
        strongest = -math.inf
        for group in groups:
            all_hits = (hits & group.known).bit_count()
            known = group.known.bit_count()
            for inside, covers in group.covers.items():
                most = max(map(int.bit_count, map(hits.__and__, covers)))
                strength = self._strength(Counts(most, inside, all_hits, known))
                strongest = max(strongest, strength - group.price)
        return strongest

    def _p(self, strength: float) -> float:
        reached = sum([one >= strength - _ROUNDING for one in self._largest])
        if self._has_stopped:
            return reached / len(self._largest)
        return (reached + 1) / (len(self._largest) + 1)

    def _is_beyond_chance(self, strength: float) -> bool:
        if self._has_stopped:
            return False
        return self._p(strength) <= self._plan.alpha + _ROUNDING

    def _heads(self, ranked: list[_Strong]) -> tuple[list[_Head], int]:
        """The rules to report with those near them, and how many say nothing more."""
        waiting: list[_Strong] = []
        for pair in ranked:
            if not self._is_beyond_chance(pair[0]):
                break
            waiting.append(pair)
        heads: list[_Head] = []
        explained, left = 0, (1 << len(self._units)) - 1
        while waiting and len(heads) < _MOST_FINDINGS:
            if not self._is_new(waiting[0][1], left):
                explained += 1
                waiting = waiting[1:]
                continue
            head = _simplest(waiting)
            near = [one for one in waiting if overlap(one[1], head[1]) >= _NEAR]
            waiting = [one for one in waiting if overlap(one[1], head[1]) < _NEAR]
            heads.append((head, [one for one in near if one[1] is not head[1]]))
            left &= ~head[1].cover
        return heads, explained + len(waiting)

    def _is_new(self, one: Candidate, left: int) -> bool:
        """Whether a rule beats chance among the units that are left, too."""
        strength = self._strength_in(one, left) - self._price[len(one.conditions)]
        hits = one.cover & left & self._hits
        least = self._support.minimum.tasks
        return (
            self._support.is_enough(one.cover & left)
            and self._support.tasks(hits, most=least) == least
            and self._is_beyond_chance(strength)
        )

    def _finding(self, head: _Strong, near: list[_Strong], wording: Wording) -> Finding:
        strength, rule = head
        inside = self._share(rule.cover)
        outside = self._share(rule.known & ~rule.cover)
        both = Share(inside.hits + outside.hits, inside.of + outside.of)
        finding = Finding(
            conditions=rule.conditions,
            words=rule.simplicity[-1],
            inside=inside,
            outside=outside,
            not_known=len(self._units) - both.of,
            lift=inside.share / both.share,
            fisher=fisher_exact(
                inside.hits,
                inside.of - inside.hits,
                outside.hits,
                outside.of - outside.hits,
            ),
            p=self._p(strength),
            smallest_p=1 / (len(self._largest) + 1),
            tasks=self._support.tasks(rule.cover),
            hit_tasks=self._support.tasks(rule.cover & self._hits),
            unit_ids=self._ids(rule.cover),
            hit_ids=self._ids(rule.cover & self._hits),
            near=tuple([self._near(one, rule) for _, one in near[:_MOST_NEAR]]),
            more_near=max(0, len(near) - _MOST_NEAR),
            sentence="",
        )
        sentence = finding_sentence(finding, wording, len(self._rules))
        return msgspec.structs.replace(finding, sentence=sentence)

    def _near(self, one: Candidate, head: Candidate) -> Near:
        return Near(
            conditions=one.conditions,
            words=one.simplicity[-1],
            inside=self._share(one.cover),
            overlap=overlap(one, head),
        )

    def _share(self, covered: int) -> Share:
        return Share((covered & self._hits).bit_count(), covered.bit_count())

    def _ids(self, covered: int) -> tuple[str, ...]:
        size = len(self._units)
        text = f"{covered:0{size}b}"
        found = [
            unit.id for unit, mark in zip(self._units, text, strict=True) if mark == "1"
        ]
        return tuple(sorted(found))


class _Group(msgspec.Struct, frozen=True):
    """Covers by how many units they hold, of rules with the same known units."""

    known: int
    price: float
    covers: dict[int, list[int]]


_Head: TypeAlias = tuple[_Strong, list[_Strong]]


def overlap(one: Candidate, other: Candidate) -> float:
    """The units that both cover over those that either does (Jaccard 1901)."""
    either = (one.cover | other.cover).bit_count()
    return (one.cover & other.cover).bit_count() / either if either else 0.0


def _simplest(waiting: list[_Strong]) -> _Strong:
    """The simplest of the rules that are much like the strongest and nearly as strong."""
    strength, strongest = waiting[0]
    alike = [
        pair
        for pair in waiting
        if pair[0] >= strength - _CLOSE and overlap(pair[1], strongest) >= _ALIKE
    ]
    return min(alike, key=lambda pair: pair[1].simplicity)
