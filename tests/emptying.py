"""Empties the tables that a test has filled; the others are left in peace.

Django empties a database by truncating each of its tables, which makes new files for
every table and index. After a test a few dozen rows lie in a few tables.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.core.management.commands import flush
from django.db import connection
from django.db.backends.postgresql.operations import DatabaseOperations

_KEPT = {"django_content_type", "auth_permission"}
"""What `migrate` writes for the code as it is, and no test changes."""

_GUARDED = """
SELECT DISTINCT relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE NOT tgisinternal AND relname = ANY(%s)
"""


def empty_quickly(patch: pytest.MonkeyPatch) -> None:
    """Let `flush`, which ends every test that commits, empty what is filled alone."""
    patch.setattr(DatabaseOperations, "sql_flush", statements)
    # It would write what is kept anew.
    patch.setattr(flush, "emit_post_migrate_signal", lambda *_, **__: None)


def statements(
    operations: DatabaseOperations, _style: object, tables: Iterable[str], **_: object
) -> list[str]:
    """Return the statements of one transaction that empty those of `tables` with rows.

    Triggers of ours, which forbid or count what goes, are off meanwhile. References are
    checked at the end, when everything is gone.
    """
    quoted = operations.quote_name
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join(
                f"SELECT '{name}' WHERE EXISTS (SELECT FROM {quoted(name)})"  # noqa: S608
                for name in sorted(set(tables) - _KEPT)
            )
        )
        filled = [name for (name,) in cursor.fetchall()]
        cursor.execute(_GUARDED, [filled])
        guarded = [name for (name,) in cursor.fetchall()]
    return [
        *(f"ALTER TABLE {quoted(name)} DISABLE TRIGGER USER" for name in guarded),
        *(f"DELETE FROM {quoted(name)}" for name in filled),  # noqa: S608
        "SET CONSTRAINTS ALL IMMEDIATE",
        *(f"ALTER TABLE {quoted(name)} ENABLE TRIGGER USER" for name in guarded),
    ]
