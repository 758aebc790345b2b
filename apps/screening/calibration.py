"""How often one key of a check fired, in groups of traces found from the data.

Everything is counted by the database, in a number of statements that does not grow
with the traces or groups. Groups overlap: a trace has many traits. Nothing here knows
whether firing was right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec
from django.db import connection
from django.db.models import Count, Q

from apps.accounts.models import Project
from apps.engine.check import Answer, Level
from apps.engine.nulls import Association
from apps.screening.lineup import CheckKey
from apps.screening.models import Screening
from apps.screening.queries import association_of

LARGEST: Final = 20
LATEST: Final = 60
DOMAIN_KEYS: Final = (
    "domain",
    "environment",
    "env",
    "dataset",
    "benchmark",
    "suite",
    "split",
)


class GroupKind(StrEnum):
    """By what traces are put together."""

    ALL = "all"
    TRAIT = "trait"
    MODEL = "model"
    AGENT = "agent"
    DOMAIN = "domain"
    FORMAT = "format"
    UPLOAD = "upload"
    SET = "set"
    DAY = "day"
    WEEK = "week"


# What each kind adds to the lateral list of groups of one row: `t` is the trace, `u`
# its upload, `s` the answer or what stands for it.
_MEMBERS: Final[dict[GroupKind, str]] = {
    GroupKind.ALL: "SELECT 'all', ''",
    GroupKind.TRAIT: "SELECT 'trait', unnest(t.traits)",
    GroupKind.MODEL: "SELECT 'model', unnest(t.models_seen)",
    GroupKind.AGENT: "SELECT 'agent', s.agent WHERE s.agent <> ''",
    GroupKind.DOMAIN: """
        SELECT 'domain', entry.key || ': ' || left(entry.value #>> '{}', 120)
        FROM jsonb_each(t.metadata) AS entry
        WHERE lower(entry.key) = ANY(%(domains)s)
            AND jsonb_typeof(entry.value) = 'string'""",
    GroupKind.FORMAT: "SELECT 'format', t.format",
    GroupKind.UPLOAD: "SELECT 'upload', t.upload_id::text",
    GroupKind.SET: """
        SELECT 'set', member.trace_set_id::text FROM traces_tracesetmember AS member
        WHERE member.trace_id = t.id""",
    GroupKind.DAY: (
        "SELECT 'day', to_char(u.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
    ),
    GroupKind.WEEK: """
        SELECT 'week',
            to_char(date_trunc('week', u.created_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD')
        """,
}
IN_TIME: Final = (GroupKind.DAY, GroupKind.WEEK, GroupKind.UPLOAD)

KEYS: Final = """
    SELECT * FROM unnest(%(slugs)s::text[], %(versions)s::int[], %(hashes)s::text[])
        AS key (check_slug, check_version, parameters_hash)"""

ON_KEY: Final = """
    s.check_slug = key.check_slug AND s.check_version = key.check_version
    AND s.parameters_hash = key.parameters_hash"""


def members_of(kinds: Iterable[GroupKind]) -> str:
    """The lateral list `g (kind, name)` of the groups to which a row belongs."""
    parts = " UNION ALL ".join(_MEMBERS[kind] for kind in kinds)
    return f"CROSS JOIN LATERAL ({parts}) AS g (kind, name)"


def values_of(project: Project, keys: Sequence[CheckKey]) -> dict[str, Any]:
    """What the statements here are asked with."""
    return {
        "project": project.pk,
        "slugs": [key[0] for key in keys],
        "versions": [key[1] for key in keys],
        "hashes": [key[2] for key in keys],
        "domains": list(DOMAIN_KEYS),
        "largest": LARGEST,
        "latest": LATEST,
    }


def rows_of(statement: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of one statement by the names of their columns."""
    with connection.cursor() as cursor:
        cursor.execute(statement, dict(values))
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


class KeyAnswers(msgspec.Struct, frozen=True):
    """One version with its parameters that has ever answered, and how often."""

    key: CheckKey
    signals: int
    queued: int
    quiet: int
    not_applicable: int

    @property
    def applicable(self) -> int:
        """Answers that are signal or quiet."""
        return self.signals + self.quiet


def keys_that_answered(*, project: Project, check_slug: str) -> list[KeyAnswers]:
    """Every key of a check with answers in this project, the newest version first."""
    fired = Q(answer=Answer.SIGNAL)
    rows = (
        Screening.objects.filter(project=project, check_slug=check_slug)
        .order_by()
        .values("check_version", "parameters_hash")
        .annotate(
            signals=Count("id", filter=fired),
            queued=Count("id", filter=fired & Q(level=Level.REVIEW_SIGNAL)),
            quiet=Count("id", filter=Q(answer=Answer.QUIET)),
            not_applicable=Count("id", filter=Q(answer=Answer.NOT_APPLICABLE)),
        )
        .order_by("-check_version", "parameters_hash")
    )
    return [
        KeyAnswers(
            key=(check_slug, row["check_version"], row["parameters_hash"]),
            signals=row["signals"],
            queued=row["queued"],
            quiet=row["quiet"],
            not_applicable=row["not_applicable"],
        )
        for row in rows
    ]


def parameters_of(*, project: Project, key: CheckKey) -> dict[str, Any]:
    """The parameters that stand in the answers of a key; empty without any."""
    slug, version, parameters = key
    evidence = (
        Screening.objects.filter(
            project=project,
            check_slug=slug,
            check_version=version,
            parameters_hash=parameters,
        )
        .values_list("evidence__parameters", flat=True)
        .first()
    )
    return evidence or {}


class GroupRate(msgspec.Struct, frozen=True):
    """How often a key fired in one group of traces.

    `signals` of `applicable` answers are signals of any level, `queued` of them are
    review signals. Of one kind only the largest groups are listed, of those in time
    the latest; `of_kind` is how many there are.
    """

    kind: GroupKind
    name: str
    applicable: int
    signals: int
    queued: int
    of_kind: int


_RATES: Final = f"""
WITH key AS ({KEYS}
), counted AS (
    SELECT s.check_version, s.parameters_hash, g.kind, g.name,
        COUNT(*) AS applicable,
        COUNT(*) FILTER (WHERE s.answer = 'signal') AS signals,
        COUNT(*) FILTER (WHERE s.answer = 'signal' AND s.level = 'review_signal')
            AS queued,
        MAX(t.upload_id) AS last_upload
    FROM key
    JOIN screening_screening AS s ON {ON_KEY}
    JOIN traces_trace AS t ON t.id = s.trace_id
    JOIN traces_upload AS u ON u.id = t.upload_id
    {members_of(GroupKind)}
    WHERE s.project_id = %(project)s AND s.answer <> 'not_applicable'
    GROUP BY 1, 2, 3, 4
), placed AS (
    SELECT *,
        ROW_NUMBER() OVER (PARTITION BY check_version, parameters_hash, kind
            ORDER BY applicable DESC, name) AS by_size,
        ROW_NUMBER() OVER (PARTITION BY check_version, parameters_hash, kind
            ORDER BY last_upload DESC, name DESC) AS by_time,
        COUNT(*) OVER (PARTITION BY check_version, parameters_hash, kind) AS of_kind
    FROM counted
)
SELECT check_version, parameters_hash, kind, name, applicable, signals, queued, of_kind
FROM placed
WHERE CASE WHEN kind IN ('day', 'week', 'upload') THEN by_time <= %(latest)s
    ELSE by_size <= %(largest)s END
ORDER BY check_version, parameters_hash, kind, by_size
"""  # noqa: S608 - made of the constants above


def rates_of(
    *, project: Project, keys: Sequence[CheckKey]
) -> dict[CheckKey, list[GroupRate]]:
    """How often each of `keys` (of one check) fired in each group: one statement.

    Each kind is ordered by the number of answers, the largest first.
    """
    found: dict[CheckKey, list[GroupRate]] = {key: [] for key in keys}
    for row in rows_of(_RATES, values_of(project, keys)):
        key = (keys[0][0], row.pop("check_version"), row.pop("parameters_hash"))
        found[key].append(GroupRate(**{**row, "kind": GroupKind(row["kind"])}))
    return found


_OUTCOMES: Final = f"""
WITH key AS ({KEYS}
), answered AS (
    SELECT s.trace_id, bool_or(s.answer = 'signal') AS fired
    FROM key JOIN screening_screening AS s ON {ON_KEY}
    WHERE s.project_id = %(project)s AND s.answer <> 'not_applicable'
    GROUP BY s.trace_id
)
SELECT g.kind, g.name, COUNT(*) AS traces,
    COUNT(*) FILTER (WHERE t.outcome = 'pass') AS passed,
    COUNT(*) FILTER (WHERE answered.fired) AS fired,
    COUNT(*) FILTER (WHERE answered.fired AND t.outcome = 'pass') AS fired_passed,
    COUNT(DISTINCT t.task_id) AS tasks,
    COUNT(*) FILTER (WHERE t.task_id IS NULL) AS without_task
FROM answered
JOIN traces_trace AS t ON t.id = answered.trace_id
{members_of([GroupKind.ALL, GroupKind.MODEL, GroupKind.DOMAIN, GroupKind.FORMAT])}
WHERE t.outcome IN ('pass', 'fail')
GROUP BY 1, 2
ORDER BY 1, 3 DESC, 2
"""  # noqa: S608 - made of the constants above


def outcomes_of(
    *, project: Project, key: CheckKey
) -> list[tuple[GroupKind, str, Association]]:
    """How firing goes with passing: over all traces, by model, domain and format.

    One statement. A trace fired if any of its sequences did; only traces count that
    the key could answer about and that passed or failed.
    """
    return [
        (GroupKind(row["kind"]), row["name"], association_of(row))
        for row in rows_of(_OUTCOMES, values_of(project, [key]))
    ]
