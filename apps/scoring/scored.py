"""What the engine says of a trace or a task, where nothing may stop the work.

A trace on which scoring breaks is our fault and no reason to leave all others without a
score: it gets one that says so, and nothing is known from it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from apps.engine.extraction import DecisionState
from apps.engine.trials import Asked, score_task, score_trace
from apps.engine.trials.scores import Decided, TaskScore, TraceScore, Trial
from apps.traces.contents import StoredContent

logger = logging.getLogger(__name__)

BROKE: Final = "scoring broke"
"""The word in `Decided.how` of a trace on which scoring broke."""


def trace_score_of(
    content: StoredContent, asked: Asked, findings: Sequence[str]
) -> TraceScore:
    """The score of a stored trace; an unknown one that says so where scoring breaks."""
    try:
        return score_trace(content.decoded(), asked, findings)
    except Exception as error:
        logger.exception("Scoring broke on the trace %s", content.trace.pk)
        return broken_score(error)


def broken_score(error: Exception) -> TraceScore:
    """What is stored where a trace could not be scored, and why."""
    return TraceScore(
        outcome="unknown",
        outcome_reason=(
            f"Evalsite's scoring broke on this trace ({type(error).__name__}). That is "
            "our fault, and nothing is known of its agents or its outcome from it."
        ),
        decided=Decided(state=DecisionState.MISSING.value, how=BROKE),
        points=b"",
    )


def task_score_of(task_id: int, trials: Sequence[Trial]) -> TaskScore:
    """The score of a task; one from the outcomes alone where comparing trials breaks.

    `detail["broke"]` is a sentence then.
    """
    try:
        return score_task(trials)
    except Exception as error:
        logger.exception("Scoring broke on the task %s", task_id)
        found = score_task([_outcome_alone(trial) for trial in trials])
        said = (
            f"Evalsite's comparison of these trials broke ({type(error).__name__}). "
            "That is our fault: only their outcomes are known."
        )
        return msgspec.structs.replace(found, detail={**found.detail, "broke": said})


def _outcome_alone(trial: Trial) -> Trial:
    bare = TraceScore(
        outcome=trial.score.outcome,
        outcome_reason=trial.score.outcome_reason,
        decided=Decided(state=DecisionState.MISSING.value, how=BROKE),
        points=b"",
    )
    return Trial(id=trial.id, label=trial.label, score=bare)
