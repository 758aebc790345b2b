"""Serial sequences: model calls of one agent that ran one after another, unchanged.

A sequence says that its calls happened in this order with the same model, provider
and conversation, and nothing more. It never says that one call caused the next. Who
owns a step is settled by the reader (`Step.invocation` is the final invocation: spans
of single steps have been climbed over there); nothing is guessed about it here.
"""

from apps.engine.sequences.agents import AgentCalls, agent_calls
from apps.engine.sequences.attempts import Attempts, attempts_of
from apps.engine.sequences.once import once_per_trace
from apps.engine.sequences.recorded import RecordedCall, Removal, recorded_calls
from apps.engine.sequences.serial import Boundary, SerialSequence, serial_sequences
from apps.engine.sequences.tools import (
    ToolSequence,
    outermost_calls,
    steps_in_order,
    tool_sequences,
)
from apps.engine.sequences.turns import Turn, has_handoffs, turns_of

__all__ = [
    "AgentCalls",
    "Attempts",
    "Boundary",
    "RecordedCall",
    "Removal",
    "SerialSequence",
    "ToolSequence",
    "Turn",
    "agent_calls",
    "attempts_of",
    "has_handoffs",
    "once_per_trace",
    "outermost_calls",
    "recorded_calls",
    "serial_sequences",
    "steps_in_order",
    "tool_sequences",
    "turns_of",
]
