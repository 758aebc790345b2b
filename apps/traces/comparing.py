"""Two sides compared: figures from the tables, tests from the engine, kept by content.

The permutation tests are the dear part, so what they gave is kept for an hour under a
hash of everything that they read: whatever changes in a trace gives another hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from django.core.cache import cache

from apps.accounts.models import Project
from apps.engine.calibration import Rate, rate
from apps.engine.comparison import Comparison, compare
from apps.traces.figures_of_traces import (
    MOST_SAMPLED,
    FiguresOfTraces,
    figures_of_traces,
)
from apps.traces.sides import Side, shared_traces, side_of

# Raise it when the same figures would be compared in another way.
COMPARING: Final = 2
_KEPT_SECONDS: Final = 3600

Q_MEANS: Final = (
    "q is the permutation p after Benjamini and Hochberg over all figures here: among "
    "so many some stand out by chance."
)


class SideFigures(msgspec.Struct, frozen=True):
    """One side with its figures, and how its traces ended."""

    side: Side
    found: FiguresOfTraces

    @property
    def passed(self) -> int:
        """Traces that passed."""
        return self.found.count(passed=True)

    @property
    def failed(self) -> int:
        """Traces that failed."""
        return self.found.count(passed=False)

    @property
    def others(self) -> int:
        """Traces with a score or without an outcome."""
        return len(self.found.figures) - self.passed - self.failed

    @property
    def pass_rate(self) -> Rate:
        """How many passed of those that passed or failed, with Wilson's interval."""
        told = self.passed + self.failed
        return rate(self.passed, told, nothing="no pass or fail is recorded")


class Compared(msgspec.Struct, frozen=True):
    """Two sides beside each other; `shared` traces stand on both."""

    first: SideFigures
    second: SideFigures
    shared: int
    result: Comparison
    notes: tuple[str, ...]


def compare_sides(project: Project, *, first: str, second: str) -> Compared:
    """The comparison of two sides given by their keys; raises `UnknownSide`."""
    return compared(side_of(project, first), side_of(project, second))


def compared(first: Side, second: Side) -> Compared:
    """The comparison of two sides; the same traces, the same answer."""
    one, other = (
        SideFigures(side, figures_of_traces(side.traces)) for side in (first, second)
    )
    shared = shared_traces(first, second)
    result = _result(one.found, other.found)
    return Compared(one, other, shared, result, tuple(_notes(one, other, shared)))


def _result(first: FiguresOfTraces, second: FiguresOfTraces) -> Comparison:
    read = msgspec.json.encode((COMPARING, first.figures, second.figures))
    digest = hashlib.sha256(read).hexdigest()
    key = f"comparison-{digest}"
    kept = cache.get(key)
    if isinstance(kept, Comparison):
        return kept
    result = compare(first.figures, second.figures, seed=int(digest[:12], 16))
    cache.set(key, result, _KEPT_SECONDS)
    return result


def _notes(first: SideFigures, second: SideFigures, shared: int) -> Iterator[str]:
    if shared:
        which = (
            "1 trace is in both sets and counts"
            if shared == 1
            else f"{shared:,} traces are in both sets and count"
        )
        yield (
            f"{which} on both sides: the sets are not independent, and differences "
            "come out smaller than between the rest."
        )
    for place, one in (("first", first), ("second", second)):
        if one.found.is_sampled:
            yield (
                f"The {place} set has {one.found.traces:,} traces. {MOST_SAMPLED:,} of "
                "them are compared, chosen by the hash of their content: always the "
                "same ones."
            )
        if one.found.calls and not one.found.told:
            yield (
                f"No call of the {place} set records how it ended, so nothing is known "
                "of failed calls there."
            )
        elif untold := sum(1 for t in one.found.figures if t.calls and not t.told):
            traces = "1 trace" if untold == 1 else f"{untold:,} traces"
            yield (
                f"In {traces} of the {place} set no call records how it ended; they "
                "count as without a failed call."
            )
    yield (
        "Intervals of rates and medians take traces for independent of each other. "
        "Trials of one task are not, so true intervals are wider where tasks repeat."
    )


def comparison_document(found: Compared) -> dict[str, Any]:
    """Everything of a comparison as plain values, for JSON."""
    result = msgspec.to_builtins(found.result)
    return {
        "first": _side_document(found.first),
        "second": _side_document(found.second),
        "shared_traces": found.shared,
        "shared_tasks": found.result.shared_tasks,
        "within_tasks": found.result.within_tasks,
        "metrics": result["metrics"],
        "tools": result["tools"],
        "notes": [*found.result.notes, *found.notes, Q_MEANS],
    }


def _side_document(one: SideFigures) -> dict[str, Any]:
    return {
        "key": one.side.key,
        "label": one.side.label,
        "traces": one.found.traces,
        "compared": len(one.found.figures),
        "passed": one.passed,
        "failed": one.failed,
        "no_pass_or_fail": one.others,
        "pass_share": one.pass_rate.value,
        "pass_interval": msgspec.to_builtins(one.pass_rate.interval),
    }
