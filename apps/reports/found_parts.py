"""Memory and patterns in a report: what became of facts, which rules beat chance."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any, Final

from django.db import connection

from apps.engine.memory import State
from apps.reports.assessment import (
    LossPart,
    MemoriesPart,
    MemoryPart,
    PatternPart,
    RulePart,
)
from apps.reports.inert import one_line
from apps.reports.rates import Rate, rate_of
from apps.reports.words import utc
from apps.verdicts.models import PatternSearch

MAX_FACTS: Final = 50
MAX_LOSSES: Final = 30
MAX_RULES: Final = 20
_MAX_NEAR: Final = 3

_COUNTED: Final = """
SELECT one.value ->> 'source',
    CASE WHEN one.value ->> 'source' = 'declared' THEN one.value ->> 'fact' ELSE '' END,
    one.value ->> 'state', coalesce(one.value ->> 'place', ''), count(*)
FROM scoring_tracescore s CROSS JOIN LATERAL jsonb_array_elements(s.recalls) one
WHERE s.project_id = %s AND s.recalls <> '[]'
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""
_TRACES: Final = """
SELECT count(*) FROM scoring_tracescore s WHERE s.project_id = %s AND s.recalls @?
    '$[*] ? (@.state == "recalled" || @.state == "lost" || @.state == "contradicted")'
"""
_LOST: Final = """
SELECT t.id, t.name, t.trial, one.value ->> 'source', one.value ->> 'fact',
    one.value ->> 'state', one.value ->> 'sentence',
    coalesce(one.value ->> 'place', ''), coalesce(one.value ->> 'why', '')
FROM scoring_tracescore s
JOIN traces_trace t ON t.id = s.trace_id
CROSS JOIN LATERAL jsonb_array_elements(s.recalls) WITH ORDINALITY one (value, place)
WHERE s.project_id = %s AND s.recalls <> '[]'
    AND one.value ->> 'state' IN ('lost', 'contradicted')
ORDER BY one.value ->> 'source' = 'declared' DESC, s.trace_id DESC, one.place
LIMIT %s
"""


def _with_trial(name: str, trial: int | None) -> str:
    """The name of a trace with its trial, unless the name ends with that itself."""
    ending = "" if trial is None else f"trial {trial}"
    return name if name.endswith(ending) else f"{name}, {ending}"


def memories_of(project_id: int) -> MemoriesPart:
    """What became of facts over the project: three queries."""
    by_fact: dict[tuple[str, str], list[tuple[str, str, int]]] = defaultdict(list)
    for source, fact, state, place, count in _rows(_COUNTED, project_id):
        by_fact[source, fact].append((state, place, count))
    facts = [_memory(key, rows) for key, rows in by_fact.items()]
    [[traces]] = _rows(_TRACES, project_id)
    return MemoriesPart(
        traces=traces,
        facts=tuple(facts[:MAX_FACTS]),
        facts_left_out=max(0, len(facts) - MAX_FACTS),
        losses=tuple(
            LossPart(
                trace_id=pk,
                trace=one_line(_with_trial(name, trial), limit=240),
                source=source,
                fact=one_line(fact, limit=200),
                state=state,
                sentence=one_line(sentence, limit=600),
                place=place,
                why=one_line(why, limit=600),
            )
            for pk, name, trial, source, fact, state, sentence, place, why in _rows(
                _LOST, project_id, MAX_LOSSES
            )
        ),
    )


def _memory(key: tuple[str, str], rows: list[tuple[str, str, int]]) -> MemoryPart:
    states: dict[str, int] = defaultdict(int)
    places: dict[str, int] = defaultdict(int)
    for state, place, count in rows:
        states[state] += count
        if place:
            places[place] += count
    recalled, lost, contradicted = (
        states.pop(one.value, 0)
        for one in (State.RECALLED, State.LOST, State.CONTRADICTED)
    )
    source, fact = key
    return MemoryPart(
        source=source,
        fact=one_line(fact, limit=200),
        recalled=rate_of(recalled, recalled + lost + contradicted),
        lost=lost,
        contradicted=contradicted,
        others=dict(states),
        places=dict(places),
    )


def _rows(statement: str, *values: int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(values))
        return list(cursor.fetchall())


def patterns_of(
    project_id: int, settled_at: datetime | None
) -> tuple[PatternPart, ...]:
    """What the last search of each target found: one query."""
    read_as = "" if settled_at is None else settled_at.isoformat()
    rows = PatternSearch.objects.filter(project_id=project_id).order_by("target")
    return tuple(
        PatternPart(
            target=row.target,
            sentence=one_line(row.found["sentence"], limit=600),
            rules=tuple(_rule(one) for one in row.found["findings"][:MAX_RULES]),
            made_at=utc(row.made_at),
            is_current=row.read_as == read_as,
        )
        for row in rows
    )


def _rule(one: dict[str, Any]) -> RulePart:
    return RulePart(
        words=one_line(one["words"], limit=400),
        inside=_share(one["inside"]),
        outside=_share(one["outside"]),
        lift=one["lift"],
        p=one["p"],
        is_smallest_p=one["p"] <= one["smallest_p"],
        tasks=one["tasks"],
        near=tuple(
            one_line(near["words"], limit=300) for near in one["near"][:_MAX_NEAR]
        ),
    )


def _share(found: dict[str, int]) -> Rate:
    return rate_of(found["hits"], found["of"])
