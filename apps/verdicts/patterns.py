"""Searching the runs of a project for patterns, and keeping what was found.

The runs are read from their scores, the newest 20,000; a search names how many it read
and the moment of the scores it rests on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec
from django.db import connection

from apps.engine.patterns import Patterns, Unit, Value, find_patterns, stored_value
from apps.verdicts.models import PatternSearch, ProjectVerdict

logger = logging.getLogger(__name__)

MOST_UNITS: Final = 20_000
MOST_IDS: Final = 500
PAUSE: Final = timedelta(seconds=60)
"""A project into which traces stream is searched once in this time."""


class Target(StrEnum):
    """What is asked of runs."""

    UNSTABLE = "unstable"
    FAILING = "failing"
    SIGNALLED = "signalled"


_UNSTABLE: Final = """
SELECT c.trace_id || '/' || c.agent_id, 'task ' || t.task_id, c.features,
    a.consistency IN ('drifting', 'non_deterministic'), c.agent_id::text,
    ''
FROM scoring_conduct c
JOIN traces_trace t ON t.id = c.trace_id
JOIN scoring_agenttaskscore a ON a.agent_id = c.agent_id AND a.task_id = t.task_id
WHERE t.project_id = %s AND NOT t.is_replay AND a.consistency <> 'insufficient'
ORDER BY c.trace_id DESC, c.agent_id LIMIT %s
"""
_WHOLE: Final = """
SELECT s.trace_id::text, coalesce('task ' || t.task_id, 'trace ' || t.id), s.features,
    {target}, '', coalesce((
        SELECT CASE
            WHEN (branch ->> 'is_end')::bool THEN 'ended'
            WHEN (branch ->> 'is_straight')::bool THEN 'straight on'
            ELSE coalesce(nullif(branch ->> 'tool', ''), 'no tool') END
        FROM jsonb_array_elements(k.detail -> 'branching' -> 'forks' -> 0 -> 'branches')
            branch
        WHERE branch -> 'trials' ? t.id::text LIMIT 1
    ), 'no fork')
FROM scoring_tracescore s
JOIN traces_trace t ON t.id = s.trace_id
LEFT JOIN scoring_taskscore k ON k.task_id = t.task_id
WHERE s.project_id = %s {known}
ORDER BY s.trace_id DESC LIMIT %s
"""
_STATEMENTS: Final = {
    Target.UNSTABLE: _UNSTABLE,
    Target.FAILING: _WHOLE.format(
        target="s.outcome = 'red'", known="AND s.outcome IN ('green', 'red')"
    ),
    Target.SIGNALLED: _WHOLE.format(target="t.signal_count > 0", known=""),
}


def units_of(project_id: int, target: Target) -> Iterator[Unit]:
    """The runs of a project with their features: one statement, the newest 20,000.

    For unstable ones a run is what one agent did in one trial, elsewhere a trace. That
    the trials of an agent do not agree holds for all of them together.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STATEMENTS[target], [project_id, MOST_UNITS])
        for pk, task, features, hit, together, way in cursor.fetchall():
            found = msgspec.json.decode(features)
            read: dict[str, Value] = {
                name: stored_value(value) for name, value in found.items()
            }
            if way:
                read["first fork"] = way
            yield Unit(id=pk, task=task, features=read, target=hit, together=together)


def search_is_due(project_id: int, *, now: datetime) -> bool:
    """Whether scores were settled since the last search, which is a while ago."""
    settled = ProjectVerdict.objects.filter(project_id=project_id).first()
    if settled is None or settled.settled_at is None:
        return False
    last = PatternSearch.objects.filter(project_id=project_id).order_by("made_at")
    first = last.first()
    if first is None:
        return True
    return first.read_as != _name(settled) and first.made_at <= now - PAUSE


def search_patterns(*, project_id: int, now: datetime) -> int:
    """Search the runs for each target and keep the answers; returns how many rules."""
    settled = ProjectVerdict.objects.filter(project_id=project_id).first()
    if settled is None or settled.settled_at is None:
        return 0
    read_as, rules = _name(settled), 0
    for target in Target:
        found = _found(project_id, target)
        rules += len(found.findings)
        PatternSearch.objects.update_or_create(
            project_id=project_id,
            target=target.value,
            defaults={"read_as": read_as, "found": plain(found), "made_at": now},
        )
    return rules


def _found(project_id: int, target: Target) -> Patterns:
    """What the search found; where it breaks, nothing, with a sentence that says so.

    Unwritten, a search that breaks would be due again and again for ever.
    """
    try:
        return find_patterns(units_of(project_id, target), target=target.value)
    except Exception as error:
        logger.exception("The search for %s runs broke", target)
        nothing = find_patterns((), target=target.value)
        said = (
            f"Evalsite's search broke on these runs ({type(error).__name__}). That is "
            "our fault, and nothing is known of patterns in them."
        )
        return msgspec.structs.replace(nothing, sentence=said)


def _name(settled: ProjectVerdict) -> str:
    return "" if settled.settled_at is None else settled.settled_at.isoformat()


def plain(found: Patterns) -> dict[str, Any]:
    """The answer as JSON; of each rule at most 500 of its runs are named."""
    value: dict[str, Any] = msgspec.to_builtins(found)
    for one, rule in zip(value["findings"], found.findings, strict=True):
        one["inside_words"] = rule.inside.words
        one["outside_words"] = rule.outside.words
        one["hit_ids"] = list(rule.hit_ids[:MOST_IDS])
        one["unit_ids"] = list(rule.unit_ids[:MOST_IDS])
    return value


def pattern_searches(project_id: int) -> dict[str, PatternSearch]:
    """The last search of each target, by its name."""
    rows = PatternSearch.objects.filter(project_id=project_id)
    return {row.target: row for row in rows}
