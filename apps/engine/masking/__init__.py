"""Masking: what is said of each agent beside what is said of the whole pipeline.

Verdicts come from counted, typed results only. Unknown is never green, and an unknown
outcome masks nothing.
"""

from __future__ import annotations

from apps.engine.masking.alone import AloneEvidence
from apps.engine.masking.colours import (
    COLOURS,
    OUTCOME_WORDS,
    WORDS,
    Colour,
    ColourWords,
    OutcomeColour,
    worst,
)
from apps.engine.masking.masking import (
    MASKABLE,
    AgentCounts,
    Gap,
    GapKind,
    Judged,
    Masked,
    Masking,
    MaskingReport,
    OutcomeCounts,
    agent_counts,
    hidden_alone,
    is_unseen_failure,
    masked,
    masking_report,
    outcome_counts,
    outcome_of,
    outcome_of_trials,
)
from apps.engine.masking.reasons import Reason, ReasonCode
from apps.engine.masking.verdict import (
    AgentEvidence,
    Extent,
    Verdict,
    verdict_of,
)

__all__ = [
    "COLOURS",
    "MASKABLE",
    "OUTCOME_WORDS",
    "WORDS",
    "AgentCounts",
    "AgentEvidence",
    "AloneEvidence",
    "Colour",
    "ColourWords",
    "Extent",
    "Gap",
    "GapKind",
    "Judged",
    "Masked",
    "Masking",
    "MaskingReport",
    "OutcomeColour",
    "OutcomeCounts",
    "Reason",
    "ReasonCode",
    "Verdict",
    "agent_counts",
    "hidden_alone",
    "is_unseen_failure",
    "masked",
    "masking_report",
    "outcome_counts",
    "outcome_of",
    "outcome_of_trials",
    "verdict_of",
    "worst",
]
