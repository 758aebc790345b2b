"""How long a run may still take, and whether it shall stop: asked while waiting.

Waiting for leave or for a target's pause is no time of the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from apps.engine.replay.run import ErrorKind, RunError

SLICE: float = 0.1
"""Seconds between two looks at the stop while nothing arrives."""


class CallFailed(Exception):
    """A call did not end well; `error` says why, without secrets."""

    def __init__(self, error: RunError) -> None:
        super().__init__(error.sentence)
        self.error = error


def failed(kind: ErrorKind, sentence: str) -> CallFailed:
    """The exception for an error of this kind."""
    return CallFailed(RunError(kind=kind, sentence=sentence))


class RunTime:
    """The time of one run, from its making on."""

    def __init__(
        self,
        seconds: float,
        *,
        stop: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = seconds
        self._stop = stop
        self._clock = clock
        self._ends = clock() + seconds
        self._look_at = clock()

    @property
    def left(self) -> float:
        """The seconds that are left; below 0 when they are over."""
        return self._ends - self._clock()

    def check(self) -> None:
        """Raise `CallFailed` when the run shall stop or its time is over."""
        now = self._clock()
        # A fast stream asks thousands of times a second; whoever stops need not.
        if now >= self._look_at:
            self._look_at = now + SLICE
            if self._stop():
                raise failed(ErrorKind.CANCELLED, "The run was cancelled.")
        if self.left <= 0:
            raise failed(
                ErrorKind.TIMED_OUT, f"Timeout after {self.seconds:,.6g} seconds."
            )

    def slice(self) -> float:
        """Seconds to wait before the next look at the stop; raises as `check` does."""
        self.check()
        return max(0.001, min(SLICE, self.left))

    def pause(self, seconds: float) -> None:
        """Wait; it takes nothing of the run's time. Raises when the run shall stop."""
        until = self._clock() + seconds
        with self.not_counted():
            while (rest := until - self._clock()) > 0:
                if self._stop():
                    raise failed(ErrorKind.CANCELLED, "The run was cancelled.")
                time.sleep(min(SLICE, rest))

    @contextmanager
    def not_counted(self) -> Iterator[None]:
        """What happens inside takes nothing of the run's time."""
        began = self._clock()
        try:
            yield
        finally:
            self._ends += self._clock() - began
