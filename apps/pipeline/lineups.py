"""Catching up: traces that the line-up of their project has not answered about yet.

A trace whose `screened_as` is not the name of the line-up is behind: checks are new, a
key was adopted, a check was paused, a definition or the baseline changed. Each batch is
one transaction that runs what is missing, settles the signals and marks the traces, so a
killed worker leaves all of it or nothing, and any number of workers may do it at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial

import msgspec
from celery import current_app
from django.db import connection, transaction
from kombu.exceptions import OperationalError

from apps.accounts.models import Project
from apps.engine.check import Check
from apps.engine.trace import Trace as EngineTrace
from apps.engine.traits import traits_of
from apps.review.adopting import settle
from apps.review.ranking import rank_signals
from apps.screening.answering import answers_of
from apps.screening.lineup import (
    CheckKey,
    LineUp,
    lineup_of,
    pin_new_checks,
)
from apps.screening.models import Screening
from apps.screening.operations import Answered, copy_answers, mark_screened
from apps.traces.behind import Behind, behind, lock_traces
from apps.traces.copying import StoredTrace
from apps.traces.models import Trace
from apps.traces.queries import engine_trace
from apps.traces.streams import write_signal_counts

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]

# One task never keeps a worker from its other work for long; it wakes the next one.
LONGEST_SECONDS = 10.0
MOST_TRACES = 200
MOST_STEPS = 10_000


def wake_catch_up(*, project_id: int) -> None:
    """Let a worker catch up with the line-up once the transaction has committed.

    When the broker is away, `wake_projects_behind` finds the project later.
    """
    transaction.on_commit(partial(_send, project_id))


def _send(project_id: int) -> None:
    try:
        current_app.send_task("pipeline.catch_up", kwargs={"project_id": project_id})
    except OperationalError:
        logger.warning("The broker is away; project %s waits to catch up", project_id)


def wake_projects_behind() -> int:
    """Wake the catch-up of every project with a trace that is behind; returns how many.

    Also after an upgrade that brought new checks, which nobody adopted by hand.
    """
    count = 0
    for project_id in Project.objects.order_by("pk").values_list("pk", flat=True):
        name = lineup_of(project_id).name
        if behind(project_id, name, most=1):
            _send(project_id)
            count += 1
    return count


def catch_up(*, project_id: int, clock: Clock) -> bool:
    """Catch up for ten seconds at most; whether another run should follow at once.

    One worker at a time per project: others that are woken for it leave at once, and
    so does this one when everything that is behind is in the hands of others.
    """
    with _alone(project_id) as is_mine:
        return is_mine and _catch_up(project_id, clock)


@contextmanager
def _alone(project_id: int) -> Iterator[bool]:
    """Whether nobody else catches up with this project; the lock dies with us."""
    key: tuple[str, int] = ("catch_up", project_id)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s), %s)", key)
        is_mine: bool = cursor.fetchone()[0]
    try:
        yield is_mine
    finally:
        if is_mine and not connection.needs_rollback:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtext(%s), %s)", key)


def _catch_up(project_id: int, clock: Clock) -> bool:
    end = time.monotonic() + LONGEST_SECONDS
    busy: set[int] = set()
    did_something = False
    while time.monotonic() < end:
        lineup = pin_new_checks(project_id=project_id, now=clock())
        waiting = behind(project_id, lineup.name, most=MOST_TRACES, without=busy)
        if not waiting:
            if did_something:
                rank_signals(project_id, lineup)
            return False
        if answer_batch(waiting, project_id=project_id, now=clock()):
            did_something = True
        else:
            # Whoever holds these uploads is writing them; their turn comes later.
            busy |= {one.upload_id for one in waiting}
    return True


def answer_batch(waiting: Sequence[Behind], *, project_id: int, now: datetime) -> int:
    """Bring the first of these traces up to date, in one transaction; returns how many.

    At most as many as have 10,000 steps together, a larger one alone. None when others
    hold all of them.
    """
    with transaction.atomic():
        traces = lock_traces(_first_steps(waiting))
        if not traces:
            return 0
        # After the locks: what was adopted until now counts.
        lineup = lineup_of(project_id)
        late = [trace for trace in traces if trace.screened_as != lineup.name]
        ids = [trace.pk for trace in late]
        copy_answers(
            project_id=project_id, answered=list(_missing_answers(late, lineup))
        )
        counts = settle(trace_ids=ids, lineup=lineup, now=now)
        write_signal_counts(counts)
        mark_screened(trace_ids=ids, lineup=lineup)
    return len(traces)


def _first_steps(waiting: Sequence[Behind]) -> list[Behind]:
    taken: list[Behind] = []
    steps = 0
    for one in waiting:
        steps += one.step_count
        if taken and steps > MOST_STEPS:
            break
        taken.append(one)
    return taken


def _missing_answers(traces: Sequence[Trace], lineup: LineUp) -> Iterator[Answered]:
    """The answers of the current keys that are not stored yet, trace by trace."""
    stored = answered_keys([trace.pk for trace in traces], lineup)
    for trace in traces:
        missing = [
            entry.check
            for entry in lineup.entries
            if (trace.pk, entry.key) not in stored
        ]
        if missing or not trace.traits:
            yield from answer_stored(trace, missing)


def answered_keys(
    trace_ids: Sequence[int], lineup: LineUp
) -> set[tuple[int, CheckKey]]:
    """Which keys of `lineup` have an answer about which of these traces."""
    rows = Screening.objects.filter(lineup.current(), trace_id__in=trace_ids)
    found = rows.order_by().values_list(
        "trace_id", "check_slug", "check_version", "parameters_hash"
    )
    return {(row[0], row[1:]) for row in found.distinct()}


def answer_stored(trace: Trace, checks: Sequence[Check]) -> list[Answered]:
    """What `checks` say of a stored trace; writes its traits if it has none yet."""
    content = engine_trace(trace)
    if not trace.traits:
        traits = list(traits_of(content))
        Trace.objects.filter(pk=trace.pk).update(traits=traits)
    stored = StoredTrace(trace.pk, trace.content_hash, _without_content(content))
    return [
        (stored, check, answer)
        for check in checks
        for answer in answers_of(check, content)
    ]


def _without_content(trace: EngineTrace) -> EngineTrace:
    """What the answers of a batch keep of their trace: its steps would fill the memory."""
    return msgspec.structs.replace(trace, steps=(), invocations=())
