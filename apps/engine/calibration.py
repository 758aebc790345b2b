"""What a check is worth so far: rates with their intervals, beside rules that know nothing.

Every figure here is counted, none is claimed: a rate of nothing is "no decisions
yet", and a check stands beside constant rules that anybody could follow without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from math import sqrt
from statistics import NormalDist
from typing import Final

import msgspec

from apps.engine.check import percent
from apps.engine.nulls import (
    Interval,
    benjamini_hochberg,
    fisher_exact,
    newcombe,
    wilson,
)

FEWEST_DOUBLES: Final = 20
"""With fewer cases that two people judged there is no kappa."""

NO_DECISIONS: Final = "no decisions yet"
NO_TRACES: Final = "no traces yet"

_NO_ERROR: Final = 1e-6
_OF_CHOICES: Final = "95 % of random choices, normal approximation with continuity"
_Z: Final = NormalDist().inv_cdf(0.975)


class Rate(msgspec.Struct, frozen=True):
    """`k` of `n` with its 95 % Wilson interval; `None` and words for 0 of 0."""

    k: int
    n: int
    interval: Interval | None
    nothing: str = NO_DECISIONS

    @property
    def value(self) -> float | None:
        """The share, `None` for 0 of 0."""
        return self.k / self.n if self.n else None

    @property
    def words(self) -> str:
        """The rate for a sentence: `22 of 61 (36.1 %; 95 % interval 25.2 % to 48.6 %)`."""
        if self.interval is None:
            return self.nothing
        low, high = percent(self.interval.low), percent(self.interval.high)
        share = percent(self.k / self.n)
        return f"{self.k:,} of {self.n:,} ({share}; 95 % interval {low} to {high})"


def rate(k: int, n: int, *, nothing: str = NO_DECISIONS) -> Rate:
    """`k` of `n`; raises `ValueError` unless 0 <= k <= n."""
    return Rate(k=k, n=n, interval=wilson(k, n), nothing=nothing)


class RateComparison(msgspec.Struct, frozen=True):
    """Two rates: the first minus the second with its 95 % Newcombe interval.

    `p` is Fisher's two-sided; all three are `None` where a rate is of nothing. Assumes
    independent traces.
    """

    first: Rate
    second: Rate
    difference: float | None
    interval: Interval | None
    p: float | None


def compare_rates(first: Rate, second: Rate) -> RateComparison:
    """How far apart two rates of different traces are."""
    if first.value is None or second.value is None:
        return RateComparison(first, second, None, None, None)
    return RateComparison(
        first=first,
        second=second,
        difference=first.value - second.value,
        interval=newcombe((first.k, first.n), (second.k, second.n)),
        p=fisher_exact(first.k, first.n - first.k, second.k, second.n - second.k),
    )


class GroupRate(msgspec.Struct, frozen=True):
    """The rate of one group, and how it compares with all traces outside of it.

    `q` is the p of that comparison after Benjamini and Hochberg over all groups,
    `None` where there is nothing to compare. Groups may overlap.
    """

    group: str
    inside: Rate
    against_rest: RateComparison
    q: float | None


def group_rates(
    groups: Mapping[str, tuple[int, int]], *, whole: tuple[int, int]
) -> tuple[GroupRate, ...]:
    """The rate of each group, given as (fired, traces); `whole` is that of all traces.

    In the order given. Raises `ValueError` for a group larger than the whole.
    """
    compared = {
        name: compare_rates(
            rate(k, n, nothing=NO_TRACES),
            rate(whole[0] - k, whole[1] - n, nothing=NO_TRACES),
        )
        for name, (k, n) in groups.items()
    }
    tested = {name: c.p for name, c in compared.items() if c.p is not None}
    q_of = dict(zip(tested, benjamini_hochberg(tuple(tested.values())), strict=True))
    return tuple(
        GroupRate(name, c.first, c, q_of.get(name)) for name, c in compared.items()
    )


class Precision(msgspec.Struct, frozen=True):
    """How many of the decided signals were confirmed; those nobody could tell apart."""

    confirmed: Rate
    cannot_tell: int

    @property
    def words(self) -> str:
        """The precision for a sentence."""
        apart = f"; cannot tell: {self.cannot_tell:,}" if self.cannot_tell else ""
        return f"{self.confirmed.words}{apart}"


def precision(*, confirmed: int, dismissed: int, cannot_tell: int) -> Precision:
    """Confirmed of those that were confirmed or dismissed."""
    return Precision(rate(confirmed, confirmed + dismissed), cannot_tell)


class Period(msgspec.Struct, frozen=True):
    """The rate of one stretch of time, named by `label`."""

    label: str
    rate: Rate


class Drift(msgspec.Struct, frozen=True):
    """A rate over time, and the latest period against all earlier ones together.

    `latest` is `None` with fewer than two periods that have traces. It compares once;
    who looks every week will see a small p by chance some week.
    """

    periods: tuple[Period, ...]
    latest: RateComparison | None


def drift_over(
    periods: Iterable[tuple[str, int, int]], *, nothing: str = NO_TRACES
) -> Drift:
    """The drift of a rate given as (label, k, n) in order of time."""
    listed = tuple(
        Period(label, rate(k, n, nothing=nothing)) for label, k, n in periods
    )
    filled = [period.rate for period in listed if period.rate.n]
    if len(filled) < 2:
        return Drift(listed, None)
    *before, last = filled
    earlier = rate(sum(one.k for one in before), sum(one.n for one in before))
    return Drift(listed, compare_rates(last, earlier))


class Kappa(msgspec.Struct, frozen=True):
    """Agreement of two people beyond chance over `doubles` cases that both judged.

    `value` and the 95 % interval are `None` below 20 doubles and where both gave one
    verdict throughout, which leaves no agreement that chance would not give. There is
    no interval either where the large-sample error is 0, as with perfect agreement.
    """

    doubles: int
    agreed: Rate
    value: float | None
    interval: Interval | None
    words: str


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> Kappa:
    """Cohen's kappa of pairs of verdicts (Cohen 1960).

    The interval uses the large-sample standard error of Fleiss, Cohen and Everitt
    (1969). Assumes independent cases and the same two people, or two that may be
    exchanged, throughout. Checked against statsmodels.
    """
    n = len(pairs)
    agreed = rate(sum(a == b for a, b in pairs), n, nothing="no doubles yet")
    if n < FEWEST_DOUBLES:
        doubles = "double" if n == 1 else "doubles"
        words = f"{n:,} {doubles}; kappa is given from {FEWEST_DOUBLES} on"
        return Kappa(n, agreed, None, None, words)
    rows, columns = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    by_chance = sum(rows[v] * columns[v] for v in rows) / n**2
    if by_chance == 1:
        return Kappa(n, agreed, None, None, "one verdict throughout: no kappa")
    value = (agreed.k / n - by_chance) / (1 - by_chance)
    half = _Z * _kappa_error(pairs, rows, columns, by_chance)
    if half < _NO_ERROR:
        words = f"kappa {value:.2f} (no interval: these verdicts leave no error to see)"
        return Kappa(n, agreed, value, None, words)
    low, high = max(-1.0, value - half), min(1.0, value + half)
    words = f"kappa {value:.2f} (95 % interval {low:.2f} to {high:.2f})"
    interval = Interval(low, high, "large-sample standard error")
    return Kappa(n, agreed, value, interval, words)


def _kappa_error(
    pairs: Sequence[tuple[str, str]],
    rows: Counter[str],
    columns: Counter[str],
    by_chance: float,
) -> float:
    n = len(pairs)
    observed = sum(a == b for a, b in pairs) / n
    rest = 1 - by_chance
    total = 0.0
    for (a, b), count in Counter(pairs).items():
        if a == b:
            margins = (rows[a] + columns[a]) / n
            total += count / n * (rest - margins * (1 - observed)) ** 2
        else:
            margins = (columns[a] + rows[b]) / n
            total += count / n * (1 - observed) ** 2 * margins**2
    total -= (observed * by_chance - 2 * by_chance + observed) ** 2
    return sqrt(max(0.0, total) / n) / rest**2


class Rule(StrEnum):
    """The check, and the constant rules beside it, in words for a person."""

    CHECK = "this check"
    ALWAYS = "always fire"
    LONGEST = "fire on the longest traces, as many as the check"
    RANDOM = "fire at random, as often as the check (expected)"
    LAST_STEP = "point at the last step"
    FIRST_STEP = "point at the first step"
    EVERY_STEP = "point at every step"
    RANDOM_STEP = "point at as many random steps (expected)"


class Labelled(msgspec.Struct, frozen=True):
    """A trace with a known outcome: whether the check `fired`, whether it was `bad`.

    Bad is failed or confirmed, as the caller says. `length` counts its steps.
    """

    trace: int
    fired: bool
    bad: bool
    length: int


class RuleScore(msgspec.Struct, frozen=True):
    """How well a rule finds what is bad: `hits` of `pointed`, and of `bad` in all.

    The 95 % intervals are Wilson's, that of F1 of hits / (pointed + bad - hits), of
    which F1 is an increasing function. For an expected rule `hits` is the mean over
    all random choices and the intervals hold 95 % of these. Steps of one trace are
    not independent, so over steps all of them are too narrow.
    """

    rule: Rule
    hits: float
    pointed: int
    bad: int
    precision_interval: Interval | None
    recall_interval: Interval | None
    f1_interval: Interval | None

    @property
    def precision(self) -> float | None:
        """Bad of those pointed at, `None` where the rule points at nothing."""
        return self.hits / self.pointed if self.pointed else None

    @property
    def recall(self) -> float | None:
        """Pointed at of the bad, `None` where nothing is bad."""
        return self.hits / self.bad if self.bad else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of both, 0 without a hit, `None` where nothing is bad."""
        return 2 * self.hits / (self.pointed + self.bad) if self.bad else None


