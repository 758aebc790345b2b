"""Watches over one run while it is at work: holds its lease, sees when it is to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import DatabaseError, InterfaceError, connection

from apps.replays.running import LostRun, RunClaim, batch_state, renew_claim
from apps.replays.transitions import BatchState

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
"""So often the row of a run is looked at, so that a cancelled one stops within two."""


class Watch:
    """What is known of a claimed run; `stop` may be asked from every thread at any time.

    `is_lost` says that the run is another's or has ended, so that nothing is written.
    """

    def __init__(self) -> None:
        self.is_lost = False
        self.state = BatchState.RUNNING
        self._stopped = threading.Event()

    def stop(self) -> bool:
        """Whether the run is to stop: cancelled, over a cap, or another's by now."""
        return self._stopped.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for so long or until it is to stop; whether it is."""
        return self._stopped.wait(seconds)

    def lose(self) -> None:
        """The run is another's."""
        self.is_lost = True
        self._stopped.set()

    def see(self, state: BatchState) -> None:
        """The batch stands so at this moment."""
        self.state = state
        if state is not BatchState.RUNNING:
            self._stopped.set()


@contextmanager
def watched(claim: RunClaim) -> Iterator[Watch]:
    """Watch a claimed run from a thread of its own until the block ends.

    The lease is renewed every quarter of it. A database that is away is no reason to
    stop: what is written later is refused if the run was given to another meanwhile.
    """
    watch, ended = Watch(), threading.Event()
    thread = threading.Thread(
        target=_look_again, args=(claim, watch, ended), daemon=True
    )
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()


def _look_again(claim: RunClaim, watch: Watch, ended: threading.Event) -> None:
    pause = min(LOOK_SECONDS, claim.lease_seconds / 4)
    looks_per_lease = max(1, int(claim.lease_seconds / 4 / pause))
    looks = 0
    try:
        while not ended.wait(pause) and not watch.is_lost:
            looks += 1
            _look(claim, watch, renews=looks % looks_per_lease == 0)
    finally:
        connection.close()


def _look(claim: RunClaim, watch: Watch, *, renews: bool) -> None:
    try:
        watch.see(batch_state(claim))
        if renews:
            renew_claim(claim)
    except LostRun:
        watch.lose()
    except (DatabaseError, InterfaceError):
        # The next look may reach the database again.
        connection.close()
        logger.warning("Run %s could not be looked at", claim.run_id)
