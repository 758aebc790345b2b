"""What the list of traces needs: filters from the URL, rows, keyset pages."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.formats import ARCHIVE, labels
from apps.engine.trace import OutcomeKind
from apps.traces.models import Task, Trace, Upload
from apps.traces.queries import (
    PAGE_SIZE,
    SORTS,
    ProjectCounts,
    TraceFilter,
    project_counts,
    traces_of,
)
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


class TracesPage(msgspec.Struct, frozen=True):
    """One page of traces with its filters."""

    place: Place
    where: TraceFilter
    rows: list[Trace]
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


def query_of(where: TraceFilter, **more: object) -> str:
    """The filter as a query string with its question mark."""
    default = TraceFilter()
    fields = {
        name: getattr(where, name)
        for name in where.__struct_fields__
        if getattr(where, name) != getattr(default, name)
    }
    return "?" + urlencode({**fields, **more})


def traces_page(place: Place, query: Mapping[str, str]) -> TracesPage:
    """One page of the traces that the URL asks for."""
    where = filter_from(query)
    project = place.project
    edge = whole(query.get("after", ""))
    last = (
        Trace.objects.filter(project=project, pk=edge).first()
        if edge is not None
        else None
    )
    found = list(traces_of(project, where=where, after=last)[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    more = len(found) > PAGE_SIZE
    return TracesPage(
        place=place,
        where=where,
        rows=shown,
        next_query=query_of(where, after=shown[-1].pk) if more else "",
        first_query=query_of(where) if last is not None else "",
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
        may_make_sets=place.can(Permission.MANAGE_SETS),
        set_query=query_of(where),
    )
