"""What the page of an agent says of it alone: the newest groups of its replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from apps.accounts.permissions import Permission
from apps.agents.models import Agent
from apps.replays.batch_queries import is_memory, newest_groups
from apps.replays.models import Batch
from apps.verdicts.queries import task_scores
from apps.verdicts.replayed import NOT_SCORED, group_scores
from apps.web.access import Place
from apps.web.pages.replay_batch import GroupLine, group_line

MOST_GROUPS: Final = 20
_CODES: Final = "alone_"


class AlonePart(msgspec.Struct, frozen=True):
    """What is known of an agent alone: the groups that count, and what they add.

    `memory` is the newest memory test among them. `query` opens the planner for this
    agent.
    """

    lines: list[GroupLine]
    reasons: list[str]
    more: bool
    memory: Batch | None
    query: str
    refusal: str


def alone_part(place: Place, agent: Agent, detail: Mapping[str, Any]) -> AlonePart:
    """The part of one agent: a fixed number of queries."""
    found = newest_groups(agent, most=MOST_GROUPS + 1)
    shown = found[:MOST_GROUPS]
    rows = [row for row in shown if not is_memory(row.group.batch)]
    tests = [row.group.batch for row in shown if is_memory(row.group.batch)]
    scored = group_scores(agent.pk, rows)
    tasks = task_scores([row.group.task_id for row in rows if row.group.task_id])
    return AlonePart(
        lines=[
            group_line(
                place,
                row.group.batch,
                row,
                scored.get(row.group.pk, NOT_SCORED),
                tasks,
            )
            for row in rows
        ],
        reasons=[
            one["sentence"]
            for one in detail.get("reasons", [])
            if str(one.get("code", "")).startswith(_CODES)
        ],
        more=len(found) > MOST_GROUPS,
        memory=tests[0] if tests else None,
        query=f"?{urlencode({'agent': agent.pk})}",
        refusal=place.refusal(Permission.REPLAY),
    )
