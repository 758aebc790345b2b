"""What the list of cases needs: filters from the URL, rows, keyset pages, a receipt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import msgspec

from apps.accounts.permissions import Permission
from apps.agents.models import Agent
from apps.agents.queries import named_agents
from apps.engine.replay.cases_file import RefusedLine
from apps.replays.models import CaseSource, ReplayCase
from apps.replays.queries import (
    CASES_ON_A_PAGE,
    CaseFilter,
    agents_with_cases,
    cases_of,
)
from apps.traces.models import Task
from apps.web.access import Place
from apps.web.numbers import whole

MOST_REFUSED_SHOWN: Final = 200


class Receipt(msgspec.Struct, frozen=True):
    """What became of a file of cases: how many were new, and each line that was refused."""

    read: int
    new: int
    refused: list[RefusedLine]
    refused_count: int
    notes: list[str]
    problem: str = ""

    @property
    def known(self) -> int:
        """How many of the cases were kept before."""
        return self.read - self.new


class CasesPage(msgspec.Struct, frozen=True):
    """One page of cases with its filters."""

    place: Place
    where: CaseFilter
    rows: list[ReplayCase]
    agents: list[Agent]
    all_agents: list[Agent]
    sources: list[tuple[str, str]]
    task: Task | None
    next_url: str
    first_url: str
    query: str
    refusal: str
    receipt: Receipt | None = None
    sent: str = ""


def case_filter(query: Mapping[str, str]) -> CaseFilter:
    """The filter that a URL asks for; what it does not know it ignores."""
    source = query.get("source", "")
    return CaseFilter(
        q=query.get("q", "").replace("\x00", "")[:200].strip(),
        agent=whole(query.get("agent", "")),
        source=source if source in CaseSource.values else "",
        task=whole(query.get("task", "")),
        is_retired=query.get("retired") == "1",
    )


def filter_query(where: CaseFilter, **more: object) -> str:
    """A filter as a query string with its question mark."""
    fields: dict[str, object] = {
        name: value
        for name in ("q", "agent", "source", "task")
        if (value := getattr(where, name))
    }
    if where.is_retired:
        fields["retired"] = 1
    return "?" + urlencode({**fields, **more})


def cases_page(place: Place, query: Mapping[str, str]) -> CasesPage:
    """One page of the cases that the URL asks for. A fixed number of queries."""
    where = case_filter(query)
    before = whole(query.get("before", ""))
    rows = cases_of(place.project.pk, where=where, before=before)
    found = list(rows[: CASES_ON_A_PAGE + 1])
    shown = found[:CASES_ON_A_PAGE]
    more = len(found) > CASES_ON_A_PAGE
    return CasesPage(
        place=place,
        where=where,
        rows=shown,
        agents=agents_with_cases(place.project.pk),
        all_agents=named_agents(place.project.pk),
        sources=[(one.value, str(one.label)) for one in CaseSource],
        task=Task.objects.filter(project=place.project, pk=where.task or 0).first(),
        next_url=filter_query(where, before=shown[-1].pk) if more else "",
        first_url=filter_query(where) if before is not None else "",
        query=filter_query(where),
        refusal=place.refusal(Permission.REPLAY),
    )
