"""One isolated run, seen from outside: starts it, answers it, ends it in time.

All that comes from the run is taken for what it is, bytes of a stranger: nothing is
unpickled, imported or executed, and every line and text has a most that is kept.
"""

from __future__ import annotations

import contextlib
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from apps.engine.replay.run import EffectKind, Ending, ErrorKind, RunError
from apps.isolation.sandbox.ending import Ended, Report, input_hash, isolated
from apps.isolation.sandbox.inside.family import end_all
from apps.isolation.sandbox.launching import Launched, launch
from apps.isolation.sandbox.ledger import Ledger
from apps.isolation.sandbox.order import (
    Isolated,
    Refused,
    SandboxOrder,
    StopRun,
    failed,
)
from apps.isolation.sandbox.printed import Printed
from apps.isolation.sandbox.probing import best_way, check_level, reached_by
from apps.isolation.sandbox.scratch import (
    CannotLook,
    nameless_sizes,
    new_folder,
    remove_folder,
    sizes,
)
from apps.isolation.sandbox.talking import Talking

_TICK: Final = 0.05
_SECONDS_TO_END: Final = 3.0
_GRACE: Final = 1.0
_SECONDS_BETWEEN_LOOKS: Final = 0.5

Ask = Callable[[dict[str, Any]], dict[str, Any]]


def run_program(
    order: SandboxOrder,
    *,
    ask: Ask,
    stop: Callable[[], bool],
    clock_ns: Callable[[], int],
) -> Isolated:
    """Run it to its end, which comes at `limits.seconds` at the latest.

    `ask` answers what the agent asks: {"ask": "tool", "tool", "arguments"} with
    {"result"} or {"error"}, {"ask": "message", "role", "content"} with anything. It
    should be quick, for meanwhile nothing is looked at; it may raise `StopRun`. `stop`
    is asked about twenty times a second. Raises `Refused` where nothing was begun.
    """
    with Run(order, ask=ask, stop=stop, clock_ns=clock_ns) as run:
        run.go_on(lambda: False)
    return run.isolated()


