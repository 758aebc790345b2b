"""Catching up: traces that the line-up of their project has not answered about yet.

A trace whose `screened_as` is not the name of the line-up is behind: checks are new, a
key was adopted, a check was paused, a definition or the baseline changed. Each batch is
one transaction that runs what is missing, settles the signals and marks the traces, so a
killed worker leaves all of it or nothing, and any number of workers may do it at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import transaction

from apps.accounts.models import Project
from apps.pipeline.alone import alone
from apps.pipeline.missing_answers import missing_answers
from apps.pipeline.waking import wake, wake_on_commit
from apps.review.adopting import settle
from apps.review.ranking import is_unranked, rank_signals
from apps.screening.lineup import lineup_of, pin_new_checks
from apps.screening.operations import copy_answers, mark_screened
from apps.traces.behind import Behind, behind, first_steps
from apps.traces.locking import lock_traces
from apps.traces.streams import write_signal_counts

Clock = Callable[[], datetime]

# One task never keeps a worker from its other work for long; it wakes the next one.
LONGEST_SECONDS = 10.0
MOST_TRACES = 200
MOST_STEPS = 10_000


def wake_catch_up(*, project_id: int) -> None:
    """Let a worker catch up with the line-up once the transaction has committed.

    When the broker is away, `wake_projects_behind` finds the project later.
    """
    wake_on_commit("pipeline.catch_up", project_id=project_id)


def wake_projects_behind() -> int:
    """Wake the catch-up of every project with a trace that is behind; returns how many.

    Also after an upgrade that brought new checks, which nobody adopted by hand, and
    where a worker was killed after its last batch, before the signals were ranked.
    """
    count = 0
    for project_id in Project.objects.order_by("pk").values_list("pk", flat=True):
        lineup = lineup_of(project_id)
        if behind(project_id, lineup.name, most=1) or is_unranked(project_id, lineup):
            wake("pipeline.catch_up", project_id=project_id)
            count += 1
    return count


def catch_up(*, project_id: int, clock: Clock) -> bool:
    """Catch up for ten seconds at most; whether another run should follow at once.

    One worker at a time per project: others that are woken for it leave at once, and
    so does this one when everything that is behind is in the hands of others.
    """
    with alone("catch_up", project_id) as is_mine:
        return is_mine and _catch_up(project_id, clock)


def _catch_up(project_id: int, clock: Clock) -> bool:
    end = time.monotonic() + LONGEST_SECONDS
    busy: set[int] = set()
    while time.monotonic() < end:
        lineup = pin_new_checks(project_id=project_id, now=clock())
        waiting = behind(project_id, lineup.name, most=MOST_TRACES, without=busy)
        if not waiting:
            # Also where an earlier run, or one that was killed, wrote the last batch.
            rank_signals(project_id, lineup)
            return False
        if not answer_batch(waiting, project_id=project_id, now=clock()):
            # Whoever holds these uploads is writing them; their turn comes later.
            busy |= {one.upload_id for one in waiting}
    return True


def answer_batch(waiting: Sequence[Behind], *, project_id: int, now: datetime) -> int:
    """Bring the first of these traces up to date, in one transaction; returns how many.

    At most as many as have 10,000 steps together, a larger one alone. None when others
    hold all of them.
    """
    with transaction.atomic():
        traces = lock_traces(first_steps(waiting, most=MOST_STEPS))
        if not traces:
            return 0
        # After the locks: what was adopted until now counts.
        lineup = lineup_of(project_id)
        late = [trace for trace in traces if trace.screened_as != lineup.name]
        ids = [trace.pk for trace in late]
        copy_answers(
            project_id=project_id, answered=list(missing_answers(late, lineup.checks))
        )
        counts = settle(trace_ids=ids, lineup=lineup, now=now)
        write_signal_counts(counts)
        mark_screened(trace_ids=ids, lineup=lineup)
    return len(traces)
