"""The trials of a report: how far they agree, where they part, what people noted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    FloatField,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Cast

from apps.engine.consistency import Stability
from apps.engine.masking import OutcomeColour
from apps.reports.assessment import (
    AnswerPart,
    BranchPart,
    CasePart,
    ConsistencyPart,
    ForkPart,
    ForksPart,
    MirrorPart,
    NotePart,
    OutcomesPart,
    UnstablePart,
)
from apps.reports.inert import one_line, visible
from apps.reports.rates import rate_of
from apps.reports.words import GONE, spaced, utc
from apps.scoring.decisive import decisive_forks
from apps.scoring.models import AgentTaskScore, TaskScore, TraceScore
from apps.verdicts.models import TrialNote, TrialNoteKind

MAX_UNSTABLE: Final = 15
MAX_FORKS: Final = 60
MAX_CASES: Final = 10
MAX_NOTES: Final = 100
_MAX_ANSWERS: Final = 4
_MAX_BRANCHES: Final = 8
_MAX_WORDS: Final = 240
_MAX_ANSWER: Final = 120
_MAX_SENTENCE: Final = 700
_UNSTABLE: Final = (Stability.DRIFTING.value, Stability.NON_DETERMINISTIC.value)


def task_counts(project_id: int) -> tuple[OutcomesPart, ConsistencyPart]:
    """The outcomes and the agreement of all tasks in counts: one query."""
    row = TaskScore.objects.filter(project_id=project_id).aggregate(
        n=Count("pk"),
        wrong=Count("pk", filter=Q(is_stable_but_wrong=True)),
        gaps=Count("pk", filter=Q(is_gap=True)),
        **{
            f"is_{one.value}": Count("pk", filter=Q(outcome=one.value))
            for one in OutcomeColour
        },
        **{
            one.value: Count("pk", filter=Q(consistency=one.value)) for one in Stability
        },
    )
    outcomes = OutcomesPart(
        n=row["n"],
        passed=row["is_green"],
        failed=row["is_red"],
        mixed=row["is_mixed"],
        unknown=row["is_unknown"],
        all_green=row["gaps"],
    )
    by_verdict = {one.value: row[one.value] for one in Stability}
    return outcomes, ConsistencyPart(
        tasks=row["n"],
        by_verdict=by_verdict,
        stable_but_wrong=row["wrong"],
        unstable=sum(by_verdict[verdict] for verdict in _UNSTABLE),
    )


def least_stable(
    project_id: int, *, with_agents: bool
) -> tuple[tuple[UnstablePart, ...], int]:
    """The tasks that agree least, end to end and by agent, and how many there are.

    Two queries, or four `with_agents`: with one agent the whole says the same.
    """
    rows = _least(TaskScore.objects.filter(project_id=project_id))
    parts = [_unstable(row, "") for row in rows.select_related("task")[:MAX_UNSTABLE]]
    count = rows.count()
    if with_agents:
        of = AgentTaskScore.objects.filter(task__taskscore__project_id=project_id)
        by_agent = _least(of).select_related("task", "agent")
        parts += [_unstable(row, str(row.agent)) for row in by_agent[:MAX_UNSTABLE]]
        count += by_agent.count()
    return tuple(parts), count


def _least(rows: QuerySet[Any]) -> QuerySet[Any]:
    worst = Case(When(consistency=_UNSTABLE[1], then=Value(0)), default=Value(1))
    share = Cast("majority", FloatField()) / F("trials")
    unstable = rows.filter(consistency__in=_UNSTABLE)
    return unstable.order_by(worst, share, "-trials", "task_id")


def _unstable(row: TaskScore | AgentTaskScore, agent: str) -> UnstablePart:
    said = row.detail["consistency"]
    without = [
        AnswerPart(spaced(one["state"]), one["agreement"]["k"], is_decision=False)
        for one in said["without"]
    ]
    return UnstablePart(
        task_id=row.task_id,
        task=one_line(str(row.task), limit=_MAX_WORDS),
        agent=one_line(agent),
        verdict=row.consistency,
        agreement=rate_of(row.majority, row.trials),
        distinct=row.distinct,
        answers=(
            *(
                AnswerPart(_cut(one["decision"]), one["agreement"]["k"])
                for one in said["answers"][:_MAX_ANSWERS]
            ),
            *without,
        ),
        distinct_inputs=said["inputs"]["distinct"] or None,
    )


def _cut(decision: str) -> str:
    shown = one_line(decision, limit=_MAX_WORDS)
    return shown if len(shown) <= _MAX_ANSWER else f"{shown[: _MAX_ANSWER - 1]}…"


def forks_of(project_id: int, mixed: int) -> ForksPart:
    """The `mixed` tasks with the fork that their outcomes go with: two queries."""
    beside = decisive_forks(project_id)
    rows = TaskScore.objects.filter(
        project_id=project_id, outcome=OutcomeColour.MIXED.value
    )
    without = Case(When(decisive="", then=Value(1)), default=Value(0))
    listed = rows.select_related("task").order_by(without, "-rank", "task_id")
    return ForksPart(
        mixed=mixed,
        decisive=0 if beside is None else beside.found,
        expected=None if beside is None else beside.expected,
        low=0 if beside is None else beside.low,
        high=0 if beside is None else beside.high,
        listed=tuple(_fork_part(row) for row in listed[:MAX_FORKS]),
    )


def _fork_part(row: TaskScore) -> ForkPart:
    forks = row.detail["branching"]["forks"]
    decisive = next((one for one in forks if one["is_the_decisive_one"]), None)
    part = ForkPart(
        task_id=row.task_id,
        task=one_line(str(row.task), limit=_MAX_WORDS),
        passed=rate_of(row.passed, row.passed + row.failed),
        forks=row.fork_count,
        sentence=_why_none(row.fork_count),
    )
    return part if decisive is None else _decided(part, decisive)


def _why_none(forks: int) -> str:
    if not forks:
        return "No fork: as far as is recorded, the trials decided the same."
    where = "the fork" if forks == 1 else f"any of the {forks:,} forks"
    return f"No fork is decisive: outcomes do not go with {where}."


def _decided(part: ForkPart, fork: Mapping[str, Any]) -> ForkPart:
    steps = [step - 1 for step in fork["steps"].values() if step is not None]
    branches = fork["branches"]
    return ForkPart(
        task_id=part.task_id,
        task=part.task,
        passed=part.passed,
        forks=part.forks,
        sentence=one_line(fork["sentence"], limit=_MAX_SENTENCE),
        is_decisive=True,
        first_step=min(steps, default=None),
        last_step=max(steps, default=None),
        p=fork["p"],
        branches=tuple(
            BranchPart(
                words=one_line(one["decision"], limit=_MAX_WORDS),
                trials=one["n"],
                passed=rate_of(one["passed"], one["known"]),
            )
            for one in branches[:_MAX_BRANCHES]
        ),
        branches_left_out=max(0, len(branches) - _MAX_BRANCHES),
    )


def mirror_of(project_id: int) -> MirrorPart:
    """The first failures behind which every agent is green: two queries."""
    traces = TraceScore.objects.filter(project_id=project_id, is_gap=True)
    tasks = TaskScore.objects.filter(project_id=project_id, is_gap=True)
    return MirrorPart(
        traces=tuple(
            _case(row.trace)
            for row in traces.select_related("trace", "trace__task")
            .only("trace__name", "trace__task__key", "trace__task__title")
            .order_by("-trace_id")[:MAX_CASES]
        ),
        tasks=tuple(
            CasePart(row.task_id, one_line(str(row.task), limit=_MAX_WORDS))
            for row in tasks.select_related("task")
            .only("task__key", "task__title")
            .order_by("-rank", "task_id")[:MAX_CASES]
        ),
    )


def _case(trace: Any) -> CasePart:
    return CasePart(
        id=trace.pk,
        name=one_line(trace.name, limit=_MAX_WORDS),
        task=one_line(str(trace.task), limit=_MAX_WORDS) if trace.task else "",
    )


def notes_of(project_id: int) -> tuple[tuple[NotePart, ...], int]:
    """The notes that count, newest first, and how many are left out: three queries."""
    newer = TrialNote.objects.filter(trace=OuterRef("trace"), pk__gt=OuterRef("pk"))
    rows = TrialNote.objects.filter(
        ~Exists(newer), trace__project_id=project_id
    ).exclude(kind=TrialNoteKind.WITHDRAWN)
    listed = list(
        rows.select_related("trace", "trace__task", "noted_by").order_by("-pk")[
            :MAX_NOTES
        ]
    )
    outcomes = dict(
        TraceScore.objects.filter(pk__in=[row.trace_id for row in listed]).values_list(
            "pk", "outcome"
        )
    )
    return tuple(_notes(listed, outcomes)), rows.count() - len(listed)


def _notes(
    rows: Iterable[TrialNote], outcomes: Mapping[int, str]
) -> Iterable[NotePart]:
    for row in rows:
        yield NotePart(
            trace=_case(row.trace),
            kind=row.kind,
            outcome=outcomes.get(row.trace_id, OutcomeColour.UNKNOWN.value),
            note=visible(row.note),
            by=one_line(row.noted_by.label) if row.noted_by else GONE,
            at=utc(row.noted_at),
            step=row.step,
        )
