"""Scoring what is behind: traces by what is asked of their agents, then tasks, then verdicts.

A trace whose `scored_as` is not the name of the definitions is behind: it is new, its
content was replaced, or contracts changed. Tasks are noted by triggers. Each batch is
one transaction, so a killed worker leaves all of it or nothing; what was not settled is
found by the clock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import transaction

from apps.accounts.models import Project
from apps.agents.operations import find_agents
from apps.engine.trials.scores import TraceScore
from apps.pipeline.alone import alone
from apps.pipeline.patterns import wake_search
from apps.pipeline.waking import wake, wake_on_commit
from apps.review.masking import findings_in, mark_masked_signals
from apps.scoring.definitions import ProjectAsked
from apps.scoring.operations import (
    Scored,
    drop_task_scores,
    has_stale,
    take_stale_tasks,
    take_stale_traces,
    write_task_score,
    write_trace_scores,
)
from apps.scoring.queries import in_groups, replay_tasks, trials_of
from apps.scoring.scored import task_score_of, trace_score_of
from apps.screening.counting import sum_up
from apps.traces.behind import Behind, behind, first_steps
from apps.traces.contents import stored_contents
from apps.traces.locking import lock_traces
from apps.verdicts.operations import is_settled, settle_verdicts, unsettle
from apps.verdicts.progress import asked_at_present

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]

# One task never keeps a worker from its other work for long; it wakes the next one.
LONGEST_SECONDS = 10.0
MOST_TRACES = 200
MOST_STEPS = 10_000
MOST_TASKS = 50
MOST_TRIALS_AT_ONCE = 1_000


def wake_scoring(*, project_id: int) -> None:
    """Let a worker score what is behind once the transaction has committed.

    When the broker is away, `wake_projects_to_score` finds the project later.
    """
    wake_on_commit("pipeline.score", project_id=project_id)


def score_anew(*, project_id: int) -> None:
    """Have a project scored by what is asked of it now, once the transaction commits.

    From then on nothing that was settled before is told as final.
    """
    unsettle(project_id)
    wake_scoring(project_id=project_id)


def wake_projects_to_score(*, now: datetime) -> int:
    """Wake the scoring of every project in which something is behind; how many.

    Where nothing is, patterns are searched if the last search is older than the scores.
    """
    count = 0
    for project_id in Project.objects.order_by("pk").values_list("pk", flat=True):
        if is_behind(project_id):
            wake("pipeline.score", project_id=project_id)
            count += 1
        else:
            wake_search(project_id=project_id, now=now)
    return count


def is_behind(project_id: int) -> bool:
    """Whether something of a project is not scored or not settled yet."""
    if has_stale(project_id):
        return True
    name = asked_at_present(project_id).name
    if behind(project_id, name, most=1, work="scored_as"):
        return True
    return not is_settled(project_id, name)


def score_project(*, project_id: int, clock: Clock) -> bool:
    """Score for ten seconds at most; whether another run should follow at once.

    One worker at a time per project: others that are woken for it leave at once.
    """
    with alone("score", project_id) as is_mine:
        return is_mine and _score(project_id, clock)


def _score(project_id: int, clock: Clock) -> bool:
    end = time.monotonic() + LONGEST_SECONDS
    busy: set[int] = set()
    while time.monotonic() < end:
        with transaction.atomic():
            take_stale_traces(project_id=project_id)
        asked = asked_at_present(project_id)
        waiting = behind(
            project_id, asked.name, most=MOST_TRACES, without=busy, work="scored_as"
        )
        if waiting:
            unsettle(project_id)
            if not score_batch(waiting, project_id=project_id, now=clock()):
                # Whoever holds these uploads is writing them; their turn comes later.
                busy |= {one.upload_id for one in waiting}
        elif not score_tasks(project_id=project_id):
            settle_verdicts(
                project_id=project_id,
                name=asked.name,
                now=clock(),
                unread=asked.unread_of_whole,
            )
            sum_up(project_id=project_id)
            return False
    return True


def score_batch(waiting: Sequence[Behind], *, project_id: int, now: datetime) -> int:
    """Score the first of these traces, in one transaction; returns how many.

    At most as many as have 10,000 steps together, a larger one alone. None when others
    hold all of them.
    """
    with transaction.atomic():
        traces = lock_traces(first_steps(waiting, most=MOST_STEPS))
        if not traces:
            return 0
        # After the locks: what was defined until now counts.
        asked = asked_at_present(project_id)
        late = [trace for trace in traces if trace.scored_as != asked.name]
        findings = findings_in([trace.pk for trace in late])
        scored = [
            Scored(
                content.trace.pk,
                trace_score_of(
                    content, asked.asked, findings.get(content.trace.pk, ())
                ),
                is_replay=content.trace.is_replay,
            )
            for content in stored_contents(late)
        ]
        recorded = [one.name for item in scored for one in item.score.conducts]
        found = find_agents(project_id=project_id, recorded=recorded, now=now)
        agents = {agent.key: pk for pk, agent in asked.definitions.agents.items()}
        write_trace_scores(
            project_id=project_id,
            scored=scored,
            agents=found | agents,
            name=asked.name,
        )
        mark_masked_signals(
            {item.trace_id: _masked_names(item.score, asked) for item in scored}
        )
    return len(traces)


def _masked_names(score: TraceScore, asked: ProjectAsked) -> list[str]:
    """The keys of recorded names of agents that are masked in a trace."""
    masked = set(score.masked)
    known = {
        key
        for key, pk in asked.definitions.names.items()
        if asked.definitions.agents[pk].key in masked
    }
    return sorted(masked | known)


def score_tasks(*, project_id: int) -> int:
    """Score up to 50 tasks that were noted, in one transaction; returns how many.

    The trials of so many as have 1,000 together are held at once.
    """
    with transaction.atomic():
        ids = take_stale_tasks(project_id=project_id, most=MOST_TASKS)
        if not ids:
            return 0
        unsettle(project_id)
        for some in in_groups(ids, most=MOST_TRIALS_AT_ONCE):
            _score_tasks(project_id, some)
    return len(ids)


def _score_tasks(project_id: int, ids: Sequence[int]) -> None:
    agents, trials = trials_of(ids)
    replays = replay_tasks(trials)
    drop_task_scores(task_ids=[pk for pk in ids if pk not in trials])
    for task_id, group in trials.items():
        write_task_score(
            project_id=None if task_id in replays else project_id,
            task_id=task_id,
            score=task_score_of(task_id, group),
            agents=agents,
        )
