"""Which agent invocation owns each span of a tree.

The owner is the nearest agent span above that is not a mere step of its parent; where
no agent span exists, the agent that the span names itself. What is owned by nobody
belongs to invocation 0, the root.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import msgspec

from apps.engine.reading.genai import agent_span_name, handoff_target, named_agent
from apps.engine.reading.span_tree import SpanTree
from apps.engine.reading.text_limits import NAME, Remarks, clip
from apps.engine.trace import AgentInvocation, StepKind, StepStatus, Via

_CLIMBED = (
    "Agent spans read as steps of the agent above them, because each holds at most one "
    "call and the same name stands beside it: {n}."
)

# What LangGraph calls a graph that was compiled without a name.
_UNNAMED_GRAPHS: Final = frozenset({"LangGraph"})


class _Draft(msgspec.Struct):
    agent: str | None
    parent: int | None
    via: Via
    span: int | None
    first: int


class Owners:
    """The invocations of a tree, and the owner of each span by position."""

    def __init__(self, tree: SpanTree, remarks: Remarks) -> None:
        self._tree = tree
        self._remarks = remarks
        self._drafts = [_Draft(None, None, Via.ROOT, None, -1)]
        self._named: dict[tuple[Any, ...], int] = {}
        self.owner = [0] * len(tree.spans)
        self._steps = tree.step_like_agents()
        if self._steps:
            remarks.add(_CLIMBED, len(self._steps))
        self._several = self._parents_with_several_steps()
        self._handoffs = self._handoff_targets()
        roots = tree.roots()
        self._whole = roots[0] if len(roots) == 1 else None
        for at in tree.top_down:
            self.owner[at] = self._owner_of(at)
        self._renumber()

    def invocations(self, statuses: list[StepStatus]) -> tuple[AgentInvocation, ...]:
        """Return the invocations; `statuses` are those of the spans by position."""
        made = []
        for number, draft in enumerate(self._drafts):
            span = None if draft.span is None else self._tree.spans[draft.span]
            made.append(
                AgentInvocation(
                    number=number,
                    agent=draft.agent,
                    parent=draft.parent,
                    via=draft.via,
                    start_ns=span.start_ns if span else None,
                    end_ns=span.end_ns if span else None,
                    status=(
                        StepStatus.UNSET if draft.span is None else statuses[draft.span]
                    ),
                    native_id=span.span_id if span else None,
                )
            )
        return tuple(made)

    def _parents_with_several_steps(self) -> set[int]:
        names: dict[int, set[str]] = defaultdict(set)
        for at in self._steps:
            parent = self._tree.parents[at]
            if parent is not None:
                names[parent].add(self._tree.spans[at].name)
        return {parent for parent, known in names.items() if len(known) > 1}

    def _handoff_targets(self) -> set[str]:
        tree = self._tree
        targets = (
            handoff_target(span)
            for span, kind in zip(tree.spans, tree.kinds, strict=True)
            if kind is StepKind.HANDOFF
        )
        return {target.casefold() for target in targets if target}

    def _owner_of(self, at: int) -> int:
        tree = self._tree
        parent = tree.parents[at]
        above = 0 if parent is None else self.owner[parent]
        if at in self._steps and parent is not None:
            return self._owner_of_step(at, parent, above)
        if tree.kinds[at] is StepKind.AGENT:
            return self._invoked(at, above)
        if parent is not None and tree.kinds[at] is StepKind.OTHER:
            return above
        return self._named_owner(at, above)

    def _owner_of_step(self, at: int, parent: int, above: int) -> int:
        """Return the invocation of a step-like agent span: that of its parent.

        A parent that is no agent span becomes the invocation; one that holds steps of
        several names gets an invocation for each, so that they are never joined.
        """
        tree = self._tree
        name = agent_span_name(tree.spans[at])
        if parent in self._several:
            return self._virtual((parent, "step", str(name)), name, above, at)
        if tree.kinds[parent] is StepKind.AGENT:
            return above
        if tree.parents[parent] is None:
            self._name_graph(parent)
            return above
        return self._virtual((parent, "graph"), tree.spans[parent].name, above, parent)

    def _name_graph(self, root: int) -> None:
        """Name the root invocation after the graph whose steps its agents are."""
        name = clip(self._tree.spans[root].name, NAME, self._remarks)
        if self._drafts[0].agent is None and root == self._whole and name:
            self._drafts[0].agent = None if name in _UNNAMED_GRAPHS else name

    def _invoked(self, at: int, above: int) -> int:
        tree = self._tree
        name = clip(agent_span_name(tree.spans[at]), NAME, self._remarks)
        if at == self._whole:
            root = self._drafts[0]
            root.agent, root.span, root.first = name, at, at
            return 0
        self._drafts.append(_Draft(name, above, self._via(at, name, above), at, at))
        return len(self._drafts) - 1

    def _via(self, at: int, name: str | None, above: int) -> Via:
        if name and name.casefold() in self._handoffs:
            return Via.HANDOFF
        tree = self._tree
        parent = tree.parents[at]
        while parent is not None and tree.kinds[parent] is StepKind.OTHER:
            # Some SDKs put a span of their own between the tool and its agent.
            parent = tree.parents[parent]
        if parent is not None and tree.kinds[parent] is StepKind.TOOL_CALL:
            return Via.TOOL
        return Via.ROOT if self._drafts[above].agent is None else Via.SUBAGENT

    def _named_owner(self, at: int, above: int) -> int:
        """Return the owner of a span that may name another agent than the one above."""
        name = clip(named_agent(self._tree.spans[at]), NAME, self._remarks)
        known = self._drafts[above].agent
        if name is None or (known and known.casefold() == name.casefold()):
            return above
        key = (above, name.casefold(), self._tree.missing_parent[at])
        return self._virtual(key, name, above, at)

    def _virtual(self, key: tuple[Any, ...], name: Any, above: int, at: int) -> int:
        number = self._named.get(key)
        if number is None:
            agent = clip(name, NAME, self._remarks)
            is_top = self._drafts[above].agent is None
            via = Via.ROOT if is_top else Via.MANAGED
            number = self._named[key] = len(self._drafts)
            self._drafts.append(_Draft(agent, above, via, None, at))
        draft = self._drafts[number]
        draft.first = min(draft.first, at)
        return number

    def _renumber(self) -> None:
        """Number the invocations by their first span, the root first."""
        order = sorted(
            range(1, len(self._drafts)), key=lambda number: self._drafts[number].first
        )
        new = {old: number for number, old in enumerate([0, *order])}
        self._drafts = [self._drafts[old] for old in [0, *order]]
        for draft in self._drafts:
            draft.parent = None if draft.parent is None else new[draft.parent]
        self.owner = [new[old] for old in self.owner]
