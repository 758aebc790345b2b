"""How often what is pointed at holds the agent or the step that people have labelled.

A pointer says of each trace which steps and which agents it points at. Beside its hits
stands what as many steps or agents, drawn at random from the same trace, would hit:
exactly, not by simulation. A trace at which nothing points is a miss, never left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from apps.engine.check import Answer, Check, Level
from apps.engine.nulls.counts import count_null
from apps.engine.nulls.intervals import wilson
from apps.engine.trace import Trace

WITHIN = (0, 1, 3, 5)


@dataclass(frozen=True)
class Case:
    """A labelled trace: the steps of agents, whose they are, and which are labelled.

    `lengths` are the characters that each step says. `trace` is `None` where only the
    labels are at hand.
    """

    steps: tuple[int, ...]
    wrong: frozenset[int]
    owners: dict[int, str] = field(default_factory=dict)
    agent: str | None = None
    lengths: dict[int, int] = field(default_factory=dict)
    trace: Trace | None = None

    @property
    def agents(self) -> frozenset[str]:
        """The names of all agents that did something."""
        return frozenset(self.owners.values())


@dataclass(frozen=True)
class Pointed:
    """What one pointer points at in one trace; `None` where it says nothing of such."""

    steps: frozenset[int] | None = None
    agents: frozenset[str] | None = None


Pointer = Callable[[Case], Pointed]


@dataclass(frozen=True)
class Row:
    """One pointer and one target over all traces.

    `by_chance` is the expected number of hits of as many picks at random, `low` and
    `high` its 95 % range, `p` how often they hit as much or more.
    """

    pointer: str
    target: str
    traces: int
    pointing: int
    hits: int
    by_chance: float
    low: int
    high: int
    p: float

    def in_words(self) -> str:
        """The row as a line of text."""
        interval = wilson(self.hits, self.traces)
        assert interval is not None
        return (
            f"  {self.pointer:<28} {self.pointing:>3} of {self.traces:<3} "
            f"{self.target:<13} {self.hits:>3}  {self.hits / self.traces:>5.0%} "
            f"({interval.low:.0%} to {interval.high:.0%})".ljust(76)
            + f" random {self.by_chance:5.1f} ({self.low} to {self.high}), p {self.p:.2g}"
        )


def near(case: Case, k: int) -> frozenset[int]:
    """The steps at most `k` places from a labelled one."""
    return frozenset(
        step for step in case.steps if any(abs(step - one) <= k for one in case.wrong)
    )


def chance_of_hit(total: int, wanted: int, picks: int) -> float:
    """How often `picks` of `total`, drawn without putting back, hold one of `wanted`."""
    picks = min(picks, total)
    if not total:
        return 0.0
    return 1 - math.comb(total - wanted, picks) / math.comb(total, picks)


def rows(cases: Sequence[Case], name: str, pointer: Pointer) -> Iterator[Row]:
    """Yield the rows of one pointer: the agent, then the step within each distance."""
    pointed = [pointer(case) for case in cases]
    if all(one.agents is not None for one in pointed):
        hits = [
            case.agent in (one.agents or ())
            for case, one in zip(cases, pointed, strict=True)
        ]
        chances = [
            chance_of_hit(len(case.agents), case.agent in case.agents, len(one.agents or ()))
            for case, one in zip(cases, pointed, strict=True)
        ]  # fmt: skip
        sizes = [len(one.agents or ()) for one in pointed]
        yield _row(name, "agent", sizes, hits, chances)
    if all(one.steps is not None for one in pointed):
        sizes = [len(one.steps or ()) for one in pointed]
        for k in WITHIN:
            around = [near(case, k) for case in cases]
            hits = [
                bool(close & (one.steps or frozenset()))
                for close, one in zip(around, pointed, strict=True)
            ]
            chances = [
                chance_of_hit(len(case.steps), len(close), size)
                for case, close, size in zip(cases, around, sizes, strict=True)
            ]
            yield _row(name, "exact step" if k == 0 else f"step within {k}", sizes, hits, chances)  # fmt: skip


def _row(
    name: str, target: str, sizes: list[int], hits: list[bool], chances: list[float]
) -> Row:
    null = count_null((chance, 1) for chance in chances)
    return Row(
        pointer=name,
        target=target,
        traces=len(hits),
        pointing=sum(size > 0 for size in sizes),
        hits=sum(hits),
        by_chance=null.expected,
        low=null.low,
        high=null.high,
        p=null.at_least(sum(hits)),
    )


def by_signals(checks: Sequence[Check], *, levels: frozenset[Level]) -> Pointer:
    """Point at the steps that signals of these levels rest on, and at their agents."""

    def pointer(case: Case) -> Pointed:
        assert case.trace is not None
        steps: set[int] = set()
        agents: set[str] = set()
        for check in checks:
            for one in check.run(case.trace):
                if one.answer is Answer.SIGNAL and one.level in levels:
                    steps.update(one.evidence.steps)
                    agents.update([one.evidence.agent] if one.evidence.agent else [])
        own = steps & set(case.steps)
        agents |= {case.owners[step] for step in own if step in case.owners}
        return Pointed(frozenset(own), frozenset(agents) & case.agents)

    return pointer


def first_step(case: Case) -> Pointed:
    """Always the first step of an agent."""
    return _at(case, case.steps[0])


def last_step(case: Case) -> Pointed:
    """Always the last step."""
    return _at(case, case.steps[-1])


def longest_output(case: Case) -> Pointed:
    """Always the step that says most."""
    return _at(case, max(case.steps, key=lambda step: case.lengths.get(step, 0)))


def most_active_agent(case: Case) -> Pointed:
    """Always the agent with most steps."""
    [(name, _)] = Counter(case.owners.values()).most_common(1)
    return Pointed(agents=frozenset({name}))


def _at(case: Case, step: int) -> Pointed:
    agents = frozenset({case.owners[step]}) if step in case.owners else None
    return Pointed(frozenset({step}), agents)
