"""What a driver asks of whoever runs it: leave before a call, a wait, a stop, the time.

A driver neither sleeps nor counts money by itself, so that a worker can put a run back
into its queue instead of waiting, and so that a budget is one number for all workers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from apps.engine.replay.run import ModelCalled, Ran


class WorstCase(msgspec.Struct, frozen=True, kw_only=True):
    """The most tokens that a call can use; `None` where that cannot be said.

    Input is bounded by the bytes of the request: no token of it is shorter than one.
    """

    input_tokens: int | None
    output_tokens: int

    @property
    def total(self) -> int:
        """Input and output, without what is not known."""
        return (self.input_tokens or 0) + self.output_tokens


class OverBudget(Exception):
    """A budget does not allow the call; the message is a sentence for a person."""


class Cancelled(Exception):
    """Somebody cancelled the run; the message is a sentence for a person."""


class NotNow(Exception):
    """The run has to be put back for `seconds`, and begun anew then.

    A driver passes it on with `ran` set to what had happened until then, or with
    `None` where nothing had been sent.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Not before {seconds:,.1f} seconds from now.")
        self.seconds = seconds
        self.ran: Ran | None = None


def _allow(_worst: WorstCase) -> None:
    """Every call may be made."""


def _note_nothing(_event: ModelCalled) -> None:
    """Nobody counts."""


def _never() -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """What is called on the way.

    `before_call` before every try of a call; it may raise `OverBudget`, `NotNow` or
    `Cancelled`. `after_call` after every try, failed ones too. `wait` waits for some
    seconds, or raises one of these; without one the driver waits by itself and looks
    at `stop`. What all of them take is no time of the run. `stop` is looked at several
    times a second while the driver waits for an answer.
    `clock_ns` is the time since the Unix epoch, `random` the chance in back-offs.
    """

    before_call: Callable[[WorstCase], None] = _allow
    after_call: Callable[[ModelCalled], None] = _note_nothing
    wait: Callable[[float], None] | None = None
    stop: Callable[[], bool] = _never
    clock_ns: Callable[[], int] = time.time_ns
    random: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311
