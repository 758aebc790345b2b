"""The fields of Evalsite's own format, with their meaning: the page about it shows this.

One JSON object a line, one trace an object. Only `evalsite` and `steps` are required;
null means "not recorded" everywhere.
"""

from __future__ import annotations

from typing import Final

import msgspec


class Field(msgspec.Struct, frozen=True):
    """One field: its JSON path, what it means, whether it must be there."""

    path: str
    meaning: str
    required: bool = False


FIELDS: Final[tuple[Field, ...]] = (
    Field("evalsite", "The version of this format: 1.", required=True),
    Field("trace.name", "A short name for lists."),
    Field(
        "trace.id", "An id that is unique in the world; the same id is the same trace."
    ),
    Field("trace.session", "The conversation or thread that the trace belongs to."),
    Field("trace.task", "The key that the trials of one task share."),
    Field("trace.trial", "The number of the repeat, from 0 or 1."),
    Field("trace.start", "When it began: ISO 8601, or epoch s, ms, us or ns."),
    Field("trace.end", "When it ended."),
    Field(
        "trace.outcome",
        '"pass", "fail", or {kind: pass|fail|score|unknown, score, out_of, label, '
        "source}.",
    ),
    Field(
        "trace.order", '"time" or "file"; when absent, time if all steps have a start.'
    ),
    Field("trace.metadata", "An object of anything worth keeping."),
    Field("trace.labels", "Ground truth: shown to people, never to a check."),
    Field("trace.notes", "A list of sentences about how the trace came to be."),
    Field("agents[].id", "A name for this invocation, to be used by steps."),
    Field("agents[].name", "The agent. An agent may be invoked many times."),
    Field("agents[].parent", "The id of the invocation that invoked it."),
    Field("agents[].via", "root, handoff, tool, subagent or managed."),
    Field("agents[].start, .end, .status", "As for steps."),
    Field("steps", "The events of the trace, in order.", required=True),
    Field(
        "steps[].kind",
        "model_call, tool_call, handoff, agent, retrieval, guardrail, user_message, "
        "system, memory or other.",
        required=True,
    ),
    Field("steps[].agent", "The name of the agent; its invocation is found by name."),
    Field(
        "steps[].invocation", "The id of an invocation of `agents`, in place of agent."
    ),
    Field("steps[].parent", "The number of the step above it, from 0."),
    Field("steps[].name", "The name of the step; of a tool call, the tool."),
    Field("steps[].start, steps[].end", "Times, as in trace.start."),
    Field(
        "steps[].status", "ok, error, unset or unfinished; error when `error` is set."
    ),
    Field("steps[].error", "A text, or {type, message}."),
    Field("steps[].input", "Messages sent, or the arguments of a tool call."),
    Field("steps[].output", "The answer, or the result of a tool call."),
    Field("steps[].reasoning", "What the model thought, where recorded."),
    Field("steps[].attributes", "An object of anything else of this step."),
    Field(
        "steps[].id, steps[].native_kind", "The step's own id and kind in your system."
    ),
    Field("steps[].model, steps[].provider", "Of a model call."),
    Field(
        "steps[].finish",
        "Why the model stopped: stop, length, tool_calls, content_filter, error.",
    ),
    Field(
        "steps[].usage",
        "Token counts {input, output, cached, cache_write, reasoning, total}: whole "
        "numbers from 0; null or absent is not recorded, never 0.",
    ),
    Field(
        "steps[].usage.state", "Only to say more: vendor_estimate, aggregate_only, …"
    ),
    Field("steps[].response_id, steps[].conversation", "Of a model call."),
    Field("steps[].retry_of", "The number of the failed step that this call repeats."),
    Field("steps[].placeholder", "true for a call that was announced, not made."),
    Field("steps[].resets_context", "true where the context was cleared or compacted."),
    Field(
        "steps[].tool_call_ids", "The ids of the tool calls that the answer asks for."
    ),
    Field("steps[].call_id", "Of a tool call: the id that the model gave it."),
    Field("steps[].requested_by", "Of a tool call: the number of the asking step."),
)

EXAMPLE: Final = (
    '{"evalsite": 1, "trace": {"name": "refund", "task": "refund", "trial": 0, '
    '"outcome": "pass"}, "steps": [{"kind": "user_message", "output": "I was charged '
    'twice"}, {"kind": "model_call", "agent": "billing", "model": "m-1", "start": '
    '"2026-01-05T10:00:00Z", "end": "2026-01-05T10:00:02Z", "usage": {"input": 30, '
    '"output": 112}, "output": "Let me look."}, {"kind": "tool_call", "agent": '
    '"billing", "name": "get_ledger", "input": {"account": "A-100"}, "output": []}]}'
)
