"""The place of signals in the queue: their chance, corrected for the number looked at.

Among many answers some are rare by chance. The q of a signal says which share of the
signals that are at least as rare chance alone would explain (Benjamini and Hochberg
1995), over all applicable answers of the current key of its check in its project. A
quiet one is a test that found nothing: its own chance may be that of the other direction,
which was chosen after the answer was known and must not count as a small p.
"""

from __future__ import annotations

from typing import Any, Final

from django.db import connection, transaction

from apps.review.models import Signal
from apps.review.transitions import SignalState
from apps.screening.lineup import LineUp, lineup_of
from apps.screening.operations import StoredScreening

FACT_RANK: Final = 0.05
"""A fact has no q: it comes after the signals with a q of at most 5 %."""

# Only rows that change are locked, in the order of their ids as everybody does it.
_RANK: Final = """
WITH current AS (
    SELECT * FROM unnest(%(slugs)s::text[], %(versions)s::int[], %(hashes)s::text[])
        AS key (check_slug, check_version, parameters_hash)
), numbers AS (
    SELECT check_slug,
        CASE WHEN answer = 'signal' THEN COALESCE(chance, 1) ELSE 1 END AS p,
        COUNT(*) AS number
    FROM screening_screening JOIN current
        USING (check_slug, check_version, parameters_hash)
    WHERE project_id = %(project)s AND answer <> 'not_applicable'
        AND chance_of_signal IS NOT NULL
    GROUP BY 1, 2
), counted AS (
    SELECT check_slug, p,
        SUM(number) OVER (PARTITION BY check_slug)::float8 AS tests,
        SUM(number) OVER (PARTITION BY check_slug ORDER BY p)::float8 AS place
    FROM numbers
), corrected AS (
    SELECT check_slug, p,
        MIN(LEAST(1, p * tests / place)) OVER (
            PARTITION BY check_slug ORDER BY p DESC ROWS UNBOUNDED PRECEDING
        ) AS q
    FROM counted
), ranked AS (
    SELECT signal.id, corrected.q, COALESCE(corrected.q, %(fact)s) AS rank
    FROM review_signal AS signal
    JOIN screening_screening AS answer ON answer.id = signal.screening_id
    JOIN current ON current.check_slug = answer.check_slug
        AND current.check_version = answer.check_version
        AND current.parameters_hash = answer.parameters_hash
    LEFT JOIN corrected ON corrected.check_slug = answer.check_slug
        AND answer.chance_of_signal IS NOT NULL
        AND corrected.p =
            CASE WHEN answer.answer = 'signal' THEN COALESCE(answer.chance, 1) ELSE 1 END
    WHERE signal.project_id = %(project)s
        AND (signal.q IS DISTINCT FROM corrected.q
            OR signal.rank IS DISTINCT FROM COALESCE(corrected.q, %(fact)s))
), locked AS MATERIALIZED (
    SELECT id FROM review_signal WHERE id IN (SELECT id FROM ranked)
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE review_signal AS signal SET q = ranked.q, rank = ranked.rank
FROM ranked JOIN locked USING (id) WHERE signal.id = ranked.id
"""


def rank_signals(project_id: int, lineup: LineUp) -> int:
    """Give the signals of the current keys their q and rank; returns how many changed.

    One statement. Safe to run at any time, twice, and beside reviewers: what they hold
    or decided is not touched but for these two columns.
    """
    keys = [entry.key for entry in lineup.entries]
    values: dict[str, Any] = {
        "project": project_id,
        "fact": FACT_RANK,
        "slugs": [key[0] for key in keys],
        "versions": [key[1] for key in keys],
        "hashes": [key[2] for key in keys],
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_RANK, values)
        return int(cursor.rowcount)


def is_unranked(project_id: int, lineup: LineUp) -> bool:
    """Whether a signal that waits has no q yet, though its check has a null model.

    So it is when whoever stored it was killed before the ranking.
    """
    waiting = Signal.objects.filter(
        lineup.current("screening__"),
        project_id=project_id,
        state__in=[SignalState.OPEN, SignalState.CLAIMED],
        q=None,
        chance__lt=1,
        screening__chance_of_signal__isnull=False,
    )
    return waiting.exists()


def rank_all(project_id: int) -> int:
    """Rank the signals of a project by the line-up that it has now."""
    return rank_signals(project_id, lineup_of(project_id))


def first_rank(item: StoredScreening) -> float:
    """Where a new signal stands until the next ranking: at its chance, or as a fact."""
    evidence = item.screening.evidence
    if evidence.chance is None or evidence.chance_of_signal is None:
        return FACT_RANK
    return evidence.chance.value
