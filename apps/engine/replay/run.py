"""One isolated execution: what is ordered, what happened, and how it ended.

Times are integer nanoseconds since the Unix epoch. `None` means not known or not
recorded, never zero.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from apps.engine.trace import MISSING, FinishReason, Usage


class TargetKind(StrEnum):
    """How an agent is run alone."""

    OPENAI = "openai"
    HTTP = "http"
    CALLABLE = "callable"
    COMMAND = "command"
    RECORDED = "recorded"


class RegimeKind(StrEnum):
    """Under which conditions the runs of a group are repeated."""

    DETERMINISM = "determinism"
    SAMPLING = "sampling"
    PARAPHRASE = "paraphrase"


class Regime(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a group of runs.

    Determinism asks for temperature 0, sampling for `temperature` (`None`: whatever the
    target does by itself). A paraphrase has the slug of the transformation that words
    the input anew; it is asked at temperature 0 unless `temperature` says otherwise.
    """

    kind: RegimeKind = RegimeKind.DETERMINISM
    temperature: float | None = 0.0
    paraphrase: str = ""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one run may use at most."""

    seconds: float = 120.0
    model_calls: int = 20
    tool_calls: int = 100
    output_tokens: int = 4_096
    answer_bytes: int = 10 * 1024**2
    memory_bytes: int = 1024**3
    file_bytes: int = 64 * 1024**2
    processes: int = 32
    printed_bytes: int = 1024**2


class AnswerSource(StrEnum):
    """Where the answer to a tool call came from; a replay has no live tools."""

    RECORDED = "recorded"
    STATIC = "static"
    HANDLER = "handler"
    MISS = "miss"


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a stub answers to one tool call.

    `error` is "" where the answer is a result. `matched` is the place among
    `Case.calls` of the recording that was used. With `stops` the run ends here. A call
    of a tool that `writes` was an intended act: it was recorded and not done.
    """

    source: AnswerSource
    result: Any = None
    error: str = ""
    matched: int | None = None
    writes: bool = False
    stops: bool = False
    note: str = ""


class EffectKind(StrEnum):
    """What an agent tried to reach outside of its run."""

    FILE_WRITE = "file_write"
    FILE_READ = "file_read"
    SOCKET = "socket"
    NAME_LOOKUP = "name_lookup"
    PROCESS = "process"
    SIGNAL = "signal"
    MEMORY = "memory"
    INPUT_CHANGED = "input_changed"
    LEFT_RUNNING = "left_running"
    LEAK = "leak"
    OTHER = "other"


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """An attempted side effect, after how many events of the run it came.

    `was_stopped` is `None` where it is not known whether the wall held it back. Only
    what is a breach makes a run red; reading its own libraries is none.
    """

    kind: EffectKind
    what: str
    after: int | None = None
    was_stopped: bool | None = True
    is_breach: bool = True


class ErrorKind(StrEnum):
    """Why an attempt did not end well; what is retried is decided by this alone."""

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    CONNECTION = "connection"
    TIMED_OUT = "timed_out"
    REFUSED = "refused"
    NOT_ALLOWED = "not_allowed"
    BAD_ANSWER = "bad_answer"
    TOO_LARGE = "too_large"
    CRASHED = "crashed"
    LIMIT = "limit"
    BREACH = "breach"
    BUDGET = "budget"
    CANCELLED = "cancelled"
    STOPPED = "stopped"
    TARGET = "target"
    OURS = "ours"


class RunError(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt failed: a sentence for a person, without secrets.

    `retry_after` are the seconds that the target asked to wait.
    """

    kind: ErrorKind
    sentence: str
    retry_after: float | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """Something that was said to the agent or by it outside of a model call."""

    role: str
    content: Any
    at_ns: int | None = None


class ModelCalled(msgspec.Struct, frozen=True, kw_only=True, tag="model"):
    """A model call as it was sent and answered; `error` where it failed.

    `retry_of` is the place among the events of the attempt that this one repeats.
    """

    request: Any
    response: Any = None
    output: Any = None
    reasoning: Any = None
    model: str = ""
    provider: str = ""
    usage: Usage = MISSING
    finish: FinishReason = FinishReason.UNKNOWN
    finish_raw: str | None = None
    response_id: str | None = None
    call_ids: tuple[str, ...] = ()
    temperature: float | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    error: RunError | None = None
    retry_of: int | None = None


class ToolCalled(msgspec.Struct, frozen=True, kw_only=True, tag="tool"):
    """A tool call of the agent and what the stub answered."""

    tool: str
    arguments: Any
    answer: ToolAnswer
    call_id: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None


class StateSeen(msgspec.Struct, frozen=True, kw_only=True, tag="state"):
    """The state of the agent after a turn, as its adapter gave it out."""

    state: Any
    turn: int
    at_ns: int | None = None


Event: TypeAlias = Message | ModelCalled | ToolCalled | StateSeen


class Ending(StrEnum):
    """How a run ended. Only `finished` has an output that was decided freely."""

    FINISHED = "finished"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    OVER_BUDGET = "over_budget"
    STOPPED = "stopped"


UNKNOWN: Final = "unknown"
"""The level of a run of which no record came back: nothing that it did is known."""


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What shows that a run touched nothing real.

    `level` is the isolation reached, `wall` the layers in words. Where it is `UNKNOWN`
    the counts are not known either, whatever stands in them. Hashes are SHA-256
    in hex; `input_after` differs from `input_before` where the agent changed what it
    was given. `real_calls` counts calls of real tools, which is always 0 here: what is
    counted is what the stubs answered, what they missed, and what was never asked for.
    """

    level: str
    wall: tuple[str, ...] = ()
    not_walled: tuple[str, ...] = ()
    input_before: str = ""
    input_after: str = ""
    state_copy: str = ""
    state_after: str = ""
    real_calls: int = 0
    stubbed_calls: int = 0
    missed_calls: int = 0
    unconsumed: tuple[int, ...] = ()
    intended_writes: int = 0
    versions: dict[str, str] = {}
    limits: Limits = Limits()


def told_proof(proof: Proof) -> dict[str, Any]:
    """A proof as JSON values; of one that is not known its level and limits alone."""
    value: dict[str, Any] = msgspec.to_builtins(proof)
    if proof.level != UNKNOWN:
        return value
    return {name: value[name] for name in ("level", "limits")}


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at a run: what it gave back and everything on the way.

    `output` and `state` are JSON values. `error` is set unless it finished. `printed`
    is what it wrote to its own outputs, cut and without secrets.
    """

    ending: Ending
    output: Any = None
    state: Any = None
    error: RunError | None = None
    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()
    proof: Proof
    printed: str = ""
    start_ns: int | None = None
    end_ns: int | None = None

    @property
    def has_breach(self) -> bool:
        """Whether the agent tried something that makes the run red."""
        return any(one.is_breach for one in self.effects)
