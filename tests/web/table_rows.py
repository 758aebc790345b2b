"""What stands in the database, to tell whether anything was written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import connection


def rows_of_all_tables() -> dict[str, tuple[int, str]]:
    """How many rows each table has, and a hash of what stands in them.

    Without the sessions, which change when somebody looks.
    """
    models = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model is not Session
    ]
    tables = [
        f"SELECT '{model._meta.label}', count(*),"  # noqa: S608 - names of models
        f" md5(string_agg(t::text, '|' ORDER BY t::text))"
        f" FROM {connection.ops.quote_name(model._meta.db_table)} AS t"
        for model in models
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(tables))
        return {label: (count, digest) for label, count, digest in cursor.fetchall()}


Named = set[tuple[str, str]]
"""Labels of tables, each with a statement that names it."""


@contextmanager
def tables_read() -> Iterator[Named]:
    """Collect each table that is named in a statement of the block, with the statement.

    A statement is its text without its values.
    """
    labels = {
        model._meta.db_table: model._meta.label
        for model in apps.get_models(include_auto_created=True)
    }
    any_table = re.compile(rf"\b(?:{'|'.join(map(re.escape, labels))})\b")
    found: Named = set()

    def note(execute, sql, *more):
        text = sql if isinstance(sql, str) else sql.as_string(connection.connection)
        found.update((labels[table], text) for table in any_table.findall(text))
        return execute(sql, *more)

    with connection.execute_wrapper(note):
        yield found
