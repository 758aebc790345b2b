"""Signals that wait for an experiment come back once their batch of replays has ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from apps.agents.queries import agent_now
from apps.pipeline.scoring import is_behind
from apps.replays.batch_queries import GroupRow, group_rows, is_memory
from apps.replays.models import Batch
from apps.replays.results import recall_of
from apps.replays.transitions import ENDED, BatchState
from apps.review.models import Signal
from apps.review.operations import return_from_experiment
from apps.review.transitions import Verdict
from apps.verdicts.replayed import group_scores

PATIENCE = timedelta(minutes=1)
"""So long the scores of a batch are waited for; the signal comes back without them then."""
MOST_TOLD = 3


def return_signals(*, now: datetime) -> int:
    """Put signals back into the queue whose experiment has ended; how many.

    One that was cancelled or stopped by a cap ends it too: nobody may wait for what
    does not come. Only the newest batch of a signal counts, and only if it ended after
    the decision that asked for it. Safe to run any number of times.
    """
    states = [one.value for one in ENDED]
    ended = Batch.objects.filter(signal__isnull=False, state__in=states)
    waiting = Signal.objects.filter(
        pk__in=ended.values("signal"), verdict=Verdict.NEEDS_EXPERIMENT
    )
    return sum(_return(signal, now) for signal in waiting)


def _return(signal: Signal, now: datetime) -> bool:
    batch = Batch.objects.filter(signal=signal.pk).latest("pk")
    ended, decided = batch.finished_at, signal.decided_at
    if batch.state not in ENDED or ended is None or decided is None:
        return False
    if ended < decided or (now - ended < PATIENCE and is_behind(batch.project_id)):
        return False
    return return_from_experiment(signal_id=signal.pk, said=result_of(batch))


def result_of(batch: Batch) -> str:
    """What came of a batch, in a few sentences."""
    rows = group_rows(batch)
    executed = sum(row.counts.executed for row in rows)
    finished = sum(row.counts.finished for row in rows)
    breaches = sum(row.counts.breaches for row in rows)
    runs = "run" if executed == 1 else "runs"
    if batch.state == BatchState.DONE.value:
        told = [
            f"“{batch.name}” is done: {finished:,} of {executed:,} {runs} finished."
        ]
    else:
        planned = sum(row.counts.total for row in rows)
        told = [
            f"“{batch.name}” was {batch.state} after {executed:,} {runs} of "
            f"{planned:,}, of which {finished:,} finished.",
            batch.stopped_why,
        ]
    if breaches:
        told.append(f"{breaches:,} tried to reach outside of their run.")
    return " ".join(filter(None, [*told, *_compared(batch, rows)]))


def _compared(batch: Batch, rows: Sequence[GroupRow]) -> list[str]:
    if is_memory(batch):
        # Its last answers are no decisions that could be compared.
        return [said] if (said := recall_of(batch)) else []
    scores = group_scores(agent_now(batch.agent), rows)
    compared = [one.beside.sentence for one in scores.values() if one.beside]
    more = len(compared) - MOST_TOLD
    return compared[:MOST_TOLD] + ([f"And {more:,} more groups."] if more > 0 else [])
