"""Patterns: short rules that say in which runs a target is more frequent.

A rule is found by looking at many; the p beside it counts all of them and that trials
of one task are not independent. It describes runs and names no cause.
"""

from apps.engine.patterns.candidates import Minimum
from apps.engine.patterns.conditions import Condition, Kind
from apps.engine.patterns.features import features_of, stored_value
from apps.engine.patterns.findings import Finding, Near, Patterns, Share, Wording
from apps.engine.patterns.search import ALPHA, Plan, find_patterns
from apps.engine.patterns.units import Unit, Value

__all__ = [
    "ALPHA",
    "Condition",
    "Finding",
    "Kind",
    "Minimum",
    "Near",
    "Patterns",
    "Plan",
    "Share",
    "Unit",
    "Value",
    "Wording",
    "features_of",
    "find_patterns",
    "stored_value",
]
