"""How far scoring is: pages say so while traces wait, and never call old numbers final."""

from __future__ import annotations

import msgspec

from apps.traces.models import Trace
from apps.verdicts.progress import Progress


class ScoringState(msgspec.Struct, frozen=True):
    """`left` traces wait to be scored; `is_behind` also while tasks or verdicts wait.

    `was_behind` is for the page that asked while something waited, and now nothing does.
    """

    left: int
    is_behind: bool
    was_behind: bool = False

    @property
    def sentence(self) -> str:
        """What waits, for people."""
        if not self.left:
            return "Tasks and verdicts are being brought up to date."
        traces = "1 trace is" if self.left == 1 else f"{self.left:,} traces are"
        return f"{traces} not scored yet, so what stands here is not final."


def scoring_state(project_id: int, *, was_behind: bool = False) -> ScoringState:
    """How far the scoring of a project is: a fixed number of queries."""
    found = Progress(project_id)
    return ScoringState(
        left=found.left, is_behind=found.is_behind, was_behind=was_behind
    )


def trace_scoring(trace: Trace, *, is_noted: bool) -> ScoringState:
    """Whether what is said of one trace is final; no query for a trace with its project.

    It is while verdicts are settled by the very definitions that the trace was scored by,
    and nothing `is_noted` that has changed since.
    """
    settled = getattr(trace.project, "projectverdict", None)
    is_last = settled is not None and settled.settled_as == trace.scored_as != ""
    return ScoringState(
        left=int(not trace.scored_as), is_behind=is_noted or not is_last
    )