def rules_beside(rows: Sequence[Labelled]) -> tuple[RuleScore, ...]:
    """The check and the constant rules over whole traces; the same rows, the same answer.

    Of equally long traces those with the smaller number are taken first.
    """
    bad = {row.trace for row in rows if row.bad}
    fired = {row.trace for row in rows if row.fired}
    longest = sorted(rows, key=lambda row: (-row.length, row.trace))[: len(fired)]
    every = {row.trace for row in rows}
    return (
        _score(Rule.CHECK, len(fired & bad), len(fired), len(bad)),
        _score(Rule.ALWAYS, len(bad), len(every), len(bad)),
        _score(Rule.LONGEST, sum(row.bad for row in longest), len(longest), len(bad)),
        _expected(Rule.RANDOM, [(len(fired), len(bad), len(rows))]),
    )


class LabelledSteps(msgspec.Struct, frozen=True):
    """A trace with labelled steps: their places, those pointed at, and how many it has."""

    steps: int
    labelled: tuple[int, ...]
    pointed: tuple[int, ...]


def step_rules_beside(rows: Sequence[LabelledSteps]) -> tuple[RuleScore, ...]:
    """The check and the constant rules over the steps of all labelled traces together.

    Micro-averaged: each labelled step counts once. The random rule points at as many
    steps of each trace as the check.
    """
    steps = sum(row.steps for row in rows)
    labelled = sum(len(set(row.labelled)) for row in rows)
    pointed = sum(len(set(row.pointed)) for row in rows)
    filled = [row for row in rows if row.steps]
    hits = sum(len(set(row.labelled) & set(row.pointed)) for row in rows)
    last = sum(row.steps - 1 in row.labelled for row in filled)
    first = sum(0 in row.labelled for row in filled)
    return (
        _score(Rule.CHECK, hits, pointed, labelled),
        _score(Rule.LAST_STEP, last, len(filled), labelled),
        _score(Rule.FIRST_STEP, first, len(filled), labelled),
        _score(Rule.EVERY_STEP, labelled, steps, labelled),
        _expected(
            Rule.RANDOM_STEP,
            [(len(set(r.pointed)), len(set(r.labelled)), r.steps) for r in rows],
        ),
    )


