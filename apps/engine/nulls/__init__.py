"""Null models: how often chance alone gives a shape, and under which assumptions.

Each function states its assumptions, its source and what it was checked against. A
small probability says that the null model fits the values badly; it does not say
which other cause does fit. Nothing here reads a trace.
"""

from apps.engine.nulls.association import Association, association, fisher_exact
from apps.engine.nulls.baselines import (
    FEWEST_SAMPLES,
    MOST_SAMPLES,
    ErrorBaseline,
    ErrorShift,
    LatencyBaseline,
    LatencyShift,
    ToolErrors,
    error_baseline,
    error_shift,
    latency_baseline,
    latency_shift,
)
from apps.engine.nulls.bootstrap import bootstrap_difference
from apps.engine.nulls.catalogue import NULL_MODELS, NullModel
from apps.engine.nulls.counts import CountNull, count_null
from apps.engine.nulls.dependence import (
    AUTOREGRESSION_PHIS,
    falling_under_autoregression,
    sensitivity,
)
from apps.engine.nulls.intervals import (
    Interval,
    binomial_at_least,
    clopper_pearson,
    newcombe,
    wilson,
)
from apps.engine.nulls.multiplicity import benjamini_hochberg
from apps.engine.nulls.ordering import (
    MannKendall,
    any_falling_run,
    falling_order,
    falling_order_floor,
    mann_kendall,
    never_rises,
)
from apps.engine.nulls.permutation import (
    PermutationTest,
    Sample,
    Statistic,
    permutation_test,
)
from apps.engine.nulls.streaks import STREAK_EXACT_UP_TO, streak_chance
from apps.engine.nulls.transitions import TransitionTail, transition_tail
from apps.engine.nulls.windows import (
    DriftNull,
    drift_null,
    entropy,
    entropy_lattice,
)

__all__ = [
    "AUTOREGRESSION_PHIS",
    "FEWEST_SAMPLES",
    "MOST_SAMPLES",
    "NULL_MODELS",
    "STREAK_EXACT_UP_TO",
    "Association",
    "CountNull",
    "DriftNull",
    "ErrorBaseline",
    "ErrorShift",
    "Interval",
    "LatencyBaseline",
    "LatencyShift",
    "MannKendall",
    "NullModel",
    "PermutationTest",
    "Sample",
    "Statistic",
    "ToolErrors",
    "TransitionTail",
    "any_falling_run",
    "association",
    "benjamini_hochberg",
    "binomial_at_least",
    "bootstrap_difference",
    "clopper_pearson",
    "count_null",
    "drift_null",
    "entropy",
    "entropy_lattice",
    "error_baseline",
    "error_shift",
    "falling_order",
    "falling_order_floor",
    "falling_under_autoregression",
    "fisher_exact",
    "latency_baseline",
    "latency_shift",
    "mann_kendall",
    "never_rises",
    "newcombe",
    "permutation_test",
    "sensitivity",
    "streak_chance",
    "transition_tail",
    "wilson",
]
