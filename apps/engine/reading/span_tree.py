"""The tree of one trace's spans: parents made sound, calls told from wrappers, owners.

Spans may come in any order, twice, without their parents or in circles; the tree is
the same for every order. A model call is a leaf: a span of a model with another one
below it is a wrapper. All passes are linear (sorting aside).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from apps.engine.reading.genai import kind_of
from apps.engine.reading.spans import Span
from apps.engine.reading.text_limits import Remarks
from apps.engine.trace import StepKind

_LATEST: Final = 2**63
_ORPHANS: Final = (
    "Spans whose parent is not in the file, put directly under the root: {n}."
)
_CIRCLES: Final = "Circles of parents that were cut: {n}."
_WRAPPERS: Final = (
    "Model spans that only wrap other model spans, not counted as calls: {n}."
)


class SpanTree:
    """Spans of one trace in order, with parents, kinds and depths by position.

    `spans` is ordered by start, depth, end and id; every other list is by the same
    positions. `missing_parent` keeps the id of a parent that is not in the file: such
    a span stands under the trace's only root if that is an agent which ran when the
    span began, else under nothing.
    """

    def __init__(self, spans: list[Span], remarks: Remarks) -> None:
        by_id = {span.span_id: span for span in spans}
        parents = {span.span_id: span.parent_id for span in spans}
        orphaned = {
            one: parent for one, parent in parents.items()
            if parent is not None and parent not in by_id
        }  # fmt: skip
        home = _sole_agent(spans)
        for one in orphaned:
            parents[one] = (
                home.span_id if home and _began_in(by_id[one], home) else None
            )
        _cut_circles(parents, by_id, remarks)
        depths = _depths(parents)
        if orphaned:
            remarks.add(_ORPHANS, len(orphaned))
        self.has_all_starts = all(span.start_ns is not None for span in spans)
        self.spans = self._ordered(spans, depths)
        position = {span.span_id: at for at, span in enumerate(self.spans)}
        self.missing_parent = [orphaned.get(span.span_id) for span in self.spans]
        self.parents: list[int | None] = []
        self.children: list[list[int]] = [[] for _ in self.spans]
        for at, span in enumerate(self.spans):
            above = parents[span.span_id]
            parent = None if above is None else position[above]
            self.parents.append(parent)
            if parent is not None:
                self.children[parent].append(at)
        self.top_down = sorted(
            range(len(self.spans)), key=lambda at: depths[self.spans[at].span_id]
        )
        self.kinds = [kind_of(span) for span in self.spans]
        self._find_wrappers(remarks)

    def _ordered(self, spans: list[Span], depths: dict[str, int]) -> list[Span]:
        if not self.has_all_starts:
            return spans
        return sorted(
            spans,
            key=lambda span: (
                span.start_ns,
                depths[span.span_id],
                _LATEST if span.end_ns is None else span.end_ns,
                span.span_id,
            ),
        )

    def _find_wrappers(self, remarks: Remarks) -> None:
        holds_call = [False] * len(self.spans)
        for at in reversed(self.top_down):
            if self.kinds[at] is StepKind.MODEL_CALL and holds_call[at]:
                self.kinds[at] = StepKind.OTHER
                remarks.add(_WRAPPERS)
            parent = self.parents[at]
            if parent is not None and (
                holds_call[at] or self.kinds[at] is StepKind.MODEL_CALL
            ):
                holds_call[parent] = True

    def roots(self) -> list[int]:
        """Return the positions of the spans without a parent, in order."""
        return [at for at, parent in enumerate(self.parents) if parent is None]

    def main_root(self) -> int:
        """Return the first root that has no parent by its own account, else the first."""
        roots = self.roots()
        return next((at for at in roots if self.missing_parent[at] is None), roots[0])

    def step_like_agents(self) -> set[int]:
        """Return the agent spans that are steps of their parent, not agents.

        They hold at most one call each and stand beside others of the same name under
        the same parent, two of which at least hold a call: nodes of a graph that are
        visited again and again.
        """
        calls = self._calls_below()
        groups: dict[tuple[int, str], list[int]] = defaultdict(list)
        for at, parent in enumerate(self.parents):
            if parent is not None and self.kinds[at] is StepKind.AGENT:
                groups[parent, self.spans[at].name].append(at)
        found: set[int] = set()
        for group in groups.values():
            held = [calls[at] for at in group]
            if max(held) <= 1 and sum(held) >= 2:
                found.update(group)
        return found

    def _calls_below(self) -> list[int]:
        """Return how many calls stand at or below each span."""
        calls = [int(kind is StepKind.MODEL_CALL) for kind in self.kinds]
        for at in reversed(self.top_down):
            parent = self.parents[at]
            if parent is not None:
                calls[parent] += calls[at]
        return calls


def _sole_agent(spans: list[Span]) -> Span | None:
    """Return the one span without a parent by its own account, if it is an agent."""
    roots = [span for span in spans if span.parent_id is None]
    if len(roots) != 1 or kind_of(roots[0]) is not StepKind.AGENT:
        return None
    return roots[0]


def _began_in(span: Span, holder: Span) -> bool:
    """Whether `span` began while `holder` ran; false where that is not recorded."""
    if span.start_ns is None or holder.start_ns is None:
        return False
    end = _LATEST if holder.end_ns is None else holder.end_ns
    return holder.start_ns <= span.start_ns <= end


def _cut_circles(
    parents: dict[str, str | None], by_id: dict[str, Span], remarks: Remarks
) -> None:
    """Cut each circle at its earliest span, whatever the order of the file."""
    done: set[str] = set()
    for start in parents:
        path: list[str] = []
        on_path: set[str] = set()
        at: str | None = start
        while at is not None and at not in done and at not in on_path:
            path.append(at)
            on_path.add(at)
            at = parents[at]
        if at is not None and at in on_path:
            circle = path[path.index(at) :]
            cut = min(circle, key=lambda one: (by_id[one].start_ns or 0, one))
            parents[cut] = None
            remarks.add(_CIRCLES)
        done.update(path)


def _depths(parents: dict[str, str | None]) -> dict[str, int]:
    depths: dict[str, int] = {}
    for start in parents:
        path: list[str] = []
        at: str | None = start
        while at is not None and at not in depths:
            path.append(at)
            at = parents[at]
        depth = -1 if at is None else depths[at]
        for one in reversed(path):
            depth += 1
            depths[one] = depth
    return depths
