"""Agents that a platform's rows do not mark as agents but show in their tree.

LangGraph writes the node and its path into the metadata of each run; other programs
show only which function made the calls. Both are read from the shape of one trace,
before its tree is built.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Final

from apps.engine.reading.spans import Facts, Span
from apps.engine.reading.text_limits import Remarks
from apps.engine.trace import StepKind

PATH: Final = "langgraph_checkpoint_ns"
NODE: Final = "langgraph_node"
AGENT: Final = "lc_agent_name"
GRAPH_KEYS: Final = (PATH, NODE, AGENT)

_CALLERS: Final = (
    "No span is marked as an agent, so the functions that made several model calls "
    "themselves are read as agents: {n}."
)


def graph_hints(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return what metadata of LangChain and LangGraph says of the place of a run."""
    return {
        key: metadata[key]
        for key in GRAPH_KEYS
        if isinstance(metadata.get(key), str) and metadata[key]
    }


def mark_agents(spans: list[Span], remarks: Remarks) -> None:
    """Mark the agents of a trace in the facts of its spans, where none are marked.

    Graphs and the nodes that make calls come first, then agents named in metadata,
    and only without any of them the functions that made several calls themselves.
    """
    mark_graphs(spans)
    if not any(_kind(span) is StepKind.AGENT for span in spans):
        mark_callers(spans, remarks)


def mark_graphs(spans: list[Span]) -> None:
    """Mark each graph, and each node outside of inner graphs that makes a call."""
    by_id = {span.span_id: span for span in spans}
    nodes = [span for span in spans if _begins_path(span, by_id)]
    if nodes:
        _mark_nodes(nodes, by_id, _calls_by_node(spans, nodes, by_id))
    for span in spans:
        name = span.attributes.get(AGENT)
        if name and _above(span, by_id, AGENT) != name:
            _mark(span, name)


def _mark_nodes(
    nodes: list[Span], by_id: dict[str, Span], calls: Counter[str | None]
) -> None:
    """Mark the graphs above `nodes`, and the nodes that are agents of their own.

    A node that holds a graph is none: that graph is. Where one node alone makes the
    calls of a graph, one on each visit, they are the turns of the graph itself.
    """
    groups: dict[str | None, list[Span]] = defaultdict(list)
    for span in nodes:
        if span.parent_id in by_id:
            groups[span.parent_id].append(span)
        elif calls[span.span_id]:
            _mark(span, span.attributes.get(NODE))
    inner_paths = {by_id[one].attributes.get(PATH) for one in groups if one}
    for parent_id, group in groups.items():
        graph = by_id[parent_id or ""]
        # The outermost graph of LangGraph.js carries the node that it ran last.
        node = graph.attributes.get(NODE) if graph.parent_id in by_id else None
        _mark(graph, graph.attributes.get(AGENT) or node)
        graphs = [span for span in group if span.attributes.get(PATH) in inner_paths]
        callers = [
            span
            for span in group
            if calls[span.span_id] and span.attributes.get(PATH) not in inner_paths
        ]
        names = {span.attributes.get(NODE) for span in (*callers, *graphs)}
        if len(names) > 1 or any(calls[span.span_id] > 1 for span in callers):
            for span in callers:
                _mark(span, span.attributes.get(NODE))


def _above(span: Span, by_id: dict[str, Span], key: str) -> Any:
    parent = by_id.get(span.parent_id) if span.parent_id else None
    return parent.attributes.get(key) if parent else None


def _begins_path(span: Span, by_id: dict[str, Span]) -> bool:
    path = span.attributes.get(PATH)
    return bool(path and span.attributes.get(NODE)) and path != _above(
        span, by_id, PATH
    )


def _calls_by_node(
    spans: list[Span], nodes: list[Span], by_id: dict[str, Span]
) -> Counter[str | None]:
    """Return how many model calls stand in each node and in no node further inside."""
    nearest: dict[str, str | None] = {span.span_id: span.span_id for span in nodes}
    found: Counter[str | None] = Counter()
    for span in spans:
        if _kind(span) is not StepKind.MODEL_CALL:
            continue
        path: dict[str, None] = {}
        at = span.parent_id
        while at in by_id and at not in nearest and at not in path:
            path[at] = None
            at = by_id[at].parent_id
        node = nearest.get(at) if at is not None else None
        nearest.update(dict.fromkeys(path, node))
        found[node] += 1
    return found


def mark_callers(spans: list[Span], remarks: Remarks) -> None:
    """Mark the plain spans that hold two model calls or more directly."""
    calls = Counter(
        span.parent_id for span in spans if _kind(span) is StepKind.MODEL_CALL
    )
    for span in spans:
        if calls[span.span_id] > 1 and _kind(span) is StepKind.OTHER:
            _mark(span, span.name or None)
            remarks.add(_CALLERS)


def _kind(span: Span) -> StepKind | None:
    return span.facts.kind if span.facts else None


def _mark(span: Span, name: Any) -> None:
    facts: Facts | None = span.facts
    if facts is not None and facts.kind is StepKind.OTHER:
        facts.kind = StepKind.AGENT
        facts.agent = name
