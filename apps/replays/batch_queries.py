"""Reading batches, their groups and their runs, for lists and pages.

Each function asks a fixed number of queries, however many rows it gives.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

import msgspec
from django.db.models import (
    Count,
    Exists,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)

from apps.agents.models import Agent
from apps.agents.queries import agents_behind, agents_of_keys
from apps.replays.models import (
    Batch,
    BatchKind,
    Group,
    ReplayCase,
    Run,
    RunAttempt,
    StubCall,
    Target,
)
from apps.replays.transitions import EXECUTED, OPEN, RunState

ON_A_PAGE: Final = 25
_EXECUTED: Final = tuple(one.value for one in EXECUTED)
_OPEN: Final = tuple(one.value for one in OPEN)
_LARGE: Final = ("effects", "proof", "printed", "judged")


class RunCounts(msgspec.Struct, frozen=True):
    """How many runs there are: in all, executed, finished, still open, with a breach.

    `unrecorded` were executed and left no recording.
    """

    total: int = 0
    executed: int = 0
    finished: int = 0
    open: int = 0
    breaches: int = 0
    unrecorded: int = 0

    @property
    def failed(self) -> int:
        """How many were executed and did not finish."""
        return self.executed - self.finished

    @property
    def not_run(self) -> int:
        """How many were never executed and will not be."""
        return self.total - self.executed - self.open


NONE: Final = RunCounts()
_COUNTS: Final = {
    "total": Count("pk"),
    "executed": Count("pk", filter=Q(state__in=_EXECUTED)),
    "finished": Count("pk", filter=Q(state=RunState.FINISHED.value)),
    "open": Count("pk", filter=Q(state__in=_OPEN)),
    "breaches": Count("pk", filter=Q(has_breach=True)),
    "unrecorded": Count("pk", filter=Q(state__in=_EXECUTED, trace=None)),
}


def _counted(runs: QuerySet[Run], by: str) -> dict[int, RunCounts]:
    rows = runs.order_by().values(by).annotate(**_COUNTS)
    return {row[by]: RunCounts(**{name: row[name] for name in _COUNTS}) for row in rows}


class BatchFilter(msgspec.Struct, frozen=True):
    """Which batches a list shows: of an agent, in a state; `before` is an id."""

    agent: int | None = None
    state: str = ""
    before: int | None = None

    @property
    def is_narrowed(self) -> bool:
        """Whether some batches may be hidden."""
        return self.agent is not None or bool(self.state)


class BatchRow(msgspec.Struct, frozen=True):
    """A batch with the counts of its runs."""

    batch: Batch
    counts: RunCounts


def batch_of(project_id: int, batch_id: int) -> Batch | None:
    """A batch of a project with its target, or `None`. One query."""
    return _with_rows(Batch.objects.filter(project_id=project_id, pk=batch_id)).first()


def _with_rows(batches: QuerySet[Batch]) -> QuerySet[Batch]:
    return batches.select_related(
        "agent", "target_version__target", "created_by", "cancelled_by"
    )


def batch_rows(project_id: int, where: BatchFilter) -> list[BatchRow]:
    """The newest batches that the filter lets through, one more than a page. Two queries."""
    rows = Batch.objects.filter(project_id=project_id).defer("plan", "estimate")
    if where.agent is not None:
        rows = rows.filter(agent_id__in=agents_behind(where.agent))
    if where.state:
        rows = rows.filter(state=where.state)
    if where.before is not None:
        rows = rows.filter(pk__lt=where.before)
    return _rows(list(_with_rows(rows).order_by("-pk")[: ON_A_PAGE + 1]))


def _rows(found: list[Batch]) -> list[BatchRow]:
    ids = [one.pk for one in found]
    counts = _counted(Run.objects.filter(batch_id__in=ids), "batch_id")
    return [BatchRow(one, counts.get(one.pk, NONE)) for one in found]


class Inventory(msgspec.Struct, frozen=True):
    """What there is to replay with in a project."""

    targets: int
    cases: int
    batches: int


def inventory(project_id: int) -> Inventory:
    """How many targets, cases and batches a project has. Three queries."""
    targets = Target.objects.filter(project_id=project_id, is_retired=False)
    cases = ReplayCase.objects.filter(project_id=project_id, is_retired=False)
    return Inventory(
        targets=targets.count(),
        cases=cases.count(),
        batches=Batch.objects.filter(project_id=project_id).count(),
    )


def agents_with_batches(project_id: int) -> list[Agent]:
    """The agents that were ever run alone in a project, by name. One query."""
    run = Batch.objects.filter(project_id=project_id)
    return agents_of_keys(project_id, run.values("agent__key"))


class GroupRow(msgspec.Struct, frozen=True):
    """A group with the counts of its runs."""

    group: Group
    counts: RunCounts


def group_rows(batch: Batch) -> list[GroupRow]:
    """The groups of a batch in their order. Two queries."""
    groups = (
        Group.objects.filter(batch=batch)
        .select_related("case__trace__task", "task")
        .defer("case__content")
        .order_by("number")
    )
    counts = _counted(Run.objects.filter(batch=batch), "group_id")
    return [GroupRow(one, counts.get(one.pk, NONE)) for one in groups]


def group_of(batch: Batch, number: int) -> GroupRow | None:
    """One group of a batch by its number, or `None`. Two queries."""
    group = (
        Group.objects.filter(batch=batch, number=number)
        .select_related("case__trace__task", "task")
        .defer("case__content")
        .first()
    )
    if group is None:
        return None
    counts = _counted(Run.objects.filter(group=group), "group_id")
    return GroupRow(group, counts.get(group.pk, NONE))


def runs_of(group: Group) -> list[Run]:
    """The runs of a group by number, without what only their own page shows. One query."""
    rows = Run.objects.filter(group=group).select_related("trace")
    return list(rows.defer(*_LARGE).order_by("number"))


def judged_runs(batch: Batch) -> list[Run]:
    """The executed runs of a memory test with what was judged, in order. One query."""
    rows = Run.objects.filter(batch=batch, state__in=_EXECUTED)
    rows = rows.select_related("group", "trace").defer("effects", "proof", "printed")
    return list(rows.order_by("group__number", "number"))


def run_of(project_id: int, run_id: int) -> Run | None:
    """One run of a project with all that belongs to it, or `None`. One query."""
    return (
        Run.objects.filter(pk=run_id, batch__project_id=project_id)
        .select_related(
            "batch__agent",
            "batch__target_version__target",
            "group__case",
            "group__task",
            "trace",
        )
        .first()
    )


def run_of_trace(trace_id: int) -> Run | None:
    """The run whose recording a trace is, or `None`. One query."""
    rows = Run.objects.filter(trace_id=trace_id)
    rows = rows.select_related("batch__agent", "group__case").defer(
        "batch__plan", "group__case__content", "printed"
    )
    return rows.first()


def group_of_task(task_id: int) -> Group | None:
    """The group whose runs are the trials of a task, or `None`. One query."""
    rows = Group.objects.filter(task_id=task_id)
    return rows.select_related("batch__agent", "case").defer("case__content").first()


def attempts_of(run: Run) -> list[RunAttempt]:
    """The attempts at a run in their order. One query."""
    return list(RunAttempt.objects.filter(run=run).defer("events").order_by("number"))


def stub_calls_of(run: Run) -> list[StubCall]:
    """Tool calls of the last attempt that came over the network. One query."""
    rows = StubCall.objects.filter(run=run, attempt=run.attempt)
    return list(rows.order_by("number")[:500])


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps runs of a batch from beginning, as the rows say it.

    `at_work` are runs of the target in any batch, `own` in this one. `backing_off` runs
    wait until `until` at the earliest. `last_sign` is when a run of the batch last
    began or ended.
    """

    at_work: int
    own: int
    waiting: int
    backing_off: int
    until: datetime | None
    last_sign: datetime | None


