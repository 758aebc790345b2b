"""Reading verdicts: of a project, of its agents, of traces, and beside rows of lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from django.db.models import QuerySet, Value
from django.db.models.functions import Coalesce

from apps.agents.queries import with_a_name
from apps.engine.agent_names import agent_key
from apps.engine.consistency import Share, share
from apps.engine.masking import COLOURS, Colour, MaskingReport
from apps.scoring.models import AgentTaskScore, Conduct, TaskScore, TraceScore
from apps.traces.models import Trace
from apps.verdicts.counting import CountedOutcomes
from apps.verdicts.models import AgentVerdict, ProjectVerdict

TRACE_VERDICTS: Final = ("masked", "gap", "red", "unknown", "green")
"""What a list of traces can be narrowed to; a colour is that of one agent."""

OF_ONE_AGENT: Final = frozenset({"red", "unknown", "green"})


class Change(msgspec.Struct, frozen=True):
    """That the verdict of an agent is another one than before, and why."""

    agent: str
    agent_id: int
    before: str
    after: str
    at: datetime
    reason: str = ""


class ProjectStanding(msgspec.Struct, frozen=True):
    """What is said of a project as a whole, as it was settled last."""

    report: MaskingReport
    traces: CountedOutcomes
    tasks: CountedOutcomes
    changes: list[Change]
    settled_at: datetime | None

    @property
    def passed_traces(self) -> Share:
        """Of the traces with a known outcome, those that passed."""
        return _passed(self.traces)


def _passed(found: CountedOutcomes) -> Share:
    known = found.counts.passed + found.counts.failed
    return share(found.counts.passed, known, nothing="none with a known outcome")


def project_standing(project_id: int) -> ProjectStanding | None:
    """What was settled last of a project; `None` where nothing ever was. One query."""
    row = ProjectVerdict.objects.filter(project_id=project_id).first()
    return None if row is None or not row.detail else standing_of(row)


def standing_of(row: ProjectVerdict) -> ProjectStanding | None:
    """What a settled row says; `None` for what this release did not write and settles anew."""
    try:
        return _standing(row)
    except (msgspec.ValidationError, LookupError, TypeError):
        return None


def _standing(row: ProjectVerdict) -> ProjectStanding:
    return ProjectStanding(
        report=msgspec.convert(row.detail["report"], MaskingReport),
        traces=msgspec.convert(row.detail["traces"], CountedOutcomes),
        tasks=msgspec.convert(row.detail["tasks"], CountedOutcomes),
        changes=msgspec.convert(row.changes, list[Change]),
        settled_at=row.settled_at,
    )


def ranked_agents(project_id: int) -> QuerySet[Any]:
    """The agents of a project with a name, each with its `place`: largest first.

    An agent without a verdict stands among the unknown ones that no trace exercises.
    """
    unknown = Value(rank_of(Colour.UNKNOWN, masked=None, traces=0))
    return with_a_name(project_id).annotate(
        place=Coalesce("agentverdict__rank", unknown)
    )


def rank_of(colour: Colour, *, masked: int | None, traces: int) -> int:
    """The place among the agents: masked first, then by colour, then by traces.

    `masked` is in how many traces that passed it is masked, `None` where it is not
    masked at all. It stands for the traces of a masked agent: one that never shows in a
    trace does not stand above one that does because it was seen more often.
    """
    worst = len(COLOURS) - COLOURS.index(colour)
    counted = traces if masked is None else masked
    return ((masked is not None) * 10 + worst) * 100_000_000 + min(counted, 99_999_999)


def agent_verdicts(project_id: int) -> QuerySet[AgentVerdict]:
    """The verdicts of the agents of a project with their agents, the worst first."""
    rows = AgentVerdict.objects.filter(project_id=project_id)
    return rows.select_related("agent").order_by("-rank", "agent__name", "agent_id")


def mixed_tasks(project_id: int) -> int:
    """How many tasks have trials that passed and trials that failed."""
    return TaskScore.objects.filter(project_id=project_id, outcome="mixed").count()


class Beside(msgspec.Struct, frozen=True):
    """How the agent and the trace of one signal stand: verdict, outcome, trials, fork.

    `colour` is "" where the agent does nothing in the trace, `outcome` where the trace
    is not scored yet; `task` is None where the trace is of no task with a score.
    """

    colour: str = ""
    is_masked: bool = False
    outcome: str = ""
    task: TaskScore | None = None


def beside_signals(
    signals: Iterable[tuple[int, int, str, int | None]],
) -> dict[int, Beside]:
    """By id of the signal, how its agent and trace stand: three queries for any number.

    `signals` are their ids, traces, recorded agents and tasks.
    """
    rows = list(signals)
    traces = {trace_id for _, trace_id, _, _ in rows}
    keys = {agent_key(agent) for _, _, agent, _ in rows}
    conducts = {
        (trace_id, key): (colour, is_masked)
        for trace_id, key, colour, is_masked in Conduct.objects.filter(
            trace_id__in=traces, agent__names__key__in=keys
        ).values_list("trace_id", "agent__names__key", "colour", "is_masked")
    }
    outcomes = dict(
        TraceScore.objects.filter(pk__in=traces).values_list("pk", "outcome")
    )
    scores = task_scores([task_id for *_, task_id in rows if task_id is not None])
    return {
        pk: Beside(
            *conducts.get((trace_id, agent_key(agent)), ("", False)),
            outcome=outcomes.get(trace_id, ""),
            task=scores.get(task_id or 0),
        )
        for pk, trace_id, agent, task_id in rows
    }


def task_scores(task_ids: Collection[int]) -> Mapping[int, TaskScore]:
    """The scores of tasks by id, without what only the page of a task shows."""
    return TaskScore.objects.defer("detail").in_bulk(task_ids)


def trace_scores(trace_ids: Collection[int]) -> Mapping[int, TraceScore]:
    """The colours and counts of traces by id; those that are not scored are left out."""
    rows = TraceScore.objects.only("outcome", "agents", "red", "green", "masked")
    return rows.in_bulk(trace_ids)


class TraceStanding(msgspec.Struct, frozen=True):
    """What is said of one trace: its score, its agents, and those on its task.

    `score` is None where the trace is not scored yet. `agents` has the agents that act
    in the trace, the masked first; `on_task` all that act in a trial of its task.
    """

    score: TraceScore | None
    agents: list[Conduct]
    task: TaskScore | None
    on_task: dict[int, AgentTaskScore]


def trace_standing(trace: Trace) -> TraceStanding:
    """What is said of one trace and its agents: four queries."""
    score = TraceScore.objects.filter(pk=trace.pk).defer("points").first()
    conducts = Conduct.objects.filter(trace_id=trace.pk).select_related("agent")
    on_task: dict[int, AgentTaskScore] = {}
    task = None
    if trace.task_id is not None:
        task = TaskScore.objects.filter(pk=trace.task_id).first()
        rows = AgentTaskScore.objects.filter(task_id=trace.task_id)
        found = rows.select_related("agent").defer("detail")
        on_task = {row.agent_id: row for row in found}
    return TraceStanding(
        score=score,
        agents=sorted(
            conducts,
            key=lambda one: (
                not one.is_masked,
                COLOURS.index(one.colour),
                one.agent.name.casefold(),
                one.agent_id,
            ),
        ),
        task=task,
        on_task=on_task,
    )


def scored_traces(
    rows: QuerySet[Trace], *, project_id: int, verdict: str, agent_id: int | None
) -> QuerySet[Trace]:
    """Of these traces those with a verdict; all of them where it asks for nothing.

    `masked` and `gap` are of a trace, `masked` also of one agent; a colour needs one.
    """
    if agent_id is not None:
        conducts = Conduct.objects.filter(agent_id=agent_id)
        if verdict == "masked":
            return rows.filter(pk__in=conducts.filter(is_masked=True).values("trace"))
        if verdict in OF_ONE_AGENT:
            return rows.filter(pk__in=conducts.filter(colour=verdict).values("trace"))
        return rows.filter(pk__in=conducts.values("trace")) if not verdict else rows
    scores = TraceScore.objects.filter(project_id=project_id)
    if verdict == "masked":
        return rows.filter(pk__in=scores.filter(masked__gt=0).values("trace"))
    if verdict == "gap":
        return rows.filter(pk__in=scores.filter(is_gap=True).values("trace"))
    return rows


class UploadStanding(msgspec.Struct, frozen=True):
    """What one upload brought: masked traces, and tasks of it with mixed outcomes."""

    masked: int
    mixed: int


def upload_standing(*, project_id: int, upload_id: int) -> UploadStanding:
    """How many traces of an upload are masked, and tasks of it mixed. Two queries."""
    masked = TraceScore.objects.filter(
        project_id=project_id, masked__gt=0, trace__upload_id=upload_id
    )
    mixed = TaskScore.objects.filter(
        project_id=project_id,
        outcome="mixed",
        task_id__in=Trace.objects.filter(
            upload_id=upload_id, task_id__isnull=False
        ).values("task_id"),
    )
    return UploadStanding(masked=masked.count(), mixed=mixed.count())


def first_step_of_fork(detail: Mapping[str, Any], trace_id: int) -> int | None:
    """The step (from 1) at which a trial is at the first fork of its task."""
    forks = (detail.get("branching") or {}).get("forks") or []
    steps = forks[0].get("steps") if forks else None
    return (steps or {}).get(str(trace_id))
