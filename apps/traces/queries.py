"""Reading uploads and traces: keyset pages, windows of steps, single bodies."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from django.db.models import Count, F, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from apps.accounts.models import Project
from apps.engine.trace import (
    AgentInvocation as EngineInvocation,
)
from apps.engine.trace import (
    OrderSource,
    Outcome,
    OutcomeKind,
)
from apps.engine.trace import (
    Step as EngineStep,
)
from apps.engine.trace import (
    Trace as EngineTrace,
)
from apps.traces.codec import (
    INVOCATION_COLUMNS,
    STEP_COLUMNS,
    StoredBody,
    bodies_of,
    invocation_of,
    step_of,
)
from apps.traces.models import (
    AgentInvocation,
    BodyChunk,
    RejectedRecord,
    Step,
    Trace,
    Upload,
)
from apps.traces.transitions import TaskSource, UploadState

PAGE_SIZE = 50

SORTS: dict[str, tuple[str, ...]] = {
    "newest": ("-id",),
    "longest": ("-step_count", "-id"),
    "errors": ("-error_count", "-id"),
    "signals": ("-signal_count", "-id"),
}


class TraceFilter(msgspec.Struct, frozen=True):
    """What the list of traces shows; every field comes from the URL."""

    q: str = ""
    outcome: str = ""
    format: str = ""
    usage: str = ""
    agent: str = ""
    model: str = ""
    upload: int | None = None
    task: int | None = None
    sort: str = "newest"

    @property
    def is_narrowed(self) -> bool:
        """Whether anything is filtered."""
        return self != TraceFilter(sort=self.sort)


class ProjectCounts(msgspec.Struct, frozen=True):
    """What a project holds, summed over its finished and running uploads."""

    uploads: int
    traces: int
    steps: int
    model_calls: int
    usage_known: int
    rejected: int
    unfinished: int


def project_counts(project: Project) -> ProjectCounts:
    """Counts from the uploads' own counters: no trace is counted one by one."""
    row = Upload.objects.filter(project=project).aggregate(
        uploads=Count("id"),
        traces=Sum("trace_count", default=0),
        steps=Sum("step_count", default=0),
        model_calls=Sum("model_call_count", default=0),
        usage_known=Sum("usage_known", default=0),
        rejected=Sum("rejected_count", default=0),
        unfinished=Count(
            "id",
            filter=Q(state__in=[UploadState.RECEIVED.value, UploadState.READING.value]),
        ),
    )
    return ProjectCounts(**row)


def outcomes_of(project: Project) -> dict[str, int]:
    """How many traces ended in each outcome kind."""
    rows = Trace.objects.filter(project=project).values("outcome")
    found = dict(rows.annotate(n=Count("id")).values_list("outcome", "n"))
    return {kind.value: found.get(kind.value, 0) for kind in OutcomeKind}


def uploads_of(project: Project, *, before: int | None = None) -> QuerySet[Upload]:
    """The uploads of a project, newest first; with `before` only older ones."""
    rows = Upload.objects.filter(project=project).select_related("created_by")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return rows.order_by("-id")


def rejected_of(upload: Upload) -> QuerySet[RejectedRecord]:
    """The rejected records of an upload that were kept with their text."""
    return RejectedRecord.objects.filter(upload=upload).order_by("id")


def _usage(value: str) -> Q:
    if value == "all":
        return Q(model_call_count__gt=0, usage_known=F("model_call_count"))
    if value == "none":
        return Q(model_call_count__gt=0, usage_known=0)
    if value == "some":
        return Q(usage_known__gt=0, usage_known__lt=F("model_call_count"))
    return Q(model_call_count=0)


def _conditions(where: TraceFilter) -> Iterator[Q]:
    plain = {
        "outcome": where.outcome,
        "format": where.format,
        "upload_id": where.upload,
        "task_id": where.task,
        "agents_seen__contains": [where.agent] if where.agent else None,
        "models_seen__contains": [where.model] if where.model else None,
    }
    yield Q(**{name: value for name, value in plain.items() if value})
    if where.q:
        exact = Q(native_id=where.q) | Q(session=where.q)
        yield Q(name__startswith=where.q) | exact
    if where.usage:
        yield _usage(where.usage)


def traces_of(
    project: Project, *, where: TraceFilter, after: Trace | None = None
) -> QuerySet[Trace]:
    """The traces of a project in the filter's order; `after` is the keyset."""
    rows = Trace.objects.filter(*_conditions(where), project=project)
    order = SORTS.get(where.sort, SORTS["newest"])
    if after is not None:
        rows = rows.filter(_beyond(order, after))
    return rows.select_related("task", "upload").order_by(*order)


