"""The model calls and tool calls of a trace, for tests of readers."""

from __future__ import annotations

from apps.engine.trace import StepKind, Trace
from tests.formats.reading import as_json, traces_of


def calls(trace: Trace):
    return [step for step in trace.steps if step.kind is StepKind.MODEL_CALL]


def tools(trace: Trace):
    return [step for step in trace.steps if step.kind is StepKind.TOOL_CALL]


def outputs(trace: Trace):
    return [step.call.usage.output_total for step in calls(trace)]


def one(value) -> Trace:
    [trace] = traces_of(as_json(value))
    return trace
