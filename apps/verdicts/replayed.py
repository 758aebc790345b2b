"""What an agent decided alone, group by group, beside what it did in the pipeline.

The recorded side are the trials of the task from which the case was frozen, or its one
trace. An agent that ran several times in a trace is compared as a whole there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from apps.agents.models import Agent, AgentName
from apps.engine.extraction import DecisionState
from apps.engine.replay.beside import (
    Beside,
    ContractBeside,
    beside,
    contract_counts,
    contracts_beside,
)
from apps.replays.batch_queries import GroupRow
from apps.replays.models import Batch
from apps.scoring.models import AgentTaskScore, Conduct
from apps.traces.models import Trace

MOST_RECORDED: Final = 500
"""So many recorded trials of a task are taken, the first ones."""

_Side = list[Any]


class GroupScore(msgspec.Struct, frozen=True):
    """One group: its score, and its decisions beside the recorded ones.

    `score` is `None` until its recordings are scored, `beside` where its case was not
    frozen from a trace. `recorded_task` is the task whose trials were taken, `None`
    where it is one trace alone.
    """

    score: AgentTaskScore | None
    beside: Beside | None
    contracts: tuple[ContractBeside, ...] = ()
    recorded_task: int | None = None

    @property
    def applied(self) -> int:
        """How many applications of contracts were not ruled out."""
        one = self.score
        return 0 if one is None else one.held + one.broken + one.undecided


NOT_SCORED: Final = GroupScore(None, None)


class _Unrecorded(msgspec.Struct, frozen=True):
    """A run that was executed and left no recording: it failed, and it counts."""

    state: str = DecisionState.FAILED.value
    decision: str = ""
    shown: str = ""
    input: str = ""
    temperature: float | None = None


def agent_now(agent: Agent) -> int:
    """The id of the agent that the name of this one stands for now. One query."""
    rows = AgentName.objects.filter(project_id=agent.project_id, key=agent.key)
    return rows.values_list("agent_id", flat=True).first() or agent.pk


def group_scores(agent_id: int, rows: Sequence[GroupRow]) -> dict[int, GroupScore]:
    """By id of a group what is known of it; `agent_id` is who its runs count for.

    Four queries for any number of groups.
    """
    tasks = [one.group.task_id for one in rows if one.group.task_id is not None]
    scores = {
        one.task_id: one
        for one in AgentTaskScore.objects.filter(task_id__in=tasks, agent_id=agent_id)
    }
    alone = _conducts(agent_id, _traces_of(tasks))
    recorded = _recorded(agent_id, rows)
    return {
        row.group.pk: _group(row, scores, alone, recorded.get(row.group.pk))
        for row in rows
    }


def _traces_of(task_ids: Sequence[int]) -> dict[int, list[int]]:
    """By id of a task its traces, recorded ones and replays."""
    found: dict[int, list[int]] = defaultdict(list)
    rows = Trace.everything.filter(task_id__in=task_ids).order_by("trial", "pk")
    for pk, task_id in rows.values_list("pk", "task_id"):
        if len(found[task_id]) < MOST_RECORDED:
            found[task_id].append(pk)
    return found


def _conducts(agent_id: int, traces: Mapping[int, Iterable[int]]) -> dict[int, _Side]:
    """By whatever `traces` go by, what the agent did in them."""
    wanted = {pk for some in traces.values() for pk in some}
    rows = Conduct.objects.filter(agent_id=agent_id, trace_id__in=wanted)
    found = {
        one.trace_id: one
        for one in rows.only(
            "trace_id",
            "agent_id",
            "state",
            "decision",
            "shown",
            "input",
            "temperature",
            "judged",
        )
    }
    return {
        key: [found[pk] for pk in some if pk in found] for key, some in traces.items()
    }


def _recorded(agent_id: int, rows: Sequence[GroupRow]) -> dict[int, _Side]:
    """By id of a group what was recorded of its case in the pipeline."""
    of_trace = {
        row.group.pk: row.group.case.trace
        for row in rows
        if row.group.case is not None
        and row.group.case.trace is not None
        # What was frozen from a replay did not stand in the pipeline.
        and not row.group.case.trace.is_replay
    }
    tasks = [one.task_id for one in of_trace.values() if one.task_id is not None]
    trials = _traces_of(tasks)
    wanted = {
        pk: [one.pk] if one.task_id is None else trials[one.task_id]
        for pk, one in of_trace.items()
    }
    return _conducts(agent_id, wanted)


def _group(
    row: GroupRow,
    scores: Mapping[int, AgentTaskScore],
    alone: Mapping[int, _Side],
    recorded: _Side | None,
) -> GroupScore:
    task_id = row.group.task_id or 0
    ours = list(alone.get(task_id, ()))
    if recorded is None:
        return GroupScore(scores.get(task_id), None)
    runs = [*ours, *_without_recording(row)]
    case = row.group.case
    return GroupScore(
        score=scores.get(task_id),
        beside=beside(recorded, runs),
        contracts=contracts_beside(_contracts(recorded), _contracts(ours)),
        recorded_task=case.trace.task_id if case and case.trace else None,
    )


def _without_recording(row: GroupRow) -> list[_Unrecorded]:
    return [_Unrecorded()] * row.counts.unrecorded


def _contracts(side: _Side) -> Any:
    return contract_counts([one for row in side for one in row.judged])


def decisions_of(agent_id: int, trace_ids: Iterable[int]) -> dict[int, Conduct]:
    """By id of a trace what the agent decided in it. One query."""
    rows = Conduct.objects.filter(agent_id=agent_id, trace_id__in=list(trace_ids))
    return {one.trace_id: one for one in rows.defer("tools", "models_used")}


def decisions_in_batch(batch: Batch) -> dict[int, dict[str, Any]]:
    """By id of a trace what was decided in each run of a batch, as a JSON value."""
    rows = Conduct.objects.filter(
        agent_id=agent_now(batch.agent), trace__replay_run__batch=batch
    )
    return {
        trace_id: {"state": state, "decision": decision, "shown": shown}
        for trace_id, state, decision, shown in rows.values_list(
            "trace_id", "state", "decision", "shown"
        )
    }
