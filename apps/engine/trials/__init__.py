"""What the trials of a task have in common, and how each agent stands beside the outcome.

From recorded traces alone: a trace is scored by what is asked of its agents, a task by
the scores of its trials. Nothing here says that an agent caused an outcome.
"""

from apps.engine.trials.asked import AgentAsked, Asked
from apps.engine.trials.scores import (
    AgentTaskScore,
    ConductScore,
    Decided,
    TaskScore,
    TraceScore,
    Trial,
)
from apps.engine.trials.tasks import branching_of_trials, evidence_of, score_task
from apps.engine.trials.traces import merged_conducts, score_trace

__all__ = [
    "AgentAsked",
    "AgentTaskScore",
    "Asked",
    "ConductScore",
    "Decided",
    "TaskScore",
    "TraceScore",
    "Trial",
    "branching_of_trials",
    "evidence_of",
    "merged_conducts",
    "score_task",
    "score_trace",
]
