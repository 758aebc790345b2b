"""What the bodies of steps say, in a form that can be compared and searched.

Bodies hold whatever a format recorded: texts, JSON in texts, messages of a dozen
vendors. What is read here is text and number, never meaning: two arguments are equal
or not, a number stands in a text or does not. Everything is bounded, and what was cut
is said.
"""

from apps.engine.bodies.answers import FinalAnswer, final_answer
from apps.engine.bodies.calls import CalledTool, ToolLane, tool_lanes
from apps.engine.bodies.canonical import canonical
from apps.engine.bodies.recorded import has_bodies

__all__ = [
    "CalledTool",
    "FinalAnswer",
    "ToolLane",
    "canonical",
    "final_answer",
    "has_bodies",
    "tool_lanes",
]
