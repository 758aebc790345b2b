"""Counting what replays say of the agents of a project: three statements.

The newest finished group of each case and regime counts, and the newest memory test,
whatever older ones said. Cases that were put away do not count. An agent that was merged
into another brings its replays along.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import msgspec
from django.db import connection

from apps.engine.masking import AloneEvidence

_OF: Final = """
FROM replays_group g
JOIN replays_batch b ON b.id = g.batch_id AND b.project_id = %s
JOIN agents_agent named ON named.id = b.agent_id
JOIN agents_agentname n ON n.project_id = named.project_id AND n.key = named.key
LEFT JOIN replays_replaycase k ON k.id = g.case_id
"""
_EXECUTED: Final = "('finished', 'failed', 'timed_out', 'stopped')"
_RUNS: Final = f"""
SELECT n.agent_id, count(*), count(DISTINCT g.case_id),
    count(*) FILTER (WHERE r.state <> 'finished'),
    count(*) FILTER (WHERE r.has_breach),
    coalesce(sum(c.held) FILTER (WHERE b.kind = 'replay'), 0),
    coalesce(sum(c.broken) FILTER (WHERE b.kind = 'replay'), 0),
    coalesce(sum(c.undecided) FILTER (WHERE b.kind = 'replay'), 0),
    coalesce(sum(c.not_applying) FILTER (WHERE b.kind = 'replay'), 0)
{_OF} JOIN replays_run r ON r.group_id = g.id AND r.state IN {_EXECUTED}
LEFT JOIN scoring_conduct c ON c.trace_id = r.trace_id AND c.agent_id = n.agent_id
WHERE g.is_newest AND k.is_retired IS NOT TRUE GROUP BY n.agent_id
"""
_GROUPS: Final = f"""
SELECT n.agent_id,
    count(*) FILTER (WHERE a.consistency = 'stable'),
    count(*) FILTER (WHERE a.consistency = 'drifting'),
    count(*) FILTER (WHERE a.consistency = 'non_deterministic'),
    count(*) FILTER (WHERE a.consistency = 'insufficient')
{_OF} JOIN scoring_agenttaskscore a
    ON a.task_id = g.task_id AND a.agent_id = n.agent_id
WHERE g.is_newest AND k.is_retired IS NOT TRUE AND b.kind = 'replay' GROUP BY n.agent_id
"""
_FACTS: Final = f"""
SELECT n.agent_id,
    coalesce(sum((r.judged ->> 'recalled')::int), 0),
    coalesce(sum((r.judged ->> 'lost')::int), 0),
    coalesce(sum((r.judged ->> 'contradicted')::int), 0),
    coalesce(sum((r.judged ->> 'unclear')::int), 0)
{_OF} JOIN replays_run r ON r.group_id = g.id AND r.judged IS NOT NULL
WHERE g.is_newest AND k.is_retired IS NOT TRUE AND b.kind = 'memory' GROUP BY n.agent_id
"""
_COUNTED: Final = (
    (
        _RUNS,
        (
            "runs", "cases", "failed", "breaches",
            "held", "broken", "undecided", "not_applying",
        ),
    ),
    (_GROUPS, ("stable", "drifting", "non_deterministic", "insufficient")),
    (_FACTS, ("recalled", "lost", "contradicted", "unclear")),
)  # fmt: skip


def counted_alone(project_id: int) -> dict[int, AloneEvidence]:
    """What is known from replays of each agent of a project that has any."""
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    for statement, names in _COUNTED:
        with connection.cursor() as cursor:
            cursor.execute(statement, [project_id])
            for agent_id, *counts in cursor.fetchall():
                found[agent_id] |= dict(zip(names, map(int, counts), strict=True))
    return {pk: msgspec.convert(counts, AloneEvidence) for pk, counts in found.items()}
