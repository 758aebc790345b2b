"""How long the calls of a trace took and how many failed, by what was called."""

from __future__ import annotations

from apps.engine.sequences.once import once_per_trace
from apps.engine.sequences.recorded import recorded_calls
from apps.engine.trace import Step, StepKind, StepStatus, ToolCall, Trace

NANOSECONDS = 1_000_000_000


@once_per_trace
def durations_by_name(trace: Trace) -> dict[str, tuple[float, ...]]:
    """The durations in seconds of the calls of each model and each tool, ascending.

    Names are `model <name>` and `tool <name>`. Model calls are those that sequences
    are made of; a call without a recorded start or end, or whose end is not after its
    start, has no duration and is left out.
    """
    found: dict[str, list[float]] = {}
    for name, step, end_ns in _calls(trace):
        if step.start_ns is not None and end_ns is not None and end_ns > step.start_ns:
            found.setdefault(name, []).append((end_ns - step.start_ns) / NANOSECONDS)
    return {name: tuple(sorted(found[name])) for name in sorted(found)}


@once_per_trace
def failures_by_name(trace: Trace) -> dict[str, tuple[int, int]]:
    """How many tool calls of each tool are recorded as failed, and of how many.

    Model calls are left out: their failures are retried, and `retry-storm` reads them.
    Spans say that a call failed, or nothing: a call without a status counts as one
    without a recorded failure. An unfinished call may still fail and is left out.
    """
    found: dict[str, tuple[int, int]] = {}
    for step in trace.steps:
        if step.kind is not StepKind.TOOL_CALL or not isinstance(step.call, ToolCall):
            continue
        if step.status is not StepStatus.UNFINISHED:
            name = f"tool {step.call.name}"
            failed, calls = found.get(name, (0, 0))
            found[name] = (failed + (step.status is StepStatus.ERROR), calls + 1)
    return dict(sorted(found.items()))


def says_how_tools_ended(trace: Trace) -> bool:
    """Whether any tool call of the trace is recorded as failed or as successful."""
    return any(
        step.kind is StepKind.TOOL_CALL
        and step.status in {StepStatus.OK, StepStatus.ERROR}
        for step in trace.steps
    )


def _calls(trace: Trace) -> list[tuple[str, Step, int | None]]:
    models = [
        (f"model {entry.call.model or 'not named'}", entry.step, entry.end_ns)
        for calls in recorded_calls(trace).values()
        for entry in calls
        if entry.removed is None
    ]
    tools = [
        (f"tool {step.call.name}", step, step.end_ns)
        for step in trace.steps
        if step.kind is StepKind.TOOL_CALL and isinstance(step.call, ToolCall)
    ]
    return models + tools
