"""Words, symbols and tones of batches, runs, isolation levels and attempted effects."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from apps.engine.replay.regimes import regime_in_words
from apps.engine.replay.run import AnswerSource, EffectKind, ErrorKind, Regime
from apps.replays.results import LEVELS as LEVELS
from apps.replays.transitions import BatchState, RunState
from apps.web.words import number_in_words

MEMORY: Final = "memory"


class StateWord(msgspec.Struct, frozen=True):
    """A state for people: a word, a symbol and the tone of its pill, and what it means."""

    word: str
    icon: str
    tone: str
    meaning: str


BATCH_WORDS: Final[Mapping[str, StateWord]] = {
    BatchState.RUNNING: StateWord(
        "running", "hourglass", "blue", "Runs of it are waiting or at work."
    ),
    BatchState.DONE: StateWord(
        "done", "circle-check", "plain", "Every run of it was executed."
    ),
    BatchState.CANCELLED: StateWord(
        "cancelled", "ban", "amber", "No further run of it begins."
    ),
    BatchState.STOPPED: StateWord(
        "stopped", "triangle-alert", "amber", "A cap was reached before its end."
    ),
}
RUN_WORDS: Final[Mapping[str, StateWord]] = {
    RunState.WAITING: StateWord("waiting", "clock", "", "No worker has begun it yet."),
    RunState.RUNNING: StateWord("running", "hourglass", "blue", "A worker runs it."),
    RunState.FINISHED: StateWord(
        "finished", "circle-check", "plain", "It came to its end and gave an output."
    ),
    RunState.FAILED: StateWord(
        "failed", "circle-x", "amber", "It did not finish, so it decided nothing."
    ),
    RunState.TIMED_OUT: StateWord(
        "timed out",
        "clock",
        "amber",
        "It was ended because its time was over, so it decided nothing.",
    ),
    RunState.STOPPED: StateWord(
        "stopped", "ban", "amber", "It was ended before it decided anything."
    ),
    RunState.OVER_BUDGET: StateWord(
        "over a cap", "triangle-alert", "amber", "A cap was reached before it was run."
    ),
    RunState.CANCELLED: StateWord(
        "cancelled", "ban", "", "The batch was cancelled before it was run."
    ),
}
EFFECTS: Final[Mapping[EffectKind, str]] = {
    EffectKind.FILE_WRITE: "write a file",
    EffectKind.FILE_READ: "read a file that it was not given",
    EffectKind.SOCKET: "open a connection",
    EffectKind.NAME_LOOKUP: "look up a name",
    EffectKind.PROCESS: "start a process",
    EffectKind.SIGNAL: "send a signal to a process",
    EffectKind.MEMORY: "take more memory than allowed",
    EffectKind.INPUT_CHANGED: "change the input that it was given",
    EffectKind.LEFT_RUNNING: "leave a process running behind it",
    EffectKind.LEAK: "give away a secret",
    EffectKind.OTHER: "reach outside of its run",
}
ERRORS: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.RATE_LIMITED: "asked to wait",
    ErrorKind.OVERLOADED: "overloaded",
    ErrorKind.CONNECTION: "no connection",
    ErrorKind.TIMED_OUT: "timed out",
    ErrorKind.REFUSED: "refused",
    ErrorKind.NOT_ALLOWED: "not allowed",
    ErrorKind.BAD_ANSWER: "answer not understood",
    ErrorKind.TOO_LARGE: "answer too large",
    ErrorKind.CRASHED: "agent failed",
    ErrorKind.LIMIT: "limit reached",
    ErrorKind.BREACH: "breach",
    ErrorKind.BUDGET: "cap reached",
    ErrorKind.CANCELLED: "cancelled",
    ErrorKind.STOPPED: "stopped",
    ErrorKind.TARGET: "target failed",
    ErrorKind.OURS: "our fault",
}
SOURCES: Final[Mapping[str, StateWord]] = {
    AnswerSource.RECORDED: StateWord(
        "recorded", "database", "plain", "What the tool answered when it was recorded."
    ),
    AnswerSource.STATIC: StateWord(
        "static", "lock", "plain", "The answer that the plan declares."
    ),
    AnswerSource.HANDLER: StateWord(
        "handler", "terminal", "plain", "A handler of the plan made the answer."
    ),
    AnswerSource.MISS: StateWord(
        "miss", "circle-help", "amber", "No stub knows this call."
    ),
}
ENDINGS: Final = {
    "": "running",
    "lost": "its worker ended",
    "put_back": "put back",
}
"""How attempts ended, where it is none of the states of a run."""


def ending_in_words(ending: str) -> str:
    """How an attempt ended."""
    if ending in ENDINGS:
        return ENDINGS[ending]
    found = RUN_WORDS.get(ending)
    return ending.replace("_", " ") if found is None else found.word


def error_in_words(kind: str) -> str:
    """The kind of an error; the code itself for one that is not known here."""
    known = kind in set(ErrorKind)
    return ERRORS[ErrorKind(kind)] if known else kind.replace("_", " ")


def regime_words(regime: Mapping[str, Any]) -> str:
    """The conditions of a group in words."""
    if regime.get("kind") == MEMORY:
        return f"depth {number_in_words(regime.get('depth'))}"
    try:
        return regime_in_words(msgspec.convert(regime, Regime))
    except msgspec.ValidationError:
        return "conditions that this version cannot read"


def money_in_words(amount: Decimal | None, currency: str = "") -> str:
    """An amount with up to four digits after the point, `not known` for `None`."""
    if amount is None:
        return "not known"
    text = f"{amount:,.4f}".rstrip("0")
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.ljust(2, '0')} {currency}".strip()


def seconds_in_words(seconds: float) -> str:
    """`40 s`, `4 min`, `2 h 10 min`: rounded, since it is a guess."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
