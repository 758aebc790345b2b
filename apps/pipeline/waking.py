"""Waking a worker. The row in PostgreSQL is the job; a message only says that it is there.

When the broker is away nothing is lost: the tasks of the clock find what waits.
"""

from __future__ import annotations

import logging
from functools import partial

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)


def wake(task: str, **ids: int) -> None:
    """Send the message of a task with its ids; only a log says that the broker is away."""
    try:
        current_app.send_task(task, kwargs=ids)
    except OperationalError:
        logger.warning("The broker is away; %s with %s waits", task, ids)


def wake_on_commit(task: str, **ids: int) -> None:
    """As `wake`, once the transaction has committed."""
    transaction.on_commit(partial(wake, task, **ids))
