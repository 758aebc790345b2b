"""What a signal says of its experiments: batches of replays, and how to start one."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import msgspec

from apps.accounts.permissions import Permission
from apps.agents.models import AgentName
from apps.agents.queries import agent_now
from apps.engine.agent_names import agent_key
from apps.replays.batch_queries import experiments_of, group_rows, is_memory
from apps.replays.models import Batch
from apps.replays.results import recall_of
from apps.replays.transitions import ENDED, BatchState
from apps.review.models import Signal
from apps.review.transitions import SignalState, Verdict
from apps.verdicts.replayed import group_scores
from apps.web.access import Place
from apps.web.pages.replay_batches import BatchLine, batch_line
from apps.web.pages.replay_words import regime_words

MOST_BATCHES: Final = 5
MOST_SENTENCES: Final = 3


class Experiment(msgspec.Struct, frozen=True):
    """Batches that were started for a signal, newest first.

    `sentences` say what the newest one gave that has ended, whose id is `result_of`;
    without `is_whole` it ended early. `came_back` says if the signal waits in the queue
    again because of one.
    """

    lines: list[BatchLine]
    sentences: list[str]
    result_of: int | None
    is_whole: bool
    came_back: bool
    is_wanted: bool
    query: str
    refusal: str


def experiment_of(place: Place, signal: Signal) -> Experiment | None:
    """The experiments of a signal; `None` where none is wanted and none was started.

    `signal` comes with the state of its newest one (`review.queries.with_rows`).
    """
    is_wanted = signal.verdict == Verdict.NEEDS_EXPERIMENT
    if getattr(signal, "experiment", None) is None and not is_wanted:
        return None
    rows = experiments_of([signal.pk]).get(signal.pk, [])[:MOST_BATCHES]
    ended = [row.batch for row in rows if row.batch.state in ENDED]
    return Experiment(
        lines=[batch_line(row) for row in rows],
        sentences=_result(ended[0]) if ended else [],
        result_of=ended[0].pk if ended else None,
        is_whole=bool(ended) and ended[0].state == BatchState.DONE.value,
        came_back=_came_back(signal),
        is_wanted=is_wanted,
        query=_query(place, signal),
        refusal=place.refusal(Permission.REPLAY),
    )


def experiment_words(signal: Signal) -> str:
    """What its row in the queue says of experiments, "" where none has ended.

    `signal` comes with the state of its newest one (`review.queries.with_rows`).
    """
    state = getattr(signal, "experiment", None)
    if _came_back(signal):
        return "back from an experiment"
    return f"experiment {state}" if state in ENDED else ""


def _came_back(signal: Signal) -> bool:
    is_waiting = signal.state in {SignalState.OPEN, SignalState.CLAIMED}
    return is_waiting and bool(getattr(signal, "came_back", False))


def _query(place: Place, signal: Signal) -> str:
    """The address of the planner for this signal and its agent, where it is known."""
    names = AgentName.objects.filter(project=place.project, key=agent_key(signal.agent))
    agent = names.values_list("agent_id", flat=True).first()
    fields = {"signal": signal.pk} | ({"agent": agent} if agent else {})
    return f"?{urlencode(fields)}"


def _result(batch: Batch) -> list[str]:
    """What the groups of a batch gave, beside the pipeline where that is recorded."""
    if is_memory(batch):
        return [said] if (said := recall_of(batch)) else []
    rows = [row for row in group_rows(batch) if row.counts.executed][:MOST_SENTENCES]
    scored = group_scores(agent_now(batch.agent), rows)
    return [
        f"{row.group.case or 'No case'}, {regime_words(row.group.regime)}: "
        f"{found.beside.sentence}"
        for row in rows
        if (found := scored[row.group.pk]).beside is not None
    ]
