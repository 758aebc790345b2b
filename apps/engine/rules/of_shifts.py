"""Rules that compare a trace with the traces of a project's baseline set.

A chance is a rank: a trace that is one more of n in the baseline falls on each of
n + 1 places equally often, so no chance is below 1 / (n + 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from apps.engine.check import Answer, Chance, Judgement, percent
from apps.engine.rules.rule import Rule

_MODEL: Final = "this trace is exchangeable with the traces of the baseline"
OF_ITSELF: Final = (
    "A trace of the baseline itself is compared with a set that holds it too."
)
"""What no such rule models."""


class BaselineOfTraces(Protocol):
    """The figures of a baseline set: one score for each of its traces, and more."""

    @property
    def scores(self) -> Sized: ...


Figures = TypeVar("Figures", bound=BaselineOfTraces)


@dataclass(frozen=True)
class ShiftRule(Rule, Generic[Figures]):
    """Compares a trace with a baseline, which is `None` until a project names one.

    `baseline_key` changes whenever the figures do. `directions` is 2 where a trace may
    lie out on either side. `compared` says what is compared, `scored` what a trace of
    the baseline needs for a score, `alike` what it may have in common with this one.
    """

    max_chance: float = 0.05
    baseline: Figures | None = None
    baseline_name: str = ""
    baseline_key: str = ""

    directions: ClassVar[int]
    compared: ClassVar[str]
    scored: ClassVar[str]
    alike: ClassVar[str]

    @property
    def parameters(self) -> dict[str, Any]:
        """What may be set by hand, and which baseline (its key, or nothing)."""
        return super().parameters | {"baseline": self.baseline_key}

    def no_baseline(self) -> Judgement:
        """The answer where the project names no baseline."""
        return Judgement(
            Answer.NOT_APPLICABLE,
            "no_baseline",
            "No baseline set is named",
            "The project names no trace set as its baseline, so there is nothing to "
            f"compare the {self.compared} with.",
        )

    def too_small(self, baseline: Figures) -> Judgement | None:
        """The answer where no rank among so few traces could be rare enough."""
        traces = len(baseline.scores)
        least = self._floor(traces)
        if traces and least <= self.max_chance:
            return None
        words = f"{traces} {'trace' if traces == 1 else 'traces'}"
        return Judgement(
            Answer.NOT_APPLICABLE,
            "baseline_too_small",
            f"The baseline has {words} with {self.scored}: too few",
            f"With {words} no chance can be below {percent(least)}, and a signal asks "
            f"for at most {percent(self.max_chance)}.",
        )

    def nothing_alike(self, names: Iterable[str], what: str) -> Judgement:
        """The answer where the baseline shares none of the `names` of the trace."""
        return Judgement(
            Answer.NOT_APPLICABLE,
            "nothing_alike",
            f"The baseline has no {self.alike} like these",
            f"None of {what} called here ({', '.join(islice(names, 3))}) was called "
            "often enough in the baseline.",
        )

    def chance(
        self, value: float, traces: int, *, assumptions: str, method: str
    ) -> Chance:
        """A rank among `traces` scores; `method` ends the words on how it was found."""
        return Chance(
            value=value,
            model=_MODEL,
            assumptions=assumptions,
            method=f"rank among {traces:,} traces of the baseline{method}",
            floor=self._floor(traces),
        )

    def most_often(self, traces: int) -> float:
        """How often chance ranks a trace far enough out on the one side, at most."""
        ranks = Fraction(str(self.max_chance)) * (traces + 1) / self.directions
        return int(ranks) / (traces + 1)

    def _floor(self, traces: int) -> float:
        return self.directions / (traces + 1)
