"""What an agent decided alone, group by group, beside what it did in the pipeline.

The recorded side are the trials of the task from which the case was frozen, or its one
trace. An agent that ran several times in a trace is compared as a whole there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from apps.agents.queries import agent_now
from apps.engine.extraction import DecisionState
from apps.engine.replay.beside import (
    Beside,
    ContractBeside,
    beside,
    contract_counts,
    contracts_beside,
)
from apps.replays.batch_queries import GroupRow, is_memory
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


def group_scores(agent_id: int, rows: Sequence[GroupRow]) -> dict[int, GroupScore]:
    """By id of a group what is known of it; `agent_id` is who its runs count for.

    Five queries for any number of groups.
    """
    return scores_by_agent([(agent_id, row) for row in rows])


def scores_by_agent(rows: Sequence[tuple[int, GroupRow]]) -> dict[int, GroupScore]:
    """As `group_scores`, for groups of several agents, each with the id of its own."""
    agents = {row.group.pk: agent_id for agent_id, row in rows}
    tasks = {
        row.group.pk: row.group.task_id
        for _, row in rows
        if row.group.task_id is not None
    }
    found = AgentTaskScore.objects.filter(
        task_id__in=tasks.values(), agent_id__in=agents.values()
    )
    scores = {(one.agent_id, one.task_id): one for one in found}
    trials = _traces_of(tasks.values())
    alone = _conducts(agents, {pk: trials[task] for pk, task in tasks.items()})
    recorded = _recorded(agents, [row for _, row in rows])
    return {
        row.group.pk: _group(
            row,
            scores.get((agent_id, tasks.get(row.group.pk, 0))),
            alone.get(row.group.pk, []),
            recorded.get(row.group.pk),
        )
        for agent_id, row in rows
    }


def _traces_of(task_ids: Iterable[int]) -> dict[int, list[int]]:
    """By id of a task its traces, recorded ones and replays."""
    found: dict[int, list[int]] = defaultdict(list)
    rows = Trace.everything.filter(task_id__in=list(task_ids))
    rows = rows.order_by("trial", "pk")
    for pk, task_id in rows.values_list("pk", "task_id"):
        if len(found[task_id]) < MOST_RECORDED:
            found[task_id].append(pk)
    return found


def _conducts(
    agents: Mapping[int, int], traces: Mapping[int, Iterable[int]]
) -> dict[int, _Side]:
    """By id of a group what its agent did in these traces. One query."""
    wanted = {pk for some in traces.values() for pk in some}
    rows = Conduct.objects.filter(
        agent_id__in=set(agents.values()), trace_id__in=wanted
    )
    found = {
        (one.agent_id, one.trace_id): one
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
        key: [found[agents[key], pk] for pk in some if (agents[key], pk) in found]
        for key, some in traces.items()
    }


def _recorded(agents: Mapping[int, int], rows: Sequence[GroupRow]) -> dict[int, _Side]:
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
    return _conducts(agents, wanted)


def _group(
    row: GroupRow,
    score: AgentTaskScore | None,
    ours: _Side,
    recorded: _Side | None,
) -> GroupScore:
    if recorded is None:
        return GroupScore(score, None)
    runs = [*ours, *_without_recording(row)]
    case = row.group.case
    return GroupScore(
        score=score,
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
    """By id of a trace what was decided in each run of a batch, as a JSON value.

    Empty for a memory test: its last answers are no decisions.
    """
    if is_memory(batch):
        return {}
    rows = Conduct.objects.filter(
        agent_id=agent_now(batch.agent), trace__replay_run__batch=batch
    )
    return {
        trace_id: {"state": state, "decision": decision, "shown": shown}
        for trace_id, state, decision, shown in rows.values_list(
            "trace_id", "state", "decision", "shown"
        )
    }
