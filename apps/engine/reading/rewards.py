"""Rewards and verdicts as benchmarks record them, made into an `Outcome`."""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.text_limits import LABEL
from apps.engine.trace import UNKNOWN_OUTCOME, Outcome, OutcomeKind

_KINDS: Final = {0.0: OutcomeKind.FAIL, 1.0: OutcomeKind.PASS}


def outcome_of_reward(reward: Any, source: str) -> Outcome:
    """Return pass for a reward of 1 or true, fail for 0 or false, else a score of 1.

    What is no finite number gives an unknown outcome.
    """
    if isinstance(reward, bool):
        kind = OutcomeKind.PASS if reward else OutcomeKind.FAIL
        return Outcome(kind=kind, label=str(reward).lower(), source=source)
    # A whole number of hundreds of digits is no float, and NaN fits between no bounds.
    if not isinstance(reward, int | float) or not abs(reward) <= 1e300:
        return UNKNOWN_OUTCOME
    return Outcome(
        kind=_KINDS.get(float(reward), OutcomeKind.SCORE),
        score=float(reward),
        out_of=1.0,
        label=str(reward)[:LABEL],
        source=source,
    )
