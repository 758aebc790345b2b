"""Which groups say what an agent does alone now: the newest finished ones."""

from __future__ import annotations

from typing import Final

from django.db.models import QuerySet

from apps.agents.models import Agent
from apps.agents.queries import agent_now, agents_behind
from apps.engine.replay.run import ErrorKind
from apps.replays.models import BatchKind, Group, Run
from apps.replays.transitions import EXECUTED, RunState

_AROUND: Final = tuple(
    kind.value
    for kind in (
        ErrorKind.RATE_LIMITED,
        ErrorKind.OVERLOADED,
        ErrorKind.CONNECTION,
        ErrorKind.REFUSED,
        ErrorKind.NOT_ALLOWED,
        ErrorKind.BUDGET,
        ErrorKind.CANCELLED,
        ErrorKind.OURS,
    )
)
"""Errors that say nothing of the agent itself."""


def let_count(*, run_id: int) -> bool:
    """Let a group count whose last run has just been executed; whether that changed.

    In the caller's transaction, which holds the batch. Earlier groups of the same case
    in the same regime count no more, and of memory tests those of every earlier one of
    the agent. A group that a later batch has overtaken does not count, nor does one that
    says nothing of the agent. Safe to run twice.
    """
    group = Group.objects.select_related("batch__agent").get(runs=run_id)
    if group.task_id is None:
        task_id = Run.objects.values_list("trace__task_id", flat=True).get(pk=run_id)
        Group.objects.filter(pk=group.pk).update(task_id=task_id)
    left = group.runs.exclude(state__in=[one.value for one in EXECUTED])
    if group.is_newest or left.exists() or not _says_something(group):
        return False
    # Two batches may end at once: one after the other says which is the later.
    agent_id = agent_now(group.batch.agent)
    Agent.objects.select_for_update(no_key=True).get(pk=agent_id)
    rivals = _rivals(group, agent_id)
    if rivals.filter(batch__gt=group.batch_id).exists():
        return False
    rivals.filter(batch__lt=group.batch_id).update(is_newest=False)
    Group.objects.filter(pk=group.pk).update(is_newest=True)
    return True


def _says_something(group: Group) -> bool:
    """Whether not every run failed for what lies around the agent.

    An endpoint that was away for an hour must not hide a breach of the day before.
    """
    around = group.runs.filter(
        state__in=[RunState.FAILED.value, RunState.TIMED_OUT.value],
        error_kind__in=_AROUND,
        has_breach=False,
    )
    return around.count() < group.runs.count()


def _rivals(group: Group, agent_id: int) -> QuerySet[Group]:
    """The groups of other batches that count and that cannot count beside this one."""
    batch = group.batch
    others = Group.objects.filter(
        batch__agent__in=agents_behind(agent_id),
        batch__kind=batch.kind,
        is_newest=True,
    ).exclude(batch=batch)
    if batch.kind == BatchKind.MEMORY:
        return others
    return others.filter(case=group.case_id, regime_key=group.regime_key)
