"""What a condition sees of a step: a JSON value with what was recorded, no more.

A field that was not recorded is absent. A condition that asks for it is then neither
true nor false, unless it asks whether it is there.
"""

from __future__ import annotations

from typing import Any

from apps.engine.bodies.canonical import opened
from apps.engine.trace import ModelCall, Step, ToolCall, Trace


def name_of(step: Step) -> str | None:
    """The name of the tool for a tool call, else of the step."""
    return step.call.name if isinstance(step.call, ToolCall) else step.name


def model_of(step: Step) -> str | None:
    """The model of a model call."""
    return step.call.model if isinstance(step.call, ModelCall) else None


def agent_of(trace: Trace, step: Step) -> str | None:
    """The name of the agent whose invocation the step belongs to."""
    number = step.invocation
    if number is None or not 0 <= number < len(trace.invocations):
        return None
    return trace.invocations[number].agent


def bodies_of(step: Step) -> dict[str, Any]:
    """What was recorded of `arguments`, `result` and `output` of a step.

    The first two are of a tool call. A model call, a message and every other step have
    an `output`, and so has a tool call: it is the result.
    """
    if step.body is None:
        return {}
    recorded: dict[str, Any] = {"output": step.body.output}
    if isinstance(step.call, ToolCall):
        recorded |= {
            "arguments": opened(step.body.input),
            "result": opened(step.body.output),
        }
    elif step.body.output is None:
        # Messages of people are held as what went in.
        recorded["output"] = step.body.input if step.call is None else None
    return {name: value for name, value in recorded.items() if value is not None}


def structure_of(trace: Trace, step: Step) -> dict[str, Any]:
    """Everything but texts: what the step is, whose, how it ended, what it used."""
    recorded: dict[str, Any] = {
        "seq": step.seq,
        "kind": step.kind.value,
        "name": name_of(step),
        "agent": agent_of(trace, step),
        "status": step.status.value,
        "error": step.error_type,
        "seconds": _seconds(step),
    }
    if isinstance(step.call, ModelCall):
        recorded |= {
            "model": step.call.model,
            "provider": step.call.provider,
            "finish": step.call.finish.value,
            "tokens": _tokens(step.call),
        }
    return {name: value for name, value in recorded.items() if value is not None}


def _seconds(step: Step) -> float | None:
    if step.start_ns is None or step.end_ns is None:
        return None
    return (step.end_ns - step.start_ns) / 1e9


def _tokens(call: ModelCall) -> dict[str, int] | None:
    usage = call.usage
    counts = {
        "input": usage.input_total,
        "output": usage.output_total if usage.is_known else None,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    return known or None
