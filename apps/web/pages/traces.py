"""What the list of traces needs: filters from the URL, rows, keyset pages."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from apps.accounts.permissions import Permission
from apps.agents.models import Agent
from apps.engine.formats import ARCHIVE, labels
from apps.engine.trace import OutcomeKind
from apps.scoring.models import TraceScore
from apps.traces.models import Task, Trace, Upload
from apps.traces.queries import (
    PAGE_SIZE,
    SORTS,
    ProjectCounts,
    TraceFilter,
    project_counts,
    traces_of,
)
from apps.verdicts.queries import scored_traces, trace_scores
from apps.web.access import Place
from apps.web.numbers import whole

SORT_LABELS = {
    "newest": "Newest first",
    "longest": "Most steps first",
    "errors": "Most errors first",
    "signals": "Most signals first",
}
USAGE_LABELS = {
    "all": "Usage on every call",
    "some": "Usage on some calls",
    "none": "Usage on no call",
    "no_calls": "No model calls",
}


VERDICT_LABELS = {
    "masked": "Masked",
    "gap": "Failed, all agents green",
}
AGENT_LABELS = {
    "masked": "masked",
    "red": "red",
    "unknown": "unknown",
    "green": "green",
}


class VerdictFilter(msgspec.Struct, frozen=True):
    """Which verdict a trace, or one agent in it, is to have."""

    verdict: str = ""
    by: int | None = None

    @property
    def is_narrowed(self) -> bool:
        """Whether anything is filtered."""
        return self != VerdictFilter()


class TracesPage(msgspec.Struct, frozen=True):
    """One page of traces with its filters; `agent` is the one that verdicts are of.

    Rows are traces with their scores, None where a trace is not scored yet.
    """

    place: Place
    where: TraceFilter
    judged: VerdictFilter
    agent: Agent | None
    verdicts: dict[str, str]
    is_narrowed: bool
    rows: list[tuple[Trace, TraceScore | None]]
    next_query: str
    first_query: str
    shown: str
    totals: ProjectCounts
    upload: Upload | None
    task: Task | None
    formats: list[tuple[str, str]]
    outcomes: list[str]
    usages: dict[str, str]
    sorts: dict[str, str]
    may_make_sets: bool
    set_query: str


def filter_from(query: Mapping[str, str]) -> TraceFilter:
    """The filter that a URL asks for; what it does not know it ignores."""

    def text(name: str) -> str:
        return query.get(name, "").replace("\x00", "")[:300]

    def one_of(name: str, allowed: set[str], default: str = "") -> str:
        value = query.get(name, default)
        return value if value in allowed else default

    return TraceFilter(
        q=text("q"),
        outcome=one_of("outcome", {kind.value for kind in OutcomeKind}),
        format=one_of("format", set(labels())),
        usage=one_of("usage", set(USAGE_LABELS)),
        agent=text("agent"),
        model=text("model"),
        upload=whole(query.get("upload", "")),
        task=whole(query.get("task", "")),
        sort=one_of("sort", set(SORTS), "newest"),
    )


def verdict_filter_from(query: Mapping[str, str], agent: Agent | None) -> VerdictFilter:
    """The verdict that a URL asks for; a colour is that of `agent`."""
    verdict = query.get("verdict", "")
    allowed = VERDICT_LABELS if agent is None else AGENT_LABELS
    return VerdictFilter(
        verdict if verdict in allowed else "", None if agent is None else agent.pk
    )


def _agent(place: Place, query: Mapping[str, str]) -> Agent | None:
    by = whole(query.get("by", ""))
    if by is None:
        return None
    return Agent.objects.filter(project=place.project, pk=by).first()


def query_of(*filters: TraceFilter | VerdictFilter, **more: object) -> str:
    """The filters as a query string with its question mark."""
    fields = {
        name: getattr(where, name)
        for where in filters
        for name in where.__struct_fields__
        if getattr(where, name) != getattr(type(where)(), name)
    }
    return "?" + urlencode({**fields, **more})


def traces_page(place: Place, query: Mapping[str, str]) -> TracesPage:
    """One page of the traces that the URL asks for."""
    where, agent = filter_from(query), _agent(place, query)
    judged = verdict_filter_from(query, agent)
    project = place.project
    edge = whole(query.get("after", ""))
    last = (
        Trace.objects.filter(project=project, pk=edge).first()
        if edge is not None
        else None
    )
    matching = scored_traces(
        traces_of(project, where=where, after=last),
        project_id=project.pk,
        verdict=judged.verdict,
        agent_id=judged.by,
    )
    found = list(matching[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    more = len(found) > PAGE_SIZE
    scores = trace_scores([trace.pk for trace in shown])
    return TracesPage(
        place=place,
        where=where,
        judged=judged,
        agent=agent,
        verdicts=VERDICT_LABELS if agent is None else AGENT_LABELS,
        is_narrowed=where.is_narrowed or judged.is_narrowed,
        rows=[(trace, scores.get(trace.pk)) for trace in shown],
        next_query=query_of(where, judged, after=shown[-1].pk) if more else "",
        first_query=query_of(where, judged) if last is not None else "",
        shown=f"{len(shown)} {'trace' if len(shown) == 1 else 'traces'} shown",
        totals=project_counts(project),
        upload=Upload.objects.filter(project=project, pk=where.upload or 0).first(),
        task=Task.objects.filter(project=project, pk=where.task or 0).first(),
        formats=sorted(
            ((slug, label) for slug, label in labels().items() if slug != ARCHIVE),
            key=lambda pair: pair[1].casefold(),
        ),
        outcomes=[kind.value for kind in OutcomeKind],
        usages=USAGE_LABELS,
        sorts=SORT_LABELS,
        # A set freezes what the traces themselves say, not what is said of them.
        may_make_sets=place.can(Permission.MANAGE_SETS) and not judged.is_narrowed,
        set_query=query_of(where),
    )
