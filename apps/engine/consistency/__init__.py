"""Consistency: how far the trials of one task agree in what was decided.

It compares extracted decisions, never prose, keeps crashes and missing decisions in
the denominator, and says nothing about who is right.
"""

from __future__ import annotations

from apps.engine.consistency.conducted import TrialConduct, TrialState, regime_of
from apps.engine.consistency.rule import (
    FEWEST_DECIDED,
    LABELS,
    REGIME_LABELS,
    RULE,
    SMALLEST_STABLE,
    UNSTABLE,
    Regime,
    Stability,
)
from apps.engine.consistency.scored import (
    MOST_CONTRADICTIONS,
    Answer,
    Consistency,
    Contradiction,
    Inputs,
    Majority,
    Undecided,
)
from apps.engine.consistency.scoring import by_regime, consistency_of
from apps.engine.consistency.shares import Share, counted, share
from apps.engine.consistency.summary import Summary, summary, summary_of_counts

__all__ = [
    "FEWEST_DECIDED",
    "LABELS",
    "MOST_CONTRADICTIONS",
    "REGIME_LABELS",
    "RULE",
    "SMALLEST_STABLE",
    "UNSTABLE",
    "Answer",
    "Consistency",
    "Contradiction",
    "Inputs",
    "Majority",
    "Regime",
    "Share",
    "Stability",
    "Summary",
    "TrialConduct",
    "TrialState",
    "Undecided",
    "by_regime",
    "consistency_of",
    "counted",
    "regime_of",
    "share",
    "summary",
    "summary_of_counts",
]