def waiting_of(batch: Batch, *, now: datetime) -> Waiting:
    """Why runs of a batch may be waiting. Two queries."""
    target_id = batch.target_version.target_id
    at_work = Run.objects.filter(
        state=RunState.RUNNING.value, batch__target_version__target_id=target_id
    ).aggregate(all=Count("pk"), own=Count("pk", filter=Q(batch=batch)))
    waits = Q(state=RunState.WAITING.value)
    later = waits & Q(not_before__gt=now)
    rows = Run.objects.filter(batch=batch).aggregate(
        waiting=Count("pk", filter=waits),
        backing_off=Count("pk", filter=later),
        until=Min("not_before", filter=later),
        began=Max("started_at"),
        ended=Max("finished_at"),
    )
    signs = [one for one in (rows["began"], rows["ended"]) if one is not None]
    return Waiting(
        at_work=at_work["all"],
        own=at_work["own"],
        waiting=rows["waiting"],
        backing_off=rows["backing_off"],
        until=rows["until"],
        last_sign=max(signs, default=None),
    )


def experiments_of(signal_ids: Collection[int]) -> dict[int, list[BatchRow]]:
    """The batches that are experiments for signals, newest first. Two queries."""
    found = Batch.objects.filter(signal__in=signal_ids).defer("plan", "estimate")
    by_signal: dict[int, list[BatchRow]] = {}
    for row in _rows(list(_with_rows(found).order_by("-pk"))):
        if row.batch.signal is not None:
            by_signal.setdefault(row.batch.signal, []).append(row)
    return by_signal


