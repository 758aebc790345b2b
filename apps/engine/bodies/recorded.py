"""Whether bodies were kept at all, and values that stand for something removed."""

from __future__ import annotations

from typing import Final

from apps.engine.sequences import once_per_trace
from apps.engine.trace import Trace

NO_BODIES: Final = (
    "No body of this trace was kept (structure only, or nothing was recorded), so "
    "there is nothing to read."
)
REDACTED: Final = "[redacted: "
"""How a mark begins that stands for a removed secret. Different secrets share one."""


@once_per_trace
def has_bodies(trace: Trace) -> bool:
    """Whether any step has a body.

    False for every trace of a project that keeps structure only.
    """
    return any(step.body is not None for step in trace.steps)
