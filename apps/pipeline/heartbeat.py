"""Keeps a claim alive while its worker is busy with one long record."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connection

from apps.traces.operations import Claim, LostClaim, renew_claim

logger = logging.getLogger(__name__)

# A reader that hangs must lose its claim some day, or nobody could take over.
LONGEST_SECONDS = 3_600


@contextmanager
def kept_alive(claim: Claim) -> Iterator[None]:
    """Renew `claim` from a thread of its own, every quarter of its lease.

    A lost claim is not raised here: the next write of the reader is refused by the
    attempt number. Gives up after an hour.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_beat, args=(claim, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _beat(claim: Claim, ended: threading.Event) -> None:
    pause = claim.lease_seconds / 4
    try:
        for _ in range(int(LONGEST_SECONDS / pause)):
            if ended.wait(pause):
                return
            _renew(claim)
    except LostClaim:
        return
    finally:
        connection.close()


def _renew(claim: Claim) -> None:
    try:
        renew_claim(claim)
    except DatabaseError:
        # The next beat may reach the database again.
        connection.close()
        logger.warning("The claim on upload %s could not be renewed", claim.upload_id)
