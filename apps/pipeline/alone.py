"""One worker at a time: a lock of the database connection, which dies with the worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def alone(work: str, number: int) -> Iterator[bool]:
    """Whether nobody else does this work with this number; asks and never waits."""
    key: tuple[str, int] = (work, number)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s), %s)", key)
        is_mine: bool = cursor.fetchone()[0]
    try:
        yield is_mine
    finally:
        if is_mine and not connection.needs_rollback:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtext(%s), %s)", key)
