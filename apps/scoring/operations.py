"""Writing scores: of traces, of the agents in them, and of the trials of tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
from django.db import connection

from apps.engine.trials.scores import (
    AgentTaskScore as EngineAgentTaskScore,
)
from apps.engine.trials.scores import (
    ConductScore,
    Decided,
)
from apps.engine.trials.scores import (
    TaskScore as EngineTaskScore,
)
from apps.engine.trials.scores import (
    TraceScore as EngineTraceScore,
)
from apps.scoring.models import (
    AgentTaskScore,
    Conduct,
    StaleTask,
    StaleTrace,
    TaskScore,
    TraceScore,
)
from apps.scoring.storable import storable, storable_text, stored_json
from apps.traces.behind import score_again
from apps.traces.copying import copy_rows
from apps.traces.locking import lock_free_traces
from apps.traces.models import Trace

LONGEST_DECISION: Final = 2_000
MOST_NOTED: Final = 2_000
# What a column of 16 bits holds; one trace may name an agent in each of its steps.
_MOST_AGENTS: Final = 32_767
_DECIDED: Final = (
    ("state", "text"),
    ("decision", "text"),
    ("shown", "text"),
    ("how", "text"),
    ("step", "int4"),
    ("exact", "text"),
    ("structure", "text"),
    ("input", "text"),
    ("temperature", "float8"),
    ("features", "jsonb"),
)
_TRACE: Final = (
    *_DECIDED,
    ("trace_id", "int8"),
    ("project_id", "int8"),
    ("outcome", "text"),
    ("outcome_reason", "text"),
    ("points", "bytea"),
    ("is_order_uncertain", "bool"),
    ("recalls", "jsonb"),
    ("agents", "int2"),
    ("red", "int2"),
    ("green", "int2"),
    ("masked", "int2"),
    ("is_gap", "bool"),
)
_CONDUCT: Final = (
    *_DECIDED,
    ("trace_id", "int8"),
    ("agent_id", "int8"),
    ("invocations", "int4"),
    ("failures", "int4"),
    ("calls", "int4"),
    ("tools", "jsonb"),
    ("models_used", "jsonb"),
    ("held", "int4"),
    ("broken", "int4"),
    ("undecided", "int4"),
    ("not_applying", "int4"),
    ("judged", "jsonb"),
    ("recalled", "int4"),
    ("lost", "int4"),
    ("contradicted", "int4"),
    ("findings", "int4"),
    ("colour", "text"),
    ("is_masked", "bool"),
)


class Scored(msgspec.Struct, frozen=True):
    """A stored trace and its score."""

    trace_id: int
    score: EngineTraceScore
    is_replay: bool = False


def write_trace_scores(
    *, project_id: int, scored: Sequence[Scored], agents: Mapping[str, int], name: str
) -> None:
    """Write the scores of traces over what was there, and mark them as scored.

    Runs inside the caller's transaction, which holds the traces. `agents` are the ids
    of the agents by their key, `name` that of the definitions. By its trigger the tasks
    of the traces are noted as stale.
    """
    ids = [one.trace_id for one in scored]
    TraceScore.objects.filter(trace_id__in=ids).delete()
    Conduct.objects.filter(trace_id__in=ids).delete()
    copy_rows(
        "scoring_tracescore", _TRACE, (_trace_row(project_id, one) for one in scored)
    )
    copy_rows(
        "scoring_conduct",
        _CONDUCT,
        (
            _conduct_row(one, conduct, agents[conduct.agent])
            for one in scored
            for conduct in one.score.conducts
        ),
    )
    Trace.everything.filter(pk__in=ids).update(scored_as=name)


def _decided(decided: Decided) -> tuple[Any, ...]:
    return (
        decided.state,
        storable_text(decided.decision),
        storable_text(decided.shown),
        storable_text(decided.how),
        decided.step,
        decided.exact,
        decided.structure,
        decided.input,
        decided.temperature,
        stored_json(decided.features),
    )


def _trace_row(project_id: int, one: Scored) -> tuple[Any, ...]:
    score = one.score
    colours = [conduct.colour for conduct in score.conducts]
    return (
        *_decided(score.decided),
        one.trace_id,
        None if one.is_replay else project_id,
        score.outcome,
        storable_text(score.outcome_reason),
        score.points,
        score.is_order_uncertain,
        stored_json(list(score.recalls)),
        *(
            min(count, _MOST_AGENTS)
            for count in (
                len(colours),
                colours.count("red"),
                colours.count("green"),
                len(score.masked),
            )
        ),
        score.is_gap,
    )


def _conduct_row(one: Scored, conduct: ConductScore, agent: int) -> tuple[Any, ...]:
    return (
        *_decided(conduct.decided),
        one.trace_id,
        agent,
        conduct.invocations,
        conduct.failures,
        conduct.calls,
        stored_json(conduct.tools),
        stored_json(list(conduct.models)),
        conduct.held,
        conduct.broken,
        conduct.undecided,
        conduct.not_applying,
        stored_json(list(conduct.judged)),
        conduct.recalled,
        conduct.lost,
        conduct.contradicted,
        conduct.findings,
        conduct.colour,
        conduct.agent in one.score.masked,
    )


def write_task_score(
    *,
    project_id: int | None,
    task_id: int,
    score: EngineTaskScore,
    agents: Mapping[str, int],
) -> None:
    """Write the score of one task over what was there, in the caller's transaction.

    `project_id` is None for a task of replays.
    """
    drop_task_scores(task_ids=[task_id])
    plain = msgspec.structs.asdict(score)
    plain.pop("agents")
    plain["detail"] = storable(score.detail)
    plain["decisive"] = storable_text(score.decisive)
    TaskScore.objects.create(
        task_id=task_id,
        project_id=project_id,
        red=min(score.red, _MOST_AGENTS),
        unstable=min(score.unstable, _MOST_AGENTS),
        masked=min(score.masked, _MOST_AGENTS),
        rank=rank_of(score),
        **plain,
    )
    AgentTaskScore.objects.bulk_create(
        [_agent_task(task_id, agents[one.agent], one) for one in score.agents]
    )


def _agent_task(
    task_id: int, agent_id: int, one: EngineAgentTaskScore
) -> AgentTaskScore:
    plain = msgspec.structs.asdict(one)
    del plain["agent"], plain["name"]
    plain["detail"] = storable(one.detail)
    return AgentTaskScore(task_id=task_id, agent_id=agent_id, **plain)


def rank_of(score: EngineTaskScore) -> int:
    """The place of a task among the others: masked, mixed, red agents, unstable, rest.

    Larger stands first. Within one of these the number of trials decides.
    """
    steps = (
        score.masked > 0,
        score.outcome == "mixed",
        score.red > 0,
        score.unstable > 0 or score.consistency in {"drifting", "non_deterministic"},
        score.outcome == "red",
    )
    place = 0
    for is_so in steps:
        place = place * 2 + is_so
    return place * 10_000 + min(score.trials, 9_999)


def drop_task_scores(*, task_ids: Collection[int]) -> None:
    """Drop the scores of tasks, such as of those that have no trials any more."""
    AgentTaskScore.objects.filter(task_id__in=task_ids).delete()
    TaskScore.objects.filter(task_id__in=task_ids).delete()


def take_stale_tasks(*, project_id: int, most: int) -> list[int]:
    """Take up to `most` noted tasks away, for the caller's transaction; their ids.

    What others note meanwhile stays for the next time.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH next AS (
                SELECT DISTINCT task_id FROM (
                    SELECT task_id FROM scoring_staletask
                    WHERE project_id = %s ORDER BY id LIMIT %s
                ) noted LIMIT %s
            )
            DELETE FROM scoring_staletask
            WHERE project_id = %s AND task_id IN (SELECT task_id FROM next)
            RETURNING task_id
            """,
            [project_id, MOST_NOTED, most, project_id],
        )
        return sorted({row[0] for row in cursor.fetchall()})


def take_stale_traces(*, project_id: int, most: int = MOST_NOTED) -> int:
    """Have noted traces scored again, in the caller's transaction; returns how many.

    Traces that others hold are left out, and their notes stay: waiting for them could
    end in a circle with who reads an upload again.
    """
    notes = StaleTrace.objects.filter(project_id=project_id)
    noted = set(notes.order_by("pk").values_list("trace_id", flat=True)[:most])
    if not noted:
        return 0
    free = lock_free_traces(noted)
    held = set(
        Trace.everything.filter(pk__in=noted - free).values_list("pk", flat=True)
    )
    score_again(trace_ids=free)
    notes.filter(trace_id__in=noted - held).delete()
    return len(free)


def has_stale(project_id: int) -> bool:
    """Whether a trace or a task of the project is noted for scoring."""
    return (
        StaleTrace.objects.filter(project_id=project_id).exists()
        or StaleTask.objects.filter(project_id=project_id).exists()
    )
