"""Reading scores: of the trials of tasks, of agents in traces and over tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from django.db.models import Count, Exists, OuterRef

from apps.engine.trials.scores import ConductScore, Decided, Trial
from apps.engine.trials.scores import TraceScore as EngineTraceScore
from apps.scoring.models import Conduct, Extraction, StaleTrace, TraceScore
from apps.traces.models import Task, Trace

MOST_TRIALS = 500
"""So many trials of a task are scored; of a larger one the first of them."""


def is_noted(trace_id: str = "pk") -> Exists:
    """Whether a trace, whose id the query has under this name, is to be scored again."""
    return Exists(StaleTrace.objects.filter(trace_id=OuterRef(trace_id)))


def trials_of(
    task_ids: Collection[int],
) -> tuple[dict[str, int], dict[int, list[Trial]]]:
    """The scored trials of tasks in their order, and the ids of their agents by key.

    Three queries. Traces that are not scored yet are left out: when they are, their
    task is noted again.
    """
    rows = (
        Trace.everything.filter(task_id__in=task_ids)
        .exclude(scored_as="")
        .order_by("task_id", "trial", "id")
        .values_list("pk", "task_id", "trial", "name")
    )
    traces = _first_of_each(list(rows))
    ids = [pk for pk, *_ in traces]
    scores = TraceScore.objects.in_bulk(ids)
    conducts: dict[int, list[Conduct]] = defaultdict(list)
    for row in Conduct.objects.filter(trace_id__in=ids).select_related("agent"):
        conducts[row.trace_id].append(row)
    agents = {
        row.agent.key: row.agent_id for found in conducts.values() for row in found
    }
    trials: dict[int, list[Trial]] = defaultdict(list)
    for pk, task_id, number, name in traces:
        if pk in scores:
            trials[task_id].append(
                Trial(
                    id=str(pk),
                    label=name if number is None else f"trial {number}",
                    score=score_of(scores[pk], conducts[pk]),
                )
            )
    return agents, dict(trials)


def replay_tasks(task_ids: Collection[int]) -> set[int]:
    """Which of these tasks are of replays. One query."""
    rows = Task.everything.filter(pk__in=task_ids, is_replay=True)
    return set(rows.values_list("pk", flat=True))


def in_groups(task_ids: Collection[int], *, most: int) -> Iterator[list[int]]:
    """The tasks in groups of at most `most` scored trials; a larger task comes alone.

    One query.
    """
    rows = Trace.everything.filter(task_id__in=task_ids).exclude(scored_as="")
    counted = dict(rows.order_by().values_list("task_id").annotate(trials=Count("pk")))
    taken: list[int] = []
    trials = 0
    for task_id in task_ids:
        size = min(counted.get(task_id, 0), MOST_TRIALS)
        if taken and trials + size > most:
            yield taken
            taken, trials = [], 0
        taken.append(task_id)
        trials += size
    if taken:
        yield taken


_Row = tuple[int, int, int | None, str]


def _first_of_each(rows: Sequence[_Row]) -> list[_Row]:
    counts: dict[int, int] = defaultdict(int)
    taken = []
    for row in rows:
        counts[row[1]] += 1
        if counts[row[1]] <= MOST_TRIALS:
            taken.append(row)
    return taken


def score_of(row: TraceScore, conducts: Sequence[Conduct]) -> EngineTraceScore:
    """The score of a trace as the engine knows it; `conducts` with their agents."""
    return EngineTraceScore(
        outcome=row.outcome,
        outcome_reason=row.outcome_reason,
        decided=_decided(row),
        points=bytes(row.points),
        is_order_uncertain=row.is_order_uncertain,
        recalls=tuple(row.recalls),
        conducts=tuple([conduct_score(one) for one in conducts]),
    )


def conduct_score(row: Conduct) -> ConductScore:
    """What one agent did in one trace, as the engine knows it."""
    return ConductScore(
        agent=row.agent.key,
        name=row.agent.name,
        decided=_decided(row),
        invocations=row.invocations,
        failures=row.failures,
        calls=row.calls,
        tools=row.tools,
        models=tuple(row.models_used),
        held=row.held,
        broken=row.broken,
        undecided=row.undecided,
        not_applying=row.not_applying,
        judged=tuple(row.judged),
        recalled=row.recalled,
        lost=row.lost,
        contradicted=row.contradicted,
        findings=row.findings,
        colour=row.colour,
    )


def _decided(row: Extraction) -> Decided:
    return Decided(
        state=row.state,
        decision=row.decision,
        shown=row.shown,
        how=row.how,
        step=row.step,
        exact=row.exact,
        structure=row.structure,
        input=row.input,
        temperature=row.temperature,
        features=row.features,
    )
