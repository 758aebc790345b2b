"""How far scoring is: pages say so while traces wait, and never call old numbers final."""

from __future__ import annotations

import msgspec

from apps.pipeline.scoring import asked_at_present
from apps.scoring.operations import has_stale
from apps.traces.behind import behind_count
from apps.traces.models import Trace
from apps.verdicts.operations import is_settled


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
    name = asked_at_present(project_id).name
    left = behind_count(project_id, name, work="scored_as")
    waits = left > 0 or has_stale(project_id) or not is_settled(project_id, name)
    return ScoringState(left=left, is_behind=waits, was_behind=was_behind)


def trace_scoring(trace: Trace) -> ScoringState:
    """Whether what is said of one trace is final; no query for a trace with its project.

    It is while verdicts are settled by the very definitions that the trace was scored by.
    """
    settled = getattr(trace.project, "projectverdict", None)
    waits = settled is None or settled.settled_as != (trace.scored_as or None)
    return ScoringState(left=int(waits and not trace.scored_as), is_behind=waits)