class Run:
    """A run that is under way; as a context it is ended at the latest on leaving."""

    def __init__(
        self,
        order: SandboxOrder,
        *,
        ask: Ask,
        stop: Callable[[], bool],
        clock_ns: Callable[[], int],
    ) -> None:
        """Check that it may be run here; starts nothing. Raises `Refused`."""
        order.allowed.check(order.target)
        self.order = order
        self._way = best_way(order.at_most)
        self.reached = reached_by(self._way)
        check_level(self.reached, order.least)
        if order.relay is not None and not self._way.asks:
            raise Refused(
                "This machine gives an isolated run no way to a model endpoint, "
                "because its kernel does not report system calls."
            )
        self.ask, self._stop, self._clock_ns = ask, stop, clock_ns
        self.ledger = Ledger()
        self.printed = Printed(order.limits.printed_bytes)
        self.input_before = input_hash(order.given)
        self.final: dict[str, Any] | None = None
        self.report: Report | None = None
        self._ended: tuple[Ending, RunError] | None = None
        self._launched: Launched | None = None
        self.talking: Talking | None = None
        self._answered_at: float | None = None
        self._looked_at = 0.0
        self._waits = threading.Lock()
        self._waiting, self._waits_since = 0, 0.0

    def __enter__(self) -> Run:
        """Start it. Raises `Refused`; a start that fails is an ended run."""
        self._scratch = new_folder()
        self._start_ns, self._started = self._clock_ns(), time.monotonic()
        try:
            self._launched = launch(self.order, self._way, self._scratch)
        except OSError as error:
            self.end(
                Ending.FAILED,
                failed(ErrorKind.OURS, f"No sandbox could be started: {error}."),
            )
        except BaseException:
            remove_folder(self._scratch)
            raise
        self._selector = selectors.DefaultSelector()
        if self._launched:
            try:
                self.talking = Talking(self, self._launched, self._selector)
            except BaseException:
                self.__exit__(None, None, None)
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what still runs and take everything away."""
        try:
            if self._launched:
                self._bring_to_an_end(self._launched)
        finally:
            self._selector.close()
            self._look_at_scratch(at_end=True)
            remove_folder(self._scratch)
            self._end_ns = self._clock_ns()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, in whatever way."""
        has_gone = self.report is not None or self._launched is None
        return self._ended is not None or has_gone

    @property
    def error(self) -> RunError | None:
        """Why it was ended from outside; `None` where it was not."""
        return self._ended[1] if self._ended else None

    def end(self, ending: Ending, error: RunError) -> None:
        """It ends here; the first reason stays the reason."""
        if self._ended is None:
            self._ended = (ending, error)

    @contextmanager
    def not_counted(self) -> Iterator[None]:
        """Its time stands still while any thread is inside: it waits for us."""
        with self._waits:
            self._waiting += 1
            if self._waiting == 1:
                self._waits_since = time.monotonic()
        try:
            yield
        finally:
            with self._waits:
                self._waiting -= 1
                if not self._waiting:
                    self._started += time.monotonic() - self._waits_since

    def _taken(self, now: float) -> float:
        """The seconds that it has taken by itself."""
        with self._waits:
            return (self._waits_since if self._waiting else now) - self._started

    def go_on(self, until: Callable[[], bool]) -> None:
        """Answer the agent until `until` says so, or the run is over."""
        while not self.is_over and not until():
            for key, _ in self._selector.select(_TICK):
                self._hear(key.data)
            self._check_time()
            self._look_at_scratch()

    def _hear(self, hear: Callable[[], None]) -> None:
        try:
            hear()
        except StopRun as stopped:
            self.end(stopped.ending, stopped.error)

    def _check_time(self) -> None:
        now, seconds = time.monotonic(), self.order.limits.seconds
        if self._has_answered_and_stays(now):
            return
        if self._taken(now) > seconds:
            self.end(
                Ending.TIMED_OUT,
                failed(
                    ErrorKind.TIMED_OUT,
                    f"{self.order.name} had not answered after {seconds:g} s and was "
                    "killed.",
                ),
            )
        elif self._stop():
            self.end(
                Ending.CANCELLED,
                failed(ErrorKind.CANCELLED, "The run was cancelled and killed."),
            )

    def _has_answered_and_stays(self, now: float) -> bool:
        """A process that has answered gets a moment to end, then it is killed."""
        if self.final is None:
            return False
        if self._answered_at is None:
            self._answered_at = now
        elif now - self._answered_at > _GRACE and self._launched:
            self.ledger.told(
                EffectKind.LEFT_RUNNING,
                f"{self.order.name} ran on after its answer",
                was_stopped=True,
            )
            self._bring_to_an_end(self._launched)
        return True

    def _look_at_scratch(self, *, at_end: bool = False) -> None:
        """Keep its folder within bounds: four times what one file may have."""
        now = time.monotonic()
        if not at_end and now - self._looked_at < _SECONDS_BETWEEN_LOOKS:
            return
        self._looked_at = now
        if why := self._why_too_much():
            words = f"{self.order.name} {why} in its folder."
            self.end(Ending.FAILED, failed(ErrorKind.LIMIT, words))

    def _why_too_much(self) -> str:
        """What is too much in its folder, as words; "" where nothing is."""
        most, whole = self.order.limits.file_bytes, 0
        try:
            for size in self._written():
                whole += size
                if size >= most:
                    self.ledger.told(
                        EffectKind.FILE_WRITE,
                        f"filled a file of its own folder up to the limit of {most:,} "
                        "bytes",
                        was_stopped=True,
                        is_breach=False,
                    )
        except CannotLook as why:
            return str(why)
        return (
            "" if whole <= 4 * most else f"wrote more than {4 * most // 1024**2:,} MB"
        )

    def _written(self) -> Iterator[int]:
        """The sizes of what it has written and still holds; raises `CannotLook`."""
        yield from sizes(self._scratch)
        if self._launched:
            yield from nameless_sizes(self._launched.process.pid)

    def _bring_to_an_end(self, launched: Launched) -> None:
        """Have the first process end all others, and it itself ended too."""
        until = time.monotonic() + _SECONDS_TO_END
        with contextlib.suppress(OSError):
            launched.control.sendall(b"end\n")
        while self.report is None and time.monotonic() < until:
            if not self._selector.get_map():
                break
            for key, _ in self._selector.select(_TICK):
                self._hear(key.data)
            if self.talking is None or self.talking.is_gone:
                break
        if self.report is None:
            # It does not answer: stopped, or killed, which without a wall can be.
            end_all(launched.process.pid)
            launched.process.kill()
        if self.talking:
            self.talking.hear_the_rest()
        launched.close()
        self._launched = None

    def isolated(self) -> Isolated:
        """Everything about the run, after it has ended."""
        return isolated(
            Ended(
                order=self.order,
                reached=self.reached,
                final=self.final,
                report=self.report,
                from_outside=self._ended,
                ledger=self.ledger,
                printed=self.printed,
                said=bytes(self.talking.said) if self.talking else b"",
                input_before=self.input_before,
                start_ns=self._start_ns,
                end_ns=self._end_ns,
            )
        )