def _beyond(order: tuple[str, ...], edge: Trace) -> Q:
    if order == ("-id",):
        return Q(pk__lt=edge.pk)
    field = order[0].lstrip("-")
    value = getattr(edge, field)
    return Q(**{f"{field}__lt": value}) | Q(**{field: value, "pk__lt": edge.pk})


def trials_of(trace: Trace) -> QuerySet[Trace]:
    """The trials of the same task, in order of trial; none without a task."""
    if trace.task_id is None:
        return Trace.objects.none()
    return Trace.everything.filter(task_id=trace.task_id).order_by("trial", "id")


_STEP_FIELDS = tuple(name for name, _ in STEP_COLUMNS)
_INVOCATION_FIELDS = tuple(name for name, _ in INVOCATION_COLUMNS)


def steps_of(
    trace_id: int, *, first: int = 0, last: int | None = None
) -> list[EngineStep]:
    """The steps of a trace from `first` to `last` (both included), without bodies."""
    rows = Step.objects.filter(trace_id=trace_id, seq__gte=first)
    if last is not None:
        rows = rows.filter(seq__lte=last)
    return [step_of(row) for row in rows.order_by("seq").values(*_STEP_FIELDS)]


def has_step_times(trace_id: int) -> bool:
    """Whether any step of a trace has a recorded start."""
    return Step.objects.filter(trace_id=trace_id, start_ns__isnull=False).exists()


def invocations_of(trace_id: int) -> list[EngineInvocation]:
    """The agent invocations of a trace, by number."""
    rows = AgentInvocation.objects.filter(trace_id=trace_id).order_by("number")
    return [invocation_of(row) for row in rows.values(*_INVOCATION_FIELDS)]


def bodies_between(trace_id: int, *, first: int, last: int) -> dict[int, StoredBody]:
    """The stored bodies of the steps from `first` to `last`, by `seq`.

    Reads only the chunks that hold them.
    """
    chunks = BodyChunk.objects.filter(trace_id=trace_id)
    start = chunks.filter(first_seq__lte=first).order_by("-first_seq")
    begin = Coalesce(Subquery(start.values("first_seq")[:1]), 0)
    found: dict[int, StoredBody] = {}
    rows = chunks.filter(first_seq__gte=begin, first_seq__lte=last)
    for first_seq, data in rows.order_by("first_seq").values_list("first_seq", "data"):
        found.update(bodies_of(first_seq, bytes(data)))
    return {seq: body for seq, body in found.items() if first <= seq <= last}


def body_of_step(*, trace_id: int, seq: int) -> StoredBody | None:
    """The stored body of one step, reading one chunk; None if there is no such step."""
    return bodies_between(trace_id, first=seq, last=seq).get(seq)


def engine_trace(trace: Trace, *, most: int | None = None) -> EngineTrace:
    """The trace as the engine knows it, with bodies. For traces of bounded size.

    With `most` only so many steps from the start are loaded. A task that was found by
    its input is left out: the file does not name it.
    """
    last = (trace.step_count if most is None else most) - 1
    bodies = bodies_between(trace.pk, first=0, last=last)
    rows = (
        Step.objects.filter(trace_id=trace.pk, seq__lte=last)
        .order_by("seq")
        .values(*_STEP_FIELDS)
    )
    steps = tuple(step_of(row, bodies.get(row["seq"])) for row in rows)
    return made_of(trace, steps, tuple(invocations_of(trace.pk)))


def made_of(
    trace: Trace,
    steps: tuple[EngineStep, ...],
    invocations: tuple[EngineInvocation, ...],
) -> EngineTrace:
    """The trace of a row, its steps and its invocations."""
    task = trace.task if trace.task and trace.task.source != TaskSource.INPUT else None
    return EngineTrace(
        name=trace.name,
        steps=steps,
        invocations=invocations,
        native_id=trace.native_id,
        session=trace.session or None,
        start_ns=trace.start_ns,
        end_ns=trace.end_ns,
        order=OrderSource(trace.order),
        outcome=Outcome(
            kind=OutcomeKind(trace.outcome),
            score=trace.outcome_score,
            out_of=trace.outcome_out_of,
            label=trace.outcome_label or None,
            source=trace.outcome_source or None,
        ),
        task=task.key if task else None,
        trial=trace.trial,
        metadata=trace.metadata,
        labels=trace.labels,
        notes=tuple(trace.notes),
    )
