"""What a trace holds: the facts for the receipt page, the API and `manage.py describe`.

Counts are of what was recorded and read; nothing here judges a trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from apps.engine.trace import (
    ModelCall,
    OrderSource,
    OutcomeKind,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    UsageState,
)


class UsageCounts(msgspec.Struct, frozen=True):
    """How many model calls have their token usage in each state; all six, always."""

    reported: int = 0
    partial: int = 0
    missing: int = 0
    zero_suspect: int = 0
    vendor_estimate: int = 0
    aggregate_only: int = 0


class TraceDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one trace; `None` is what the file does not say.

    `id` is the trace's own id where the format's ids are unique in the world. `agents`
    and `models` are names in the order in which they first appear. `model_calls` counts
    placeholders too, which no sequence holds. `tool_calls` counts handoffs too, because SDKs let the model make one by calling a tool. `errors` are
    the steps that ended in an error. `score` is of `out_of`, where the outcome is one.
    """

    id: str | None
    name: str
    task: str | None
    trial: int | None
    session: str | None
    outcome: OutcomeKind
    score: float | None
    out_of: float | None
    agents: tuple[str, ...]
    models: tuple[str, ...]
    steps: int
    model_calls: int
    tool_calls: int
    errors: int
    usage: UsageCounts
    order: OrderSource
    notes: tuple[str, ...]


def describe(trace: Trace) -> TraceDescription:
    """The facts of a trace. The same trace always gives the same answer."""
    calls = [step.call for step in trace.steps if isinstance(step.call, ModelCall)]
    return TraceDescription(
        id=trace.native_id,
        name=trace.name,
        task=trace.task,
        trial=trace.trial,
        session=trace.session,
        outcome=trace.outcome.kind,
        score=trace.outcome.score,
        out_of=trace.outcome.out_of,
        agents=_each_once(one.agent for one in trace.invocations),
        models=_each_once(call.model for call in calls),
        steps=len(trace.steps),
        model_calls=len(calls),
        tool_calls=sum(map(_is_tool_call, trace.steps)),
        errors=sum(step.status is StepStatus.ERROR for step in trace.steps),
        usage=usage_counts(call.usage.state for call in calls),
        order=trace.order,
        notes=trace.notes,
    )


def usage_counts(states: Iterable[UsageState]) -> UsageCounts:
    """How often each state of usage occurs among `states`."""
    found = Counter(states)
    return UsageCounts(**{state.value: found[state] for state in UsageState})


def _is_tool_call(step: Step) -> bool:
    return isinstance(step.call, ToolCall) or step.kind is StepKind.HANDOFF


def _each_once(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))
