"""Keeps children alive: starts them again when they die, and stops them in order.

It knows nothing of what the children do. A child that dies again and again right after
its start is given up with a sentence, because restarting it for ever would hide why.
"""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from evalsite.processes import (
    CannotStart,
    Process,
    ProcessPlan,
    rotate_log,
    stop_together,
)

# A child that lived at least this long had started; its death is not a failed start.
_STARTED_SECONDS = 10.0
# Seconds before each new try after a failed start; after the last one it is given up.
_DELAYS = (0.0, 0.5, 1.0, 2.0, 4.0)
_TICK_SECONDS = 0.1
_MOST_ECHOED = 4096
# PostgreSQL calls it fatal for a client that it came while the server was starting.
_ERROR_LINE = re.compile(
    r"\b(ERROR|CRITICAL|FATAL|PANIC)\b(?!:  the database system is )"
)


class GaveUp(Exception):
    """A child cannot be kept alive; the text says which, with the end of its log."""


class StopRequest:
    """Counts the requests to stop that reach this process as signals."""

    def __init__(self) -> None:
        self.times = 0

    def listen(self) -> None:
        """Take over SIGINT, SIGTERM and SIGHUP; call it from the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.times += 1

    def wanted(self) -> bool:
        """Say whether somebody asked to stop."""
        return self.times > 0

    def hurried(self) -> bool:
        """Say whether somebody asked a second time."""
        return self.times > 1


@dataclass
class LogEcho:
    """Reads what was added to a log and picks the lines that report an error."""

    log: Path
    offset: int = 0

    def new_errors(self) -> list[str]:
        """Return the error lines written since the last call."""
        try:
            size = self.log.stat().st_size
            if size <= self.offset:
                return []
            with self.log.open("rb") as stream:
                stream.seek(max(self.offset, size - 64 * 1024))
                text = stream.read().decode("utf-8", "replace")
        except OSError:
            return []
        self.offset = size
        return [
            line[:_MOST_ECHOED]
            for line in text.splitlines()
            if _ERROR_LINE.search(line)
        ]


@dataclass
class _Child:
    plan: ProcessPlan
    rank: int
    process: Process
    echo: LogEcho
    failed_starts: int = 0
    start_again_at: float | None = None


@dataclass
class Supervisor:
    """The children of one foreground process, by name.

    Children of a higher rank need those of a lower one, so they stop first.
    """

    say: Callable[[str], None]
    delays: tuple[float, ...] = _DELAYS
    _children: dict[str, _Child] = field(default_factory=dict)

    def start(self, plan: ProcessPlan, *, rank: int) -> Process:
        """Start a child and keep it from now on; raises CannotStart."""
        rotate_log(plan.log)
        process = Process(plan)
        self._children[plan.name] = _Child(plan, rank, process, LogEcho(plan.log))
        return process

    def pid(self, name: str) -> int:
        """Return the process id that a child has at the moment."""
        return self._children[name].process.pid

    def keep(self, stopping: Callable[[], bool]) -> None:
        """Keep all children alive until `stopping` is true.

        Raises:
            GaveUp: A child died too often right after its start.
        """
        while not stopping():
            self.tend()
            time.sleep(_TICK_SECONDS)

    def tend(self) -> None:
        """Look at every child once; raises GaveUp."""
        for child in self._children.values():
            for line in child.echo.new_errors():
                self.say(f"{child.plan.name}: {line}")
            if child.start_again_at is None:
                self._notice_death(child)
            if child.start_again_at is not None:
                self._start_again(child)

    def _notice_death(self, child: _Child) -> None:
        if not child.process.ended():
            return
        lived = time.monotonic() - child.process.started
        child.failed_starts = child.failed_starts + 1 if lived < _STARTED_SECONDS else 0
        # What it had started must not work on beside its successor.
        child.process.end_group()
        what = f"{child.plan.name} {child.process.ending()}"
        if child.failed_starts > len(self.delays):
            raise GaveUp(
                f"{what}, {child.failed_starts} times in a row right after its start. "
                f"The end of its log, {child.plan.log}:\n{child.process.log_tail()}"
            )
        self.say(f"{what}; starting it again.")
        delay = self.delays[child.failed_starts - 1] if child.failed_starts else 0.0
        child.start_again_at = time.monotonic() + delay

    def _start_again(self, child: _Child) -> None:
        if child.start_again_at is None or time.monotonic() < child.start_again_at:
            return
        try:
            child.process = Process(child.plan)
        except CannotStart as error:
            raise GaveUp(str(error)) from error
        child.start_again_at = None

    def stop(self, *, hurried: Callable[[], bool] = lambda: False) -> None:
        """Stop all children, the highest rank first; safe to run twice."""
        for rank in sorted({c.rank for c in self._children.values()}, reverse=True):
            same = [c.process for c in self._children.values() if c.rank == rank]
            stop_together(same, hurried=hurried)


def say(sentence: str) -> None:
    """Print to the terminal; a terminal that has gone away is no reason to stop."""
    with suppress(OSError, ValueError):
        sys.stdout.write(sentence + "\n")
        sys.stdout.flush()
