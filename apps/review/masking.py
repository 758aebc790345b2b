"""Findings at agents, and signals beside masking: their agent is red, the outcome green."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from django.db.models import OuterRef, Subquery

from apps.engine.agent_names import agent_key
from apps.review.models import HistoryEntry, Signal
from apps.review.transitions import Act, SignalState, Verdict


def findings_in(trace_ids: Collection[int]) -> dict[int, list[str]]:
    """The agents, as named, of the signals of traces that a reviewer confirmed.

    That is where the reviewer said that it happened, else the agent of the signal; ""
    where neither names one. One entry per finding.
    """
    last = HistoryEntry.objects.filter(signal=OuterRef("pk"), act=Act.DECIDED)
    rows = (
        Signal.objects.filter(
            trace_id__in=trace_ids,
            state=SignalState.DECIDED,
            verdict=Verdict.CONFIRM,
        )
        .annotate(where=Subquery(last.order_by("-id").values("where_agent")[:1]))
        .order_by("pk")
        .values_list("trace_id", "where", "agent")
    )
    found: dict[int, list[str]] = defaultdict(list)
    for trace_id, where, agent in rows:
        found[trace_id].append(where or agent)
    return dict(found)


def mark_masked_signals(masked: Mapping[int, Collection[str]]) -> int:
    """Mark the signals of traces by the agents that are masked there; how many changed.

    `masked` gives for each trace the keys of the names of such agents. A signal that
    names no agent is about the whole trace. Runs in the caller's transaction, which
    holds the traces; so signals are locked after them, as everywhere.
    """
    rows = (
        Signal.objects.select_for_update(no_key=True)
        .filter(trace_id__in=masked)
        .order_by("pk")
    )
    change: dict[bool, list[int]] = {True: [], False: []}
    for pk, trace_id, agent, was in rows.values_list(
        "pk", "trace_id", "agent", "is_masked"
    ):
        keys = masked[trace_id]
        is_masked = agent_key(agent) in keys if agent else bool(keys)
        if is_masked != was:
            change[is_masked].append(pk)
    for is_masked, ids in change.items():
        if ids:
            Signal.objects.filter(pk__in=ids).update(is_masked=is_masked)
    return len(change[True]) + len(change[False])
