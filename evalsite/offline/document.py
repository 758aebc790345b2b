"""What `manage.py compare` finds, as one JSON document; tables are made of it too.

Every count is `k` of `n` with its 95 % Wilson interval as `low` and `high`, `None` for
0 of 0. Steps count from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from apps.engine.check import percent
from apps.engine.consistency import Share, share
from apps.engine.patterns import Finding, Patterns
from apps.engine.trials import AgentTaskScore, ConductScore, TaskScore
from apps.engine.trials.documents import (
    Forked,
    consistency_document,
    decisive_document,
    fork_document,
    gap_document,
)
from apps.engine.trials.plain import plain_share
from apps.engine.trials.project import ProjectScore, ScoredAgent
from evalsite.offline.reading import Complaint
from evalsite.offline.trials import FoundTask, FoundTrial, TaskSource

VERSION: Final = 1


class Compared(msgspec.Struct, frozen=True):
    """Everything that one call found. `tasks` and `scores` go together."""

    tasks: Sequence[FoundTask]
    scores: Sequence[TaskScore]
    project: ProjectScore
    patterns: dict[str, Patterns]
    said: Sequence[Complaint]
    compare: str


def document_of(found: Compared) -> dict[str, Any]:
    """The whole document as JSON values, the same for the same files in any order."""
    names = found.project.names
    report = found.project.report
    tasks = [
        _task(task, score, names)
        for task, score in zip(found.tasks, found.scores, strict=True)
    ]
    return {
        "evalsite_compare": VERSION,
        "compared_by": found.compare,
        "traces": sum(len(task.trials) for task in found.tasks),
        "masking": {
            "headline": report.headline,
            "agents": [
                {
                    "agent": one.agent,
                    "colour": one.colour.value,
                    "traces": plain_share(one.traces),
                    "tasks": plain_share(one.tasks),
                    "sentence": f"{one.headline}.",
                    "reasons": [reason.sentence for reason in one.reasons],
                }
                for one in report.maskings
            ],
        },
        "outcomes": {"traces": _of_traces(found), "tasks": _of_tasks(found)},
        "agents": [_agent(one) for one in found.project.agents],
        "tasks": tasks,
        "gaps": [gap_document(one) for one in report.gaps],
        "patterns": {name: _patterns(one) for name, one in found.patterns.items()},
        "unread": [_complaint(one) for one in found.said if _is_unread(one)],
        "remarks": [_complaint(one) for one in found.said if not _is_unread(one)],
    }


def _of_traces(found: Compared) -> dict[str, Any]:
    of = found.project.traces
    known = of.passed + of.failed
    total = sum(len(task.trials) for task in found.tasks)
    return {**plain_share(share(of.passed, known)), "unknown": total - known}


def _of_tasks(found: Compared) -> dict[str, int]:
    """How many tasks passed in every known trial, failed in every one, and so on."""
    counts = dict.fromkeys(("green", "red", "mixed", "unknown"), 0)
    single = 0
    for task, score in zip(found.tasks, found.scores, strict=True):
        if task.source is TaskSource.NOTHING:
            single += 1
        else:
            counts[score.outcome] += 1
    return {**counts, "single": single}


def _task(task: FoundTask, score: TaskScore, names: dict[str, str]) -> dict[str, Any]:
    known = score.passed + score.failed
    branching = score.detail["branching"]
    return {
        "task": task.name,
        "key": task.key,
        "named_by": task.source.value,
        "trials": [_trial(one) for one in task.trials],
        "outcome": {
            **plain_share(share(score.passed, known)),
            "trials": score.trials,
            "colour": score.outcome,
        },
        "consistency": consistency_document(score.detail["consistency"]),
        "agents": [_agent_in_task(one, task, names) for one in score.agents],
        "forks": [fork_document(one) for one in branching["forks"]],
        "fork_count": score.fork_count,
        "first_fork": score.first_fork,
        "decisive": _decisive(score),
        "detours": branching["detours"],
        "statements": branching["statements"],
        "masking": [_masked(one, task, names) for one in score.agents if one.is_masked],
        "is_gap": score.is_gap,
    }


def _trial(one: FoundTrial) -> dict[str, Any]:
    read = one.read
    return {
        "id": one.id,
        "file": read.file,
        "member": read.member or None,
        "trace": read.name,
        "trial": read.trial,
        "outcome": read.outcome.kind.value,
        "score": read.outcome.score,
        "out_of": read.outcome.out_of,
        "verdict": read.score.outcome,
        "reason": read.score.outcome_reason,
        "state": read.score.decided.state,
        "decision": read.score.decided.shown,
    }


def _agent_in_task(
    one: AgentTaskScore, task: FoundTask, names: dict[str, str]
) -> dict[str, Any]:
    said = one.detail["consistency"]
    return {
        "agent": names[one.agent],
        "key": one.agent,
        "decisions": [
            _decision(trial, conduct)
            for trial in task.trials
            for conduct in trial.read.score.conducts
            if conduct.agent == one.agent
        ],
        "agreement": said["agreement"],
        "exact": said["exact"],
        "structural": said["structural"],
        "verdict": one.consistency,
        "label": said["label"],
        "answers": said["answers"],
        "distinct_inputs": one.distinct_inputs,
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


def _decision(trial: FoundTrial, conduct: ConductScore) -> dict[str, Any]:
    decided = conduct.decided
    return {
        "trial": trial.id,
        "state": decided.state,
        "decision": decided.shown,
        "how": decided.how,
        "step": None if decided.step is None else decided.step + 1,
        "colour": conduct.colour,
    }


def _decisive(score: TaskScore) -> dict[str, Any]:
    return decisive_document(
        score.detail["branching"]["forks"],
        Forked(
            trials=score.trials,
            passed=score.passed,
            failed=score.failed,
            fork_count=score.fork_count,
            decisive=score.decisive,
            by_chance=score.detail["branching"]["by_chance"],
        ),
    )


def _masked(
    one: AgentTaskScore, task: FoundTask, names: dict[str, str]
) -> dict[str, Any]:
    red = [trial.id for trial in task.trials if one.agent in trial.read.score.masked]
    passed = sum(trial.read.score.outcome == "green" for trial in task.trials)
    name = names[one.agent]
    if red:
        of = share(len(red), passed).words
        sentence = f"{name} is red in {of} of the trials that passed."
    else:
        sentence = f"{name} is {one.colour} though every trial with an outcome passed."
    return {
        "agent": name,
        "colour": "red" if red else one.colour,
        "trials": red,
        "sentence": sentence,
    }


def _agent(one: ScoredAgent) -> dict[str, Any]:
    of = one.evidence
    return {
        "agent": one.name,
        "key": one.agent,
        "verdict": one.verdict.colour.value,
        "reasons": [reason.sentence for reason in one.verdict.reasons],
        "gaps": [gap.sentence for gap in one.verdict.gaps],
        "traces": of.traces,
        "tasks": of.tasks,
        "invocations": of.invocations,
        "failed": of.failed,
        "masked": {
            "traces": plain_share(one.traces.share),
            "tasks": plain_share(one.tasks.share),
        },
        "contracts": {
            "defined": of.contracts,
            "applied": of.contracts_applied,
            **plain_share(share(of.held, of.applied)),
            "held": of.held,
            "broken": of.broken,
            "undecided": of.undecided,
            "not_applying": of.not_applying,
        },
        "consistency": {
            "stable": of.stable,
            "drifting": of.drifting,
            "non_deterministic": of.non_deterministic,
            "insufficient": of.insufficient,
            "stable_but_wrong": of.stable_but_wrong,
        },
        "tools": one.tools,
        "models": one.models,
    }


def _patterns(found: Patterns) -> dict[str, Any]:
    return {
        "sentence": found.sentence,
        **plain_share(share(found.overall.hits, found.overall.of)),
        "tasks": found.tasks,
        "features": found.features,
        "rules": found.rules,
        "smallest_p": found.smallest_p,
        "alpha": found.alpha,
        "found": [_rule(one) for one in found.findings],
    }


def _rule(one: Finding) -> dict[str, Any]:
    return {
        "where": one.words,
        "sentence": one.sentence,
        "inside": plain_share(share(one.inside.hits, one.inside.of)),
        "outside": plain_share(share(one.outside.hits, one.outside.of)),
        "not_known": one.not_known,
        "lift": one.lift,
        "p": one.p,
        "fisher": one.fisher,
        "tasks": one.tasks,
        "runs": list(one.unit_ids),
        "near": [near.words for near in one.near],
    }


def _is_unread(one: Complaint) -> bool:
    return one.is_incomplete or one.is_rejected


def _complaint(one: Complaint) -> dict[str, Any]:
    return {"file": one.file, "place": one.place or None, "sentence": one.sentence}


def in_short(found: Share | dict[str, Any]) -> str:
    """`3 of 4 (30.1 % to 95.4 %)`: the count and the bounds of its interval."""
    said = plain_share(found) if isinstance(found, Share) else found
    counts = f"{said['k']:,} of {said['n']:,}"
    if said["low"] is None:
        return counts
    return f"{counts} ({percent(said['low'])} to {percent(said['high'])})"
