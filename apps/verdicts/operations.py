"""Settling the verdicts of a project once its traces and tasks are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from django.db import transaction

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.agents.queries import Definitions, called_apart, definitions_of
from apps.engine.bodies.effects import effect_of
from apps.engine.masking import (
    AgentCounts,
    AgentEvidence,
    MaskingReport,
    Verdict,
    hidden_alone,
    masking_report,
    verdict_of,
)
from apps.scoring.definitions import unread_of
from apps.verdicts.counting import (
    CountedAgent,
    CountedOutcomes,
    counted_agents,
    counted_outcomes,
)
from apps.verdicts.models import AgentVerdict, ProjectVerdict
from apps.verdicts.queries import rank_of, standing_of

MOST_CHANGES: Final = 100
_NOBODY: Final = CountedAgent()


def is_settled(project_id: int, name: str) -> bool:
    """Whether the verdicts rest on everything that is scored by definitions `name`.

    Also where there is nothing to settle: no trace was ever scored.
    """
    row = ProjectVerdict.objects.filter(project_id=project_id).first()
    if row is None:
        return True
    is_readable = not row.detail or standing_of(row) is not None
    return row.settled_as == name and is_readable


def unsettle(project_id: int) -> None:
    """Note that scores are changing, so that verdicts are settled whatever happens."""
    changed = ProjectVerdict.objects.filter(project_id=project_id).exclude(
        settled_as=""
    )
    if not changed.update(settled_as=""):
        ProjectVerdict.objects.get_or_create(project_id=project_id)


def settle_verdicts(
    *, project_id: int, name: str, now: datetime, unread: Sequence[str] = ()
) -> bool:
    """Write the verdict of every agent, and of the project; whether it was needed.

    `unread` are sentences about what is asked of the whole and cannot be read. Safe to
    run twice. One transaction that reads all scores.
    """
    if is_settled(project_id, name):
        return False
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project_id)
        stored = definitions_of(project_id)
        counted = counted_agents(project_id)
        verdicts = {
            pk: verdict_of(_evidence(agent, stored, counted.get(pk, _NOBODY)))
            for pk, agent in stored.agents.items()
        }
        outcomes = counted_outcomes(project_id)
        report = _report(stored, counted, verdicts, outcomes, unread)
        changes = _write_agents(project_id, stored, counted, verdicts)
        _write_project(
            project_id, name=name, now=now, outcomes=outcomes, said=(report, changes)
        )
    return True


def _evidence(agent: Agent, stored: Definitions, found: CountedAgent) -> AgentEvidence:
    asked = stored.asked.get(agent.pk)
    held = 0 if asked is None else len(asked.held)
    contracts = max(held, len(found.contracts))
    applied = [one.held + one.broken + one.undecided > 0 for one in found.contracts]
    counts: dict[str, Any] = {
        **found.evidence,
        "contracts": contracts,
        "contracts_applied": sum(applied),
        "alone": found.alone,
        "unread": unread_of(asked),
    }
    return AgentEvidence(agent=str(agent), **counts)


def _report(
    stored: Definitions,
    counted: Mapping[int, CountedAgent],
    verdicts: Mapping[int, Verdict],
    outcomes: tuple[CountedOutcomes, CountedOutcomes],
    unread: Sequence[str],
) -> MaskingReport:
    names = called_apart(stored.agents.values())
    traces, tasks = outcomes
    return masking_report(
        verdicts={names[pk]: verdict for pk, verdict in verdicts.items()},
        counts=[
            AgentCounts(names[pk], found.traces, found.tasks)
            for pk, found in counted.items()
            if pk in names
        ],
        traces=traces.counts,
        tasks=tasks.counts,
        unread=unread,
    )


def _write_agents(
    project_id: int,
    stored: Definitions,
    counted: Mapping[int, CountedAgent],
    verdicts: Mapping[int, Verdict],
) -> list[dict[str, Any]]:
    """Write the verdicts; returns which agents have another colour than before."""
    before = dict(
        AgentVerdict.objects.filter(project_id=project_id).values_list(
            "agent_id", "colour"
        )
    )
    AgentVerdict.objects.filter(project_id=project_id).delete()
    AgentVerdict.objects.bulk_create(
        [
            _row(project_id, stored, pk, counted.get(pk, _NOBODY), verdict)
            for pk, verdict in verdicts.items()
        ]
    )
    return [
        {
            "agent": str(stored.agents[pk]),
            "agent_id": pk,
            "before": before.get(pk, ""),
            "after": verdict.colour.value,
            "reason": verdict.reasons[0].sentence if verdict.reasons else "",
        }
        for pk, verdict in verdicts.items()
        if before.get(pk, "") != verdict.colour.value
    ]


def _row(
    project_id: int,
    stored: Definitions,
    pk: int,
    found: CountedAgent,
    verdict: Verdict,
) -> AgentVerdict:
    evidence = _evidence(stored.agents[pk], stored, found)
    alone = hidden_alone(found.traces, verdict)
    is_masked = alone is not None or bool(
        found.traces.red + found.tasks.red + found.tasks.unstable
    )
    return AgentVerdict(
        agent_id=pk,
        project_id=project_id,
        colour=verdict.colour.value,
        rank=rank_of(
            verdict.colour,
            masked=found.traces.red if is_masked else None,
            traces=evidence.traces,
        ),
        traces=evidence.traces,
        tasks=evidence.tasks,
        green_traces=found.traces.passed,
        masked_traces=found.traces.red,
        green_tasks=found.tasks.passed,
        masked_tasks=found.tasks.red + found.tasks.unstable,
        evidence=msgspec.to_builtins(evidence),
        detail={
            "reasons": msgspec.to_builtins(verdict.reasons),
            "gaps": msgspec.to_builtins(verdict.gaps),
            "contracts": msgspec.to_builtins(found.contracts),
            "tools": [
                {
                    "name": name,
                    "calls": calls,
                    "traces": traces,
                    "effect": effect_of(
                        name, frozenset(stored.agents[pk].writing_tools)
                    ).value,
                }
                for name, calls, traces in found.tools
            ],
            "models": [
                {"name": name, "traces": traces} for name, traces in found.models
            ],
            "hidden_alone": "" if alone is None else alone.value,
        },
    )


def _write_project(
    project_id: int,
    *,
    name: str,
    now: datetime,
    outcomes: tuple[CountedOutcomes, CountedOutcomes],
    said: tuple[MaskingReport, list[dict[str, Any]]],
) -> None:
    report, changes = said
    row, _ = ProjectVerdict.objects.select_for_update().get_or_create(
        project_id=project_id
    )
    at = now.isoformat()
    row.settled_as, row.settled_at = name, now
    row.detail = {
        "report": msgspec.to_builtins(report),
        "traces": msgspec.to_builtins(outcomes[0]),
        "tasks": msgspec.to_builtins(outcomes[1]),
    }
    # The first verdict of an agent is no change of one.
    row.changes = [
        *({**change, "at": at} for change in changes if change["before"]),
        *row.changes,
    ][:MOST_CHANGES]
    row.save()