def experiment_state(signal_id: str = "pk") -> Subquery:
    """The state of the newest batch for a signal, whose id the query has as this name."""
    rows = Batch.objects.filter(signal=OuterRef(signal_id)).order_by("-pk")
    return Subquery(rows.values("state")[:1])


def newest_groups(agent: Agent, *, most: int) -> list[GroupRow]:
    """The groups that count in the verdict of an agent, newest first. Two queries.

    Those of agents that were merged into it count too.
    """
    names = agent.names.values("key")
    rows = _counting(agent.project_id).filter(batch__agent__key__in=names)
    return _group_rows(rows[:most])


def counting_groups(project_id: int, *, most: int) -> list[GroupRow]:
    """The groups that count in verdicts of a project, newest first. Two queries."""
    rows = _counting(project_id).select_related("batch__agent")
    return _group_rows(rows[:most])


def _counting(project_id: int) -> QuerySet[Group]:
    return (
        Group.objects.filter(is_newest=True, batch__project_id=project_id)
        # What was put away was no good input.
        .exclude(case__is_retired=True)
        .select_related("batch", "case__trace__task", "task")
        .defer("case__content", "batch__plan", "batch__estimate")
        .order_by("-batch_id", "number")
    )


def _group_rows(groups: QuerySet[Group]) -> list[GroupRow]:
    found = list(groups)
    ids = [one.pk for one in found]
    counts = _counted(Run.objects.filter(group_id__in=ids), "group_id")
    return [GroupRow(one, counts.get(one.pk, NONE)) for one in found]


def levels_of(group_ids: Collection[int]) -> dict[int, dict[str, int]]:
    """By id of a group how many executed runs reached which isolation. One query."""
    rows = Run.objects.filter(group_id__in=group_ids, state__in=_EXECUTED).order_by()
    found: dict[int, dict[str, int]] = {}
    counted = rows.values_list("group_id", "level").annotate(n=Count("pk"))
    for group_id, level, count in counted.order_by("group_id", "level"):
        found.setdefault(group_id, {})[level] = count
    return found


def numbers_of_batches(project_id: int) -> tuple[int, int, int]:
    """How many batches a project has, their planned runs, and how many batches ran.

    A batch ran once one of its runs was executed, well or not. One query.
    """
    executed = Run.objects.filter(batch=OuterRef("pk"), state__in=_EXECUTED)
    rows = Batch.objects.filter(project_id=project_id).annotate(
        was_run=Exists(executed)
    )
    found = rows.aggregate(
        batches=Count("pk"),
        runs=Sum("run_count", default=0),
        ran=Count("pk", filter=Q(was_run=True)),
    )
    return found["batches"], found["runs"], found["ran"]


def is_memory(batch: Batch) -> bool:
    """Whether a batch is a memory test."""
    return batch.kind == BatchKind.MEMORY.value
