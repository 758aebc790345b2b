"""The canonical trace: what every reader produces and every check reads.

Everything is frozen and plain. `None` always means "not recorded"; a recorded zero
is a zero. Times are integer nanoseconds since the Unix epoch. Nothing here claims
that a recorded value is true, only that it was recorded.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec


class UsageState(StrEnum):
    """How much of a model call's token usage was recorded, and how far to trust it."""

    REPORTED = "reported"
    PARTIAL = "partial"
    MISSING = "missing"
    ZERO_SUSPECT = "zero_suspect"
    VENDOR_ESTIMATE = "vendor_estimate"
    AGGREGATE_ONLY = "aggregate_only"


class StepKind(StrEnum):
    """What an ordered event of a trace is."""

    MODEL_CALL = "model_call"
    TOOL_CALL = "tool_call"
    HANDOFF = "handoff"
    AGENT = "agent"
    RETRIEVAL = "retrieval"
    GUARDRAIL = "guardrail"
    USER_MESSAGE = "user_message"
    SYSTEM = "system"
    MEMORY = "memory"
    OTHER = "other"


class StepStatus(StrEnum):
    """How a step ended, as recorded."""

    OK = "ok"
    ERROR = "error"
    UNSET = "unset"
    UNFINISHED = "unfinished"


class FinishReason(StrEnum):
    """Why a model stopped, in one vocabulary for all providers."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    ERROR = "error"
    UNKNOWN = "unknown"


class Via(StrEnum):
    """How an agent invocation came to be."""

    ROOT = "root"
    HANDOFF = "handoff"
    TOOL = "tool"
    SUBAGENT = "subagent"
    MANAGED = "managed"


class OutcomeKind(StrEnum):
    """The end-to-end verdict of a trace, as recorded by whoever produced it."""

    PASS = "pass"
    FAIL = "fail"
    SCORE = "score"
    UNKNOWN = "unknown"


class OrderSource(StrEnum):
    """What the order of the steps rests on."""

    TIME = "time"
    FILE = "file"


class Usage(msgspec.Struct, frozen=True):
    """Token counts of one model call. Every count is `None` when not recorded.

    Readers admit 0 to 2**63 - 1; a negative count is no count.

    `output_reasoning` and `input_cached` are parts that some providers count inside
    the totals and others beside them; they are kept apart and never summed here.
    `source` names the field that the output count was read from.
    """

    state: UsageState = UsageState.MISSING
    input_total: int | None = None
    input_cached: int | None = None
    input_cache_write: int | None = None
    output_total: int | None = None
    output_reasoning: int | None = None
    total: int | None = None
    source: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether the output length of this call may be used by a check."""
        if self.output_total is None or self.output_total < 0:
            return False
        return self.state in {UsageState.REPORTED, UsageState.PARTIAL}


MISSING: Final = Usage()
ZERO_SUSPECT: Final = Usage(state=UsageState.ZERO_SUSPECT)


class ModelCall(msgspec.Struct, frozen=True):
    """The facts of a model call that checks read; texts are in the step's body."""

    provider: str | None = None
    model: str | None = None
    finish: FinishReason = FinishReason.UNKNOWN
    finish_raw: str | None = None
    usage: Usage = MISSING
    response_id: str | None = None
    conversation: str | None = None
    retry_of: int | None = None
    is_placeholder: bool = False
    resets_context: bool = False
    tool_call_ids: tuple[str, ...] = ()


class ToolCall(msgspec.Struct, frozen=True):
    """The facts of a tool call; arguments and result are in the step's body."""

    name: str
    call_id: str | None = None
    requested_by: int | None = None


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person reads of a step. Values are JSON values; absent means `None`.

    For a tool call `input` holds the arguments and `output` the result. For a model
    call `input` holds the messages sent (where recorded), `output` the answer.
    """

    input: Any = None
    output: Any = None
    reasoning: Any = None
    attributes: dict[str, Any] | None = None


class Step(msgspec.Struct, frozen=True):
    """One ordered event of a trace.

    `seq` is its place in the trace, from 0, unique and dense. `invocation` and
    `parent` are a number of `Trace.invocations` and a `seq`.
    """

    seq: int
    kind: StepKind
    invocation: int | None = None
    parent: int | None = None
    name: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    status: StepStatus = StepStatus.UNSET
    error_type: str | None = None
    error_message: str | None = None
    native_id: str | None = None
    native_kind: str | None = None
    call: ModelCall | ToolCall | None = None
    body: Body | None = None


class AgentInvocation(msgspec.Struct, frozen=True):
    """One activation of a named agent. An agent may have many in one trace.

    `number` is its index in `Trace.invocations`; `agent` is `None` where the file
    names no agent.
    """

    number: int
    agent: str | None
    parent: int | None = None
    via: Via = Via.ROOT
    start_ns: int | None = None
    end_ns: int | None = None
    status: StepStatus = StepStatus.UNSET
    native_id: str | None = None


class Outcome(msgspec.Struct, frozen=True):
    """The recorded end-to-end verdict: pass, fail, `score` of `out_of`, or unknown.

    `label` keeps the recorded wording and `source` the field it was read from. Prose
    is never parsed into an outcome.
    """

    kind: OutcomeKind = OutcomeKind.UNKNOWN
    score: float | None = None
    out_of: float | None = None
    label: str | None = None
    source: str | None = None


UNKNOWN_OUTCOME: Final = Outcome()


class Trace(msgspec.Struct, frozen=True, weakref=True):
    """One run of one system on one task.

    `native_id` is set only where the format's ids are globally unique (a trace id of
    OpenTelemetry); it makes the same trace in two files one trace. `task` is the key
    that its trials share and `trial` the number of the repeat. `labels` are ground
    truth that came with the file: shown to people, never to a check. `notes` are
    sentences about what the reader had to decide.
    """

    name: str
    steps: tuple[Step, ...]
    invocations: tuple[AgentInvocation, ...] = ()
    native_id: str | None = None
    session: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    order: OrderSource = OrderSource.TIME
    outcome: Outcome = UNKNOWN_OUTCOME
    task: str | None = None
    trial: int | None = None
    metadata: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
