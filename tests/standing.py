"""What many tests only look at is made once; each takes back what it changes in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from django.db import transaction
from django.test.utils import override_settings
from pytest_django import DjangoDbBlocker

Made = TypeVar("Made")


@contextmanager
def standing(
    make: Callable[[], Made], *, blocker: DjangoDbBlocker, uploads: Path
) -> Iterator[Made]:
    """Keep in the test database what `make` makes there until the block is left.

    It lies in a transaction of which the transactions of the tests are savepoints: a
    test may change it, and the next one finds it as it was made. Once it is made every
    test of its module sees it, so such a module has no test that counts on an empty
    database, and none that commits.

    Args:
        make: Called at once; what it returns is handed out.
        blocker: Opens the test database for `make` and closes it behind it.
        uploads: Where `make` keeps raw uploads. Tests that read them say so too.
    """
    kept = transaction.atomic()
    # As in the tests' own: a transaction that must be the outermost may begin inside.
    kept._from_testcase = True  # type: ignore[attr-defined]
    with blocker.unblock(), kept:
        with override_settings(UPLOADS_DIR=uploads):
            made = make()
        with blocker.block():
            yield made
        transaction.set_rollback(True)
