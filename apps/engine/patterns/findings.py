"""What the search found, in numbers and sentences; nothing about causes.

That runs which meet a rule end badly more often says where to look. It does not say
that the features of the rule are why.
"""

from __future__ import annotations

import msgspec

from apps.engine.bodies.numerals import are
from apps.engine.check import percent
from apps.engine.nulls import Interval, wilson
from apps.engine.patterns.conditions import Condition


class Wording(msgspec.Struct, frozen=True):
    """How the target and the units are called: `unstable`, `run`."""

    target: str
    unit: str


class Share(msgspec.Struct, frozen=True):
    """`hits` of `of` units have the target."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        """The share, 0 of 0 being 0."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> Interval | None:
        """Wilson 95 %; too narrow where several units are of one task."""
        return wilson(self.hits, self.of)

    @property
    def words(self) -> str:
        """`14 of 16 (87.5 %, 64 to 97 %)`."""
        interval = self.interval
        if interval is None:
            return "0 of 0"
        low, high = interval.low * 100, interval.high * 100
        return f"{self.hits:,} of {self.of:,} ({percent(self.share)}, {low:.0f} to {high:.0f} %)"


class Near(msgspec.Struct, frozen=True):
    """Another rule over nearly the same units; `overlap` is shared over all of both."""

    conditions: tuple[Condition, ...]
    words: str
    inside: Share
    overlap: float


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One rule whose units have the target more often than chance accounts for.

    `outside` are the units that do not meet it though all its features are recorded;
    `not_known` are those where one is not, which are on neither side. `lift` is the
    share inside over that of both sides. `fisher` is the two-sided p of Fisher's exact
    test of this table alone, as if units were independent and nothing else had been
    tried. `p` is corrected for all rules tried and for what the units of a task share;
    it is never under `smallest_p`. `tasks` are the distinct tasks inside, `hit_tasks`
    those of them with the target. `near` are rules over nearly the same units and
    `more_near` how many of them are not listed. `unit_ids` are those inside, sorted.
    """

    conditions: tuple[Condition, ...]
    words: str
    inside: Share
    outside: Share
    not_known: int
    lift: float
    fisher: float
    p: float
    smallest_p: float
    tasks: int
    hit_tasks: int
    unit_ids: tuple[str, ...]
    hit_ids: tuple[str, ...]
    near: tuple[Near, ...]
    more_near: int
    sentence: str


class Patterns(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a search: what was looked at, and the rules that beat chance.

    `rules` were tried against `shuffles` deals of the targets. `smallest_p` is the
    smallest corrected p of any rule, `None` where nothing was tried. `explained` rules
    also beat chance, but not among the runs that the findings leave over. `alpha` is
    the corrected p up to which a rule is reported.
    """

    wording: Wording
    overall: Share
    tasks: int
    features: int
    rules: int
    shuffles: int
    smallest_p: float | None
    alpha: float
    findings: tuple[Finding, ...]
    explained: int
    sentence: str


def finding_sentence(one: Finding, wording: Wording, rules: int) -> str:
    """The sentence of a finding: both shares, lift, p, rules tried, tasks."""
    unit = wording.unit
    text = (
        f"{wording.target.capitalize()} in {_of(one.inside, unit)} where {one.words}, "
        f"against {one.outside.words} elsewhere; lift {one.lift:.2g}; "
        f"p {p_words(one.p, one.smallest_p)} after {counted_rules(rules)}; "
        f"{_counted(one.tasks, 'task')}."
    )
    if one.not_known:
        text += (
            f" {_counted(one.not_known, unit)} where this is not known "
            f"{are(one.not_known)} left out."
        )
    return text


def p_words(p: float, smallest: float) -> str:
    """`= 0.03`, or `≤ 0.005` where fewer shuffles than that cannot tell."""
    return f"{'≤' if p <= smallest else '='} {p:.2g}"


def counted_rules(rules: int) -> str:
    """`1 rule`, `3,120 rules`."""
    return _counted(rules, "rule")


def answer_sentence(answer: Patterns) -> str:
    """What the whole search says, where it found nothing too."""
    unit, overall = answer.wording.unit, answer.overall
    of = (
        f"{answer.wording.target} in {_of(overall, unit)} of "
        f"{_counted(answer.tasks, 'task')}"
    )
    if not answer.rules:
        return f"No rule could be tried: {of}, {_why_none(answer)}."
    if not answer.findings:
        p = 1.0 if answer.smallest_p is None else answer.smallest_p
        return (
            f"No rule beats chance: {of}, {counted_rules(answer.rules)} tried over "
            f"{_counted(answer.features, 'feature')}, smallest corrected p {p:.2g}."
        )
    number = len(answer.findings)
    beats = "1 rule beats" if number == 1 else f"{number} rules beat"
    return f"{beats} chance: {of}, {counted_rules(answer.rules)} tried."


def _why_none(answer: Patterns) -> str:
    if answer.overall.hits in {0, answer.overall.of}:
        return "so there is nothing to tell apart"
    return "and no feature splits them into two groups of enough runs and tasks"


def _of(share: Share, unit: str) -> str:
    """`14 of 16 runs (87.5 %, 64 to 97 %)`."""
    count, _, rest = share.words.partition(" (")
    name = unit if share.of == 1 else f"{unit}s"
    return f"{count} {name} ({rest}" if rest else f"{count} {name}"


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
