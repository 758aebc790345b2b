"""Null models: how often chance alone gives a shape, and under which assumptions.

Each function states its assumptions, its source and what it was checked against. A
small probability says that the null model fits the values badly; it does not say
which other cause does fit. Nothing here reads a trace.
"""

from apps.engine.nulls.association import Association, association, fisher_exact
from apps.engine.nulls.dependence import (
    AUTOREGRESSION_PHIS,
    falling_under_autoregression,
    sensitivity,
)
from apps.engine.nulls.ordering import (
    MannKendall,
    any_falling_run,
    falling_order,
    falling_order_floor,
    mann_kendall,
    never_rises,
)
from apps.engine.nulls.transitions import TransitionTail, transition_tail
from apps.engine.nulls.windows import (
    DriftNull,
    drift_null,
    entropy,
    entropy_lattice,
)

__all__ = [
    "AUTOREGRESSION_PHIS",
    "Association",
    "DriftNull",
    "MannKendall",
    "TransitionTail",
    "any_falling_run",
    "association",
    "drift_null",
    "entropy",
    "entropy_lattice",
    "falling_order",
    "falling_order_floor",
    "falling_under_autoregression",
    "fisher_exact",
    "mann_kendall",
    "never_rises",
    "sensitivity",
    "transition_tail",
]
