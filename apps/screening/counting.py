"""Keeping the counts of answers few: what triggers added row by row becomes one sum."""

from __future__ import annotations

from typing import Final

from django.db import connection

from apps.screening.models import AnswerCount

MOST_ROWS: Final = 2_000

_COLUMNS: Final = (
    "project_id, check_slug, check_version, parameters_hash, answer, level, "
    "reason_code, chance_of_signal"
)
# One statement: whoever reads meanwhile sees all rows as they were, or the sums.
_SUM_UP: Final = f"""
WITH taken AS (
    DELETE FROM screening_answercount WHERE project_id = %s RETURNING *
)
INSERT INTO screening_answercount ({_COLUMNS}, count)
SELECT {_COLUMNS}, sum(count) FROM taken GROUP BY {_COLUMNS} HAVING sum(count) <> 0
"""  # noqa: S608 - no value comes from outside


def sum_up(*, project_id: int) -> int:
    """Make sums of the counts of a project where they are many; how many rows are left.

    What others add meanwhile stays beside them. Safe to run twice and at once.
    """
    count = AnswerCount.objects.filter(project_id=project_id).count()
    if count <= MOST_ROWS:
        return count
    with connection.cursor() as cursor:
        cursor.execute(_SUM_UP, [project_id])
        return int(cursor.rowcount)
