"""What a report says of agents that were run alone: the replays that count now.

A run alone is evidence about one agent on one frozen input. It says nothing of how often
the pipeline gives it such an input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from apps.agents.models import Agent
from apps.engine.replay.regimes import regime_in_words
from apps.engine.replay.run import Regime
from apps.replays.batch_queries import (
    GroupRow,
    counting_groups,
    is_memory,
    levels_of,
    numbers_of_batches,
)
from apps.replays.models import Batch, Group
from apps.replays.results import recall_of
from apps.reports.assessment import AlonePart, AlonesPart, RecallPart
from apps.reports.inert import one_line
from apps.reports.rates import rate_of
from apps.reports.words import utc
from apps.verdicts.replayed import NOT_SCORED, GroupScore, scores_by_agent

MAX_GROUPS: Final = 60
MAX_TESTS: Final = 10


class _Known(msgspec.Struct, frozen=True):
    """Names of agents by key, scores and levels by id of a group."""

    names: Mapping[str, int]
    agents: Mapping[int, Agent]
    scores: Mapping[int, GroupScore]
    levels: Mapping[int, Mapping[str, int]]

    def agent(self, batch: Batch) -> tuple[int, str]:
        """Who the runs of a batch count for now, and what it is called."""
        pk = self.names.get(batch.agent.key, batch.agent_id)
        return pk, one_line(str(self.agents.get(pk, batch.agent)))


def alones_of(
    project_id: int, *, names: Mapping[str, int], agents: Mapping[int, Agent]
) -> AlonesPart:
    """The newest finished replays of each case: ten queries, one more a memory test.

    `names` are the ids of agents by their recorded keys, `agents` these agents by id.
    """
    batches, runs, ran = numbers_of_batches(project_id)
    if not batches:
        return AlonesPart()
    found = counting_groups(project_id, most=MAX_GROUPS + 1)
    rows = found[:MAX_GROUPS]
    known = _Known(names, agents, {}, levels_of([row.group.pk for row in rows]))
    replays = [row for row in rows if not is_memory(row.group.batch)]
    scores = scores_by_agent(
        [(known.agent(row.group.batch)[0], row) for row in replays]
    )
    known = msgspec.structs.replace(known, scores=scores)
    return AlonesPart(
        batches=batches,
        runs=runs,
        ran=ran,
        groups=tuple(_group(row, known) for row in replays),
        has_more=len(found) > MAX_GROUPS,
        recalls=_recalls(rows, known),
    )


def _group(row: GroupRow, known: _Known) -> AlonePart:
    group, counts = row.group, row.counts
    scored = known.scores.get(group.pk, NOT_SCORED)
    _, agent = known.agent(group.batch)
    return AlonePart(
        agent=agent,
        case=one_line(str(group.case or ""), limit=200),
        regime=_regime(group),
        batch=one_line(group.batch.name, limit=200),
        finished=rate_of(counts.finished, counts.executed),
        breaches=counts.breaches,
        levels=dict(known.levels.get(group.pk, {})),
        consistency=scored.score.consistency if scored.score else "",
        sentence=one_line(scored.beside.sentence, limit=600) if scored.beside else "",
        ended_at=utc(group.batch.finished_at) if group.batch.finished_at else "",
    )


def _regime(group: Group) -> str:
    try:
        return regime_in_words(msgspec.convert(group.regime, Regime))
    except msgspec.ValidationError:
        return "conditions that this version cannot read"


def _recalls(rows: list[GroupRow], known: _Known) -> tuple[RecallPart, ...]:
    tests: dict[int, list[GroupRow]] = {}
    for row in rows:
        if is_memory(row.group.batch):
            tests.setdefault(row.group.batch_id, []).append(row)
    return tuple(_recall(some, known) for some in list(tests.values())[:MAX_TESTS])


def _recall(rows: list[GroupRow], known: _Known) -> RecallPart:
    batch = rows[0].group.batch
    _, agent = known.agent(batch)
    levels: dict[str, int] = {}
    for row in rows:
        for level, count in known.levels.get(row.group.pk, {}).items():
            levels[level] = levels.get(level, 0) + count
    return RecallPart(
        agent=agent,
        batch=one_line(batch.name, limit=200),
        finished=rate_of(
            sum(row.counts.finished for row in rows),
            sum(row.counts.executed for row in rows),
        ),
        sentence=one_line(recall_of(batch), limit=600),
        levels=levels,
    )