def _score(rule: Rule, hits: int, pointed: int, bad: int) -> RuleScore:
    jaccard = wilson(hits, pointed + bad - hits) if bad else None
    return RuleScore(
        rule=rule,
        hits=hits,
        pointed=pointed,
        bad=bad,
        precision_interval=wilson(hits, pointed),
        recall_interval=wilson(hits, bad),
        f1_interval=jaccard
        and Interval(
            2 * jaccard.low / (1 + jaccard.low),
            2 * jaccard.high / (1 + jaccard.high),
            "Wilson score of the Jaccard index",
        ),
    )


def _expected(rule: Rule, urns: Sequence[tuple[int, int, int]]) -> RuleScore:
    """Pointing at random at k of n things of which b are bad, given as (k, b, n).

    The mean and variance of the hypergeometric counts, added up over the urns.
    """
    pointed, bad = sum(k for k, _, _ in urns), sum(b for _, b, _ in urns)
    hits = sum(k * b / n for k, b, n in urns if n)
    variance = sum(
        k * b / n * (n - b) / n * (n - k) / (n - 1) for k, b, n in urns if n > 1
    )
    low = max(0.0, hits - _Z * sqrt(variance) - 0.5)
    high = min(float(pointed), float(bad), hits + _Z * sqrt(variance) + 0.5)

    def among(whole: float) -> Interval | None:
        if not whole:
            return None
        return Interval(low / whole, high / whole, _OF_CHOICES)

    return RuleScore(
        rule=rule,
        hits=hits,
        pointed=pointed,
        bad=bad,
        precision_interval=among(pointed),
        recall_interval=among(bad),
        f1_interval=among((pointed + bad) / 2) if bad else None,
    )
