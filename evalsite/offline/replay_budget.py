"""What all runs of a call may use together, and how fast they may ask their target."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec

from apps.engine.replay.prices import Price, cost_of, cost_of_tokens
from apps.engine.replay.retrying import may_have_been_billed
from apps.engine.replay.run import ModelCalled
from apps.isolation.hooks import Cancelled, Hooks, OverBudget, WorstCase

_MICROS: Final = 1_000_000
_STOPPED: Final = "The command was stopped."


class OfflineCaps(msgspec.Struct, frozen=True, kw_only=True):
    """The most of each; `None` is no cap. Money in millionths of the price table's unit."""

    calls: int | None = None
    tokens: int | None = None
    micros: int | None = None
    seconds: float | None = None


class Spent(msgspec.Struct, kw_only=True):
    """What was used, and whether all of its cost is known."""

    calls: int = 0
    tokens: int = 0
    micros: int = 0
    is_tokens_known: bool = True
    is_money_known: bool = True


class _Held(msgspec.Struct, frozen=True):
    tokens: int
    micros: int


class Purse:
    """Counts for all runs; safe from several threads.

    Before a call its worst case is held back, so that no cap is passed by calls that
    are under way. What a call used is not known where nobody says it: then its worst
    case stays spent.
    """

    def __init__(
        self, caps: OfflineCaps, *, price: Price | None, per_minute: int = 0
    ) -> None:
        self._caps = caps
        self._price = price
        self._apart = 60 / per_minute if per_minute else 0.0
        self._due = 0.0
        self._end = None if caps.seconds is None else time.monotonic() + caps.seconds
        self._held = Spent()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.spent = Spent()
        self.sentence = ""

    def stop(self) -> None:
        """Let no further call begin, and end those that wait."""
        self._stopped.set()

    def is_stopped(self) -> bool:
        """Whether runs are to end: stopped, or out of time."""
        if self._end is not None and time.monotonic() > self._end:
            self._passed(f"The cap of {self._caps.seconds:g} seconds is reached.")
            self.stop()
        return self._stopped.is_set()

    def hooks(self) -> Hooks:
        """What a driver calls on the way, of one run."""
        return _RunHooks(self).hooks()

    def begin(self, worst: WorstCase) -> _Held:
        """Take the turn to call and hold its worst case back.

        Raises `OverBudget` or `Cancelled`.
        """
        self._wait_for_turn()
        micros = cost_of_tokens(
            worst.input_tokens or 0, worst.output_tokens, self._price
        )
        held = _Held(worst.total, micros or 0)
        with self._lock:
            self._check(held)
            self._held.calls += 1
            self._held.tokens += held.tokens
            self._held.micros += held.micros
        return held

    def _check(self, held: _Held) -> None:
        for what, cap, added in (
            ("calls", self._caps.calls, 1),
            ("tokens", self._caps.tokens, held.tokens),
            ("micros", self._caps.micros, held.micros),
        ):
            used = getattr(self.spent, what) + getattr(self._held, what)
            if cap is not None and used + added > cap:
                self._passed(_reached(what, cap))
                raise OverBudget(self.sentence)

    def _passed(self, sentence: str) -> None:
        self.sentence = self.sentence or sentence

    def _wait_for_turn(self) -> None:
        with self._lock:
            now = time.monotonic()
            at = max(now, self._due)
            self._due = at + self._apart
        if self._stopped.wait(at - now) or self.is_stopped():
            if self.sentence:
                raise OverBudget(self.sentence)
            raise Cancelled(_STOPPED)

    def end(self, held: _Held, event: ModelCalled) -> None:
        """Count what a call used."""
        used, usage = held, event.usage
        is_known = True
        if not may_have_been_billed(event):
            used = _Held(0, 0)
        elif usage.input_total is not None and usage.output_total is not None:
            micros = cost_of(usage, self._price)
            used = _Held(usage.input_total + usage.output_total, micros or 0)
            is_known = micros is not None or not used.tokens
        else:
            is_known = False
        with self._lock:
            self._held.calls -= 1
            self._held.tokens -= held.tokens
            self._held.micros -= held.micros
            self.spent.calls += 1
            self.spent.tokens += used.tokens
            self.spent.micros += used.micros
            self.spent.is_money_known &= is_known
            self.spent.is_tokens_known &= is_known or usage.input_total is not None


class _RunHooks:
    """Each call of one run with what is held back for it; calls may overlap."""

    def __init__(self, purse: Purse) -> None:
        self._purse = purse
        self._held: list[_Held] = []
        self._lock = threading.Lock()

    def hooks(self) -> Hooks:
        stop: Callable[[], bool] = self._purse.is_stopped
        return Hooks(before_call=self._before, after_call=self._after, stop=stop)

    def _before(self, worst: WorstCase) -> None:
        held = self._purse.begin(worst)
        with self._lock:
            self._held.append(held)

    def _after(self, event: ModelCalled) -> None:
        with self._lock:
            # Of calls that overlap in one run, it is no matter which one is settled.
            held = self._held.pop(0) if self._held else _Held(0, 0)
        self._purse.end(held, event)


def _reached(what: str, cap: int) -> str:
    if what == "micros":
        return f"The next call could pass the cap of {cap / _MICROS:g} for money."
    return f"The next call could pass the cap of {cap:,} {what}."
