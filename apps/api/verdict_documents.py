"""What the JSON door says of verdicts and agents. Steps count from 1, missing is null.

Every count is `k` of `n` with its 95 % Wilson interval as `low` and `high`, null for
0 of 0. The names are those of `manage.py compare --json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from django.urls import reverse
from rest_framework.request import Request

from apps.agents.models import Agent, AgentDefinition
from apps.engine.agent_contracts import (
    AgentContractSpec,
    Unread,
    plain_sentence,
    stored_contracts,
    stored_decision,
)
from apps.engine.consistency import share
from apps.engine.extraction import AUTOMATIC, encoded
from apps.engine.extraction.wording import sentence_of
from apps.engine.masking import AloneEvidence, Masking, OutcomeCounts
from apps.engine.trials.documents import gap_document
from apps.engine.trials.plain import plain_share
from apps.reports.assessment import StandingPart
from apps.scoring.definitions import unread_of
from apps.scoring.models import Conduct, TraceScore
from apps.traces.models import Trace
from apps.verdicts.models import AgentVerdict, PatternSearch
from apps.verdicts.queries import Change, ProjectStanding

_CONSISTENCY = (
    "stable", "drifting", "non_deterministic", "insufficient", "stable_but_wrong",
)  # fmt: skip
_ANSWERS = ("held", "broken", "undecided", "not_applying")


def scores_document(standing: StandingPart) -> dict[str, Any]:
    """How current the scores are: while `is_behind`, nothing here is final."""
    return {
        "is_behind": standing.is_behind,
        "traces_left": standing.left,
        "settled_at": standing.settled_at or None,
    }


def verdicts_document(
    found: ProjectStanding | None, by_colour: Mapping[str, int]
) -> dict[str, Any]:
    """The headline of masking with the agents, the gaps, and what changed."""
    if found is None:
        return {
            "headline": None,
            "outcomes": None,
            "agents": dict(by_colour),
            "maskings": [],
            "gaps": [],
            "changes": [],
        }
    return {
        "headline": found.report.headline,
        "outcomes": {
            "traces": _outcomes(found.traces.counts, found.traces.n),
            "tasks": _outcomes(found.tasks.counts, found.tasks.n),
        },
        "agents": dict(by_colour),
        "maskings": [_masking(one) for one in found.report.maskings],
        "gaps": [gap_document(one) for one in found.report.gaps],
        "changes": [_change(one) for one in found.changes],
    }


def _outcomes(counts: OutcomeCounts, n: int) -> dict[str, Any]:
    known = counts.passed + counts.failed
    return {
        **plain_share(share(counts.passed, known)),
        "passed": counts.passed,
        "failed": counts.failed,
        "mixed_or_unknown": n - known,
        "failed_with_every_agent_green": counts.all_green,
    }


def _masking(one: Masking) -> dict[str, Any]:
    return {
        "agent": one.agent,
        "colour": one.colour.value,
        "traces": plain_share(one.traces),
        "tasks": plain_share(one.tasks),
        "sentence": f"{one.headline}.",
        "reasons": [reason.sentence for reason in one.reasons],
    }


def _change(one: Change) -> dict[str, Any]:
    return {
        "agent": one.agent,
        "agent_id": one.agent_id,
        "before": one.before,
        "after": one.after,
        "at": one.at,
        "reason": one.reason or None,
    }


def agent_document(
    agent: Agent, verdict: AgentVerdict | None, request: Request
) -> dict[str, Any]:
    """An agent with its verdict; before a first one it is unknown and counts are null."""
    address = reverse("api-agent", args=[agent.pk])
    said = {
        "id": agent.pk,
        "url": request.build_absolute_uri(address),
        "agent": str(agent),
        "key": agent.key,
        "description": agent.description or None,
        "verdict": "unknown" if verdict is None else verdict.colour,
        "reasons": [] if verdict is None else _sentences(verdict, "reasons"),
    }
    return {**said, **(_NOT_SETTLED if verdict is None else _counts(verdict))}


_NOT_SETTLED: dict[str, Any] = dict.fromkeys(
    ("traces", "tasks", "invocations", "failed", "masked", "contracts", "consistency",
     "memory", "findings", "alone")
)  # fmt: skip


def _sentences(verdict: AgentVerdict, what: str) -> list[str]:
    return [one["sentence"] for one in verdict.detail[what]]


def _counts(verdict: AgentVerdict) -> dict[str, Any]:
    of: dict[str, Any] = verdict.evidence
    decided = of["recalled"] + of["lost"] + of["contradicted"]
    return {
        "traces": verdict.traces,
        "tasks": verdict.tasks,
        "invocations": of["invocations"],
        "failed": of["failed"],
        "masked": {
            "traces": plain_share(share(verdict.masked_traces, verdict.green_traces)),
            "tasks": plain_share(share(verdict.masked_tasks, verdict.green_tasks)),
            "alone": verdict.hidden_alone or None,
        },
        "contracts": {
            "defined": of["contracts"],
            "applied": of["contracts_applied"],
            **plain_share(share(of["held"], _applied(of))),
            **{name: of[name] for name in _ANSWERS},
        },
        "consistency": {name: of[name] for name in _CONSISTENCY},
        "memory": {
            **plain_share(share(of["recalled"], decided)),
            "lost": of["lost"],
            "contradicted": of["contradicted"],
        },
        "findings": of["findings"],
        "alone": _alone(of.get("alone") or {}),
    }


def _alone(of: Mapping[str, int]) -> dict[str, Any] | None:
    """The counts of the newest replays of each case; `None` where there are none."""
    if not of.get("runs"):
        return None
    found = msgspec.convert(of, AloneEvidence)
    return {
        "runs": found.runs,
        "cases": found.cases,
        "failed": found.failed,
        "breaches": found.breaches,
        "contracts": {
            **plain_share(share(found.held, found.applied)),
            **{name: getattr(found, name) for name in _ANSWERS},
        },
        "consistency": {name: getattr(found, name) for name in _CONSISTENCY[:4]},
        "memory": {
            **plain_share(share(found.recalled, found.facts)),
            "lost": found.lost,
            "contradicted": found.contradicted,
            "unclear": found.unclear,
        },
    }


def _applied(of: Mapping[str, int]) -> int:
    return of["held"] + of["broken"] + of["undecided"]


def whole_agent_document(
    agent: Agent,
    verdict: AgentVerdict | None,
    definition: AgentDefinition | None,
    request: Request,
    *,
    is_behind: bool,
) -> dict[str, Any]:
    """An agent with its gaps, tools, models, and what is asked of it.

    Where scores are behind, what contracts answered is of an older version, and null.
    """
    detail: dict[str, Any] = {} if verdict is None else verdict.detail
    counted = [] if is_behind else detail.get("contracts", [])
    answered = {one["place"]: one for one in counted}
    return {
        **agent_document(agent, verdict, request),
        "gaps": [one["sentence"] for one in detail.get("gaps", [])],
        "tools": detail.get("tools", []),
        "models": detail.get("models", []),
        "asked": (
            None
            if definition is None
            else definition_document(definition, answered=answered)
        ),
        "agent_decision": decision_document(definition),
        "unread": list(unread_of(definition)),
    }


def decision_document(row: AgentDefinition | None) -> dict[str, Any]:
    """How the agent decision is found, as a definition and as a sentence.

    What cannot be read says so, and is given as it is stored.
    """
    spec = (
        AUTOMATIC if row is None else stored_decision(row.decision, version=row.number)
    )
    if isinstance(spec, Unread):
        return {"kind": None, "stored": spec.stored, "unread": spec.sentence}
    return {**encoded(spec), "sentence": sentence_of(spec)}


def definition_document(
    row: AgentDefinition, *, answered: Mapping[int, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """One version of what is asked of an agent: who said so, when, and each contract.

    `answered` are the counts of the contracts by place, for the version that counts.
    """
    return {
        "number": row.number,
        "by": row.created_by.label if row.created_by else None,
        "at": row.created_at,
        "note": row.note or None,
        "decision": row.decision,
        "contracts": [
            {
                "contract": row.held[place],
                **_said(one),
                **({} if answered is None else _answers(answered.get(place))),
            }
            for place, one in enumerate(stored_contracts(row.held, version=row.number))
        ],
    }


def _said(one: AgentContractSpec | Unread) -> dict[str, Any]:
    """What a contract says, or why it cannot be read."""
    if isinstance(one, Unread):
        return {"sentence": None, "unread": one.sentence}
    return {"sentence": plain_sentence(one)}


def _answers(found: Mapping[str, Any] | None) -> dict[str, Any]:
    if found is None:
        return {"answers": None}
    return {
        "answers": {
            **plain_share(share(found["held"], _applied(found))),
            **{name: found[name] for name in _ANSWERS},
            "newest_trace_that_breaks": found["broken_trace"],
        }
    }


def pattern_document(row: PatternSearch) -> dict[str, Any]:
    """What one search found; without rules `sentence` says that none beats chance."""
    return {"target": row.target, "made_at": row.made_at, **row.found}


def conducts_document(
    trace: Trace, score: TraceScore | None, conducts: Sequence[Conduct]
) -> dict[str, Any]:
    """What each agent did in one trace; null and no agents before it is scored."""
    return {
        "trace": trace.pk,
        "name": trace.name,
        "task": trace.task_id,
        "trial": trace.trial,
        "outcome": "unknown" if score is None else score.outcome,
        "reason": None if score is None else score.outcome_reason,
        "is_scored": score is not None,
        "is_gap": None if score is None else score.is_gap,
        "decision": None if score is None else decided_document(score),
        "memory": [] if score is None else [_recall(one) for one in score.recalls],
        "agents": [_conduct(one) for one in conducts],
    }


def decided_document(row: TraceScore | Conduct) -> dict[str, Any]:
    """What was decided, or why nothing: `state` says which."""
    return {
        "state": row.state,
        "decision": row.shown or None,
        "how": row.how or None,
        "step": None if row.step is None else row.step + 1,
    }


def _conduct(one: Conduct) -> dict[str, Any]:
    return {
        "agent": str(one.agent),
        "agent_id": one.agent_id,
        "verdict": one.colour,
        "masked": one.is_masked,
        "decision": decided_document(one),
        "invocations": one.invocations,
        "failed": one.failures,
        "calls": one.calls,
        "tools": one.tools,
        "models": one.models_used,
        "temperature": one.temperature,
        "contracts": {
            **{name: getattr(one, name) for name in _ANSWERS},
            "each": [_judged(each) for each in one.judged],
        },
        "memory": {
            "recalled": one.recalled,
            "lost": one.lost,
            "contradicted": one.contradicted,
        },
        "findings": one.findings,
    }


def _judged(one: Mapping[str, Any]) -> dict[str, Any]:
    """What one contract said, with its step counted from 1."""
    step = one.get("step")
    return {**one, "step": None if step is None else step + 1}


def _recall(one: Mapping[str, Any]) -> dict[str, Any]:
    """A fact with its steps counted from 1."""
    said = dict(one)
    for name in ("told_step", "needed_step", "answer_step"):
        if said.get(name) is not None:
            said[name] += 1
    if "place_steps" in said:
        said["place_steps"] = [step + 1 for step in said["place_steps"]]
    return said
