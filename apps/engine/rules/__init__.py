"""What checks share, so that a check's file holds its texts, its limits and its rule.

A rule need not be built on one of these: whatever satisfies `Check` is a check.
"""

from apps.engine.rules.of_calls import (
    LaneRule,
    SequenceRule,
    ToolRule,
    nothing_read,
    nothing_to_compare,
)
from apps.engine.rules.of_shifts import OF_ITSELF, ShiftRule
from apps.engine.rules.rule import Rule

__all__ = [
    "OF_ITSELF",
    "LaneRule",
    "Rule",
    "SequenceRule",
    "ShiftRule",
    "ToolRule",
    "nothing_read",
    "nothing_to_compare",
]
