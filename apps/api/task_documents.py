"""What the JSON door says of tasks and their trials, as `manage.py compare --json` does.

Steps count from 1, missing is null, 0 of 0 has no interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.urls import reverse
from rest_framework.request import Request

from apps.api.verdict_documents import decided_document
from apps.engine.consistency import share
from apps.engine.trials.documents import (
    Forked,
    consistency_document,
    decisive_document,
    fork_document,
)
from apps.engine.trials.plain import plain_share
from apps.scoring.models import AgentTaskScore, Conduct, TaskScore
from apps.traces.models import Task


def task_document(
    task: Task, score: TaskScore | None, request: Request
) -> dict[str, Any]:
    """A task of the list; before its trials are scored all that is scored is null."""
    address = reverse("api-task", args=[task.pk])
    return {
        "id": task.pk,
        "url": request.build_absolute_uri(address),
        "task": str(task),
        "key": task.key,
        "named_by": task.source,
        **(_NOT_SCORED if score is None else _scored(score)),
    }


_NOT_SCORED: dict[str, Any] = dict.fromkeys(
    ("trials", "outcome", "verdict", "agreement", "distinct", "stable_but_wrong",
     "fork_count", "first_fork", "decisive", "red_agents", "unstable_agents",
     "masked_agents", "is_gap")
)  # fmt: skip


def _scored(score: TaskScore) -> dict[str, Any]:
    return {
        "trials": score.trials,
        "outcome": {
            **plain_share(share(score.passed, score.passed + score.failed)),
            "trials": score.trials,
            "colour": score.outcome,
        },
        "verdict": score.consistency,
        "agreement": plain_share(share(score.majority, score.trials)),
        "distinct": score.distinct,
        "stable_but_wrong": score.is_stable_but_wrong,
        "fork_count": score.fork_count,
        "first_fork": score.first_fork,
        "decisive": score.decisive or None,
        "red_agents": score.red,
        "unstable_agents": score.unstable,
        "masked_agents": score.masked,
        "is_gap": score.is_gap,
    }


def whole_task_document(
    task: Task,
    score: TaskScore | None,
    agents: Sequence[AgentTaskScore],
    conducts: Sequence[Conduct],
    request: Request,
) -> dict[str, Any]:
    """A task with its trials, the agreement of each agent, and where the trials fork."""
    said = task_document(task, score, request)
    if score is None:
        return said
    branching = score.detail["branching"]
    by_agent: dict[int, list[Conduct]] = defaultdict(list)
    for one in conducts:
        by_agent[one.agent_id].append(one)
    return {
        **said,
        "trials": score.detail["trials"],
        "consistency": consistency_document(score.detail["consistency"]),
        "regimes": [consistency_document(one) for one in score.detail["regimes"]],
        "agents": [_agent(one, by_agent[one.agent_id]) for one in agents],
        "forks": [fork_document(one) for one in branching["forks"]],
        "decisive": decisive_document(branching["forks"], _forked(score)),
        "detours": branching["detours"],
        "statements": branching["statements"],
    }


def _forked(score: TaskScore) -> Forked:
    return Forked(
        trials=score.trials,
        passed=score.passed,
        failed=score.failed,
        fork_count=score.fork_count,
        decisive=score.decisive,
        by_chance=score.detail["branching"]["by_chance"],
    )


def _agent(one: AgentTaskScore, conducts: Sequence[Conduct]) -> dict[str, Any]:
    said = one.detail["consistency"]
    return {
        "agent": str(one.agent),
        "agent_id": one.agent_id,
        "decisions": [
            {
                "trial": str(conduct.trace_id),
                **decided_document(conduct),
                "colour": conduct.colour,
            }
            for conduct in conducts
        ],
        "agreement": said["agreement"],
        "exact": said["exact"],
        "structural": said["structural"],
        "verdict": one.consistency,
        "label": said["label"],
        "answers": said["answers"],
        "distinct_inputs": one.distinct_inputs or None,
        "consistency_reasons": said["reasons"],
        "colour": one.colour,
        "reasons": one.detail["reasons"],
        "gaps": one.detail["gaps"],
        "masked": one.is_masked,
        "contracts": {
            "held": one.held,
            "broken": one.broken,
            "undecided": one.undecided,
        },
    }
