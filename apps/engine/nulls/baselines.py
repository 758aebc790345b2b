"""How unusual the calls of one trace are beside those of a set of other traces.

Two null models for each question. By call: the calls of this trace and those of the
baseline with the same name are exchangeable; calls of one trace share its moment and
its machine, so this p is too small where traces differ among one another. By trace:
this trace is exchangeable with the traces of the baseline, which asks for no
independence inside a trace, but cannot be smaller than 1 / (traces + 1).
"""

from __future__ import annotations

from apps.engine.nulls.failures import (
    ErrorBaseline,
    ErrorShift,
    ToolErrors,
    error_baseline,
    error_shift,
)
from apps.engine.nulls.latencies import (
    LatencyBaseline,
    LatencyShift,
    latency_baseline,
    latency_shift,
)
from apps.engine.nulls.ranks import FEWEST_SAMPLES, MOST_SAMPLES

__all__ = [
    "FEWEST_SAMPLES",
    "MOST_SAMPLES",
    "ErrorBaseline",
    "ErrorShift",
    "LatencyBaseline",
    "LatencyShift",
    "ToolErrors",
    "error_baseline",
    "error_shift",
    "latency_baseline",
    "latency_shift",
]
