"""Counting what is known of the agents of a project: a fixed number of statements."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import msgspec
from django.db import connection

from apps.engine.masking import AloneEvidence, Masked, OutcomeCounts
from apps.verdicts.alone import counted_alone

MOST_TOOLS: Final = 100

_CONDUCTS: Final = """
SELECT c.agent_id, count(*), count(DISTINCT t.task_id),
    sum(c.invocations), sum(c.failures), sum(c.held), sum(c.broken), sum(c.undecided),
    sum(c.not_applying), sum(c.recalled), sum(c.lost), sum(c.contradicted),
    sum(c.findings),
    count(*) FILTER (WHERE s.outcome = 'green'),
    count(*) FILTER (WHERE c.is_masked),
    count(*) FILTER (WHERE s.outcome = 'green' AND c.colour = 'unknown')
FROM scoring_conduct c
JOIN scoring_tracescore s ON s.trace_id = c.trace_id
JOIN traces_trace t ON t.id = c.trace_id
WHERE s.project_id = %s GROUP BY c.agent_id
"""
_TASKS: Final = """
SELECT a.agent_id,
    count(*) FILTER (WHERE a.consistency = 'stable'),
    count(*) FILTER (WHERE a.consistency = 'drifting'),
    count(*) FILTER (WHERE a.consistency = 'non_deterministic'),
    count(*) FILTER (WHERE a.consistency = 'insufficient'),
    count(*) FILTER (WHERE a.is_stable_but_wrong),
    count(*) FILTER (WHERE s.outcome = 'green'),
    count(*) FILTER (WHERE s.outcome = 'green' AND a.colour = 'red'),
    count(*) FILTER (WHERE s.outcome = 'green' AND a.colour = 'unstable'),
    count(*) FILTER (WHERE s.outcome = 'green' AND a.colour = 'unknown')
FROM scoring_agenttaskscore a JOIN scoring_taskscore s ON s.task_id = a.task_id
WHERE s.project_id = %s GROUP BY a.agent_id
"""
_CONTRACTS: Final = """
SELECT c.agent_id, one.place - 1, sum((one.value ->> 'held')::int),
    sum((one.value ->> 'broken')::int), sum((one.value ->> 'undecided')::int),
    sum((one.value ->> 'not_applying')::int),
    max(c.trace_id) FILTER (WHERE (one.value ->> 'broken')::int > 0)
FROM scoring_conduct c
JOIN scoring_tracescore s ON s.trace_id = c.trace_id
CROSS JOIN LATERAL jsonb_array_elements(c.judged) WITH ORDINALITY one (value, place)
WHERE s.project_id = %s AND c.judged <> '[]' GROUP BY c.agent_id, one.place
ORDER BY c.agent_id, one.place
"""
_TOOLS: Final = """
SELECT c.agent_id, one.key, sum(one.value::bigint), count(*)
FROM scoring_conduct c
JOIN scoring_tracescore s ON s.trace_id = c.trace_id
CROSS JOIN LATERAL jsonb_each_text(c.tools) one
WHERE s.project_id = %s AND c.tools <> '{}' GROUP BY c.agent_id, one.key
ORDER BY c.agent_id, sum(one.value::bigint) DESC, one.key
"""
_MODELS: Final = """
SELECT c.agent_id, one.value, count(*)
FROM scoring_conduct c
JOIN scoring_tracescore s ON s.trace_id = c.trace_id
CROSS JOIN LATERAL jsonb_array_elements_text(c.models_used) one
WHERE s.project_id = %s AND c.models_used <> '[]' GROUP BY c.agent_id, one.value
ORDER BY c.agent_id, count(*) DESC, one.value
"""
_OUTCOMES: Final = """
SELECT count(*) FILTER (WHERE outcome = 'green'),
    count(*) FILTER (WHERE outcome = 'red'), count(*) FILTER (WHERE is_gap), count(*)
FROM {table} WHERE project_id = %s
"""
_EVIDENCE: Final = (
    "traces", "tasks", "invocations", "failed", "held", "broken", "undecided",
    "not_applying", "recalled", "lost", "contradicted", "findings",
)  # fmt: skip
_STABILITY: Final = (
    "stable", "drifting", "non_deterministic", "insufficient", "stable_but_wrong",
)  # fmt: skip


class CountedContract(msgspec.Struct, frozen=True):
    """What one contract, by its place in the list, says of all invocations.

    `broken_trace` is the newest trace in which it broke.
    """

    place: int
    held: int
    broken: int
    undecided: int
    not_applying: int
    broken_trace: int | None


class CountedAgent(msgspec.Struct):
    """What is known of one agent: `evidence` are fields of `AgentEvidence`, recorded.

    `tools` are name, calls and traces, `models` name and traces, the most used first.
    """

    evidence: dict[str, int] = msgspec.field(default_factory=dict)
    alone: AloneEvidence = AloneEvidence()
    traces: Masked = Masked()
    tasks: Masked = Masked()
    contracts: list[CountedContract] = msgspec.field(default_factory=list)
    tools: list[tuple[str, int, int]] = msgspec.field(default_factory=list)
    models: list[tuple[str, int]] = msgspec.field(default_factory=list)


class CountedOutcomes(msgspec.Struct, frozen=True):
    """The outcomes of the traces or tasks of a project; `n` counts the unknown too."""

    counts: OutcomeCounts
    n: int


def counted_agents(project_id: int) -> dict[int, CountedAgent]:
    """What is known of every agent that acts in a trace or a replay: eight statements."""
    found: dict[int, CountedAgent] = defaultdict(CountedAgent)
    for agent_id, *row in _rows(_CONDUCTS, project_id):
        *evidence, passed, masked, unknown = map(int, row)
        found[agent_id].evidence |= dict(zip(_EVIDENCE, evidence, strict=True))
        found[agent_id].traces = Masked(red=masked, passed=passed, unknown=unknown)
    for agent_id, *row in _rows(_TASKS, project_id):
        *stability, passed, red, unstable, unknown = map(int, row)
        found[agent_id].evidence |= dict(zip(_STABILITY, stability, strict=True))
        found[agent_id].tasks = Masked(
            red=red, unstable=unstable, passed=passed, unknown=unknown
        )
    for agent_id, *row in _rows(_CONTRACTS, project_id):
        found[agent_id].contracts.append(CountedContract(*row))
    for agent_id, name, calls, traces in _rows(_TOOLS, project_id):
        if len(found[agent_id].tools) < MOST_TOOLS:
            found[agent_id].tools.append((name, int(calls), traces))
    for agent_id, name, traces in _rows(_MODELS, project_id):
        found[agent_id].models.append((name, traces))
    for agent_id, alone in counted_alone(project_id).items():
        found[agent_id].alone = alone
    return dict(found)


def counted_outcomes(project_id: int) -> tuple[CountedOutcomes, CountedOutcomes]:
    """The outcomes of the traces and of the tasks of a project: two statements."""
    of_traces, of_tasks = (
        next(iter(_rows(_OUTCOMES.format(table=table), project_id)))
        for table in ("scoring_tracescore", "scoring_taskscore")
    )
    return _outcomes(of_traces), _outcomes(of_tasks)


def _outcomes(row: tuple[Any, ...]) -> CountedOutcomes:
    passed, failed, all_green, n = row
    return CountedOutcomes(OutcomeCounts(passed, failed, all_green), n)


def _rows(statement: str, project_id: int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [project_id])
        return list(cursor.fetchall())
