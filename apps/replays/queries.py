"""Reading targets and cases: lists in keyset pages, with what belongs to each row."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec
from django.db.models import F, OuterRef, Prefetch, Q, QuerySet, Subquery

from apps.agents.models import Agent
from apps.agents.queries import agents_behind, agents_of_keys
from apps.replays.models import (
    Batch,
    Group,
    ReplayCase,
    Target,
    TargetSecret,
    TargetVersion,
)

CASES_ON_A_PAGE: Final = 50
MOST_BATCHES: Final = 50
MOST_VERSIONS: Final = 100


class TargetRow(msgspec.Struct, frozen=True):
    """A target with what it is set to now and its key, if it has one."""

    target: Target
    version: TargetVersion
    key: TargetSecret | None


class CaseFilter(msgspec.Struct, frozen=True):
    """Which cases a list shows: of an agent, from somewhere, with words in name or input."""

    q: str = ""
    agent: int | None = None
    source: str = ""
    task: int | None = None
    is_retired: bool = False

    @property
    def is_narrowed(self) -> bool:
        """Whether anything is filtered."""
        return self != CaseFilter()


def target_rows(targets: QuerySet[Target]) -> list[TargetRow]:
    """Each target with its newest version and its key: three queries for any number."""
    newest = TargetVersion.objects.filter(target=OuterRef("target")).order_by("-number")
    versions = TargetVersion.objects.filter(
        pk=Subquery(newest.values("pk")[:1])
    ).select_related("created_by")
    secrets = (
        TargetSecret.objects.exclude(sealed=b"")
        .defer("sealed")
        .select_related("created_by")
        .order_by("-pk")
    )
    found = targets.select_related("agent", "created_by").prefetch_related(
        Prefetch("versions", queryset=versions, to_attr="newest"),
        Prefetch("secrets", queryset=secrets, to_attr="keys"),
    )
    return [
        TargetRow(
            target=one,
            version=one.newest[0],
            key=next(iter(one.keys), None),
        )
        for one in found
    ]


def targets_of(project_id: int) -> QuerySet[Target]:
    """The targets of a project, by agent and name; retired ones last."""
    rows = Target.objects.filter(project_id=project_id)
    return rows.order_by("is_retired", "agent__name", "agent_id", "name", "pk")


def version_history(target: Target) -> list[TargetVersion]:
    """What a target was set to, the newest first, with who set it."""
    rows = TargetVersion.objects.filter(target=target).select_related("created_by")
    return list(rows.order_by("-number")[:MOST_VERSIONS])


def batches_of_target(target: Target) -> list[Batch]:
    """The newest batches that ran with any version of a target."""
    rows = Batch.objects.filter(target_version__target=target)
    return list(rows.select_related("target_version").order_by("-pk")[:MOST_BATCHES])


def cases_of(
    project_id: int, *, where: CaseFilter, before: int | None = None
) -> QuerySet[ReplayCase]:
    """The cases that a filter lets through, newest first, without their content."""
    rows = ReplayCase.objects.filter(project_id=project_id, is_retired=where.is_retired)
    if where.agent is not None:
        rows = rows.filter(agent_id__in=agents_behind(where.agent))
    if where.source:
        rows = rows.filter(source=where.source)
    if where.task is not None:
        rows = rows.filter(trace__task_id=where.task)
    for word in where.q.split()[:10]:
        rows = rows.filter(Q(name__icontains=word) | Q(shown__icontains=word))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return rows.select_related("agent", "trace__task").defer("content").order_by("-pk")


def chosen_cases(project_id: int, ids: Collection[int]) -> list[ReplayCase]:
    """Cases of a project by their ids, oldest first; what is not there is left out."""
    rows = ReplayCase.objects.filter(project_id=project_id, pk__in=ids)
    return list(rows.select_related("agent").order_by("pk"))


def agents_with_cases(project_id: int) -> list[Agent]:
    """The agents that have a case, also of one that was merged into them, by name."""
    held = ReplayCase.objects.filter(project_id=project_id)
    return agents_of_keys(project_id, held.values("agent__key"))


def batches_of_case(case: ReplayCase) -> list[Batch]:
    """The newest batches that used a case, each once."""
    used = Group.objects.filter(case=case).values("batch_id")
    rows = Batch.objects.filter(pk__in=used).select_related("target_version__target")
    return list(rows.order_by("-pk")[:MOST_BATCHES])


def frozen_of(trace_id: int) -> dict[int | None, ReplayCase]:
    """The cases that were frozen from a trace and are in use, by invocation."""
    rows = ReplayCase.objects.filter(trace_id=trace_id, is_retired=False)
    found = rows.defer("content").order_by(F("invocation").asc(nulls_first=True), "pk")
    return {row.invocation: row for row in found}


def retire_cases(project_id: int, ids: Iterable[int]) -> int:
    """Put several cases of a project away; how many it were."""
    rows = ReplayCase.objects.filter(project_id=project_id, pk__in=list(ids))
    return rows.filter(is_retired=False).update(is_retired=True)
