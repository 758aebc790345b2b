"""What the pages of tasks need: tasks with their trials and outcomes in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from apps.accounts.permissions import Permission
from apps.traces.models import Task, Trace
from apps.traces.queries import PAGE_SIZE
from apps.traces.transitions import TaskSource
from apps.traces.trials import TaskRow, suggested_tasks, task_row, task_rows
from apps.web.access import Place
from apps.web.numbers import whole

MOST_TRIALS = 200

SOURCE_WORDS = {
    TaskSource.FILE: "named in the file",
    TaskSource.INPUT: "found by the same first input",
    TaskSource.HAND: "set by hand",
}


class TasksPage(msgspec.Struct, frozen=True):
    """One page of the tasks of a project."""

    place: Place
    rows: list[TaskRow]
    sources: dict[str, str]
    without_task: int
    next_url: str


class TaskPage(msgspec.Struct, frozen=True):
    """One task with its trials."""

    place: Place
    row: TaskRow
    source_words: str
    trials: list[Trace]
    others: list[Task]
    may_part: bool
    refusal: str


def tasks_page(place: Place, query: Mapping[str, str]) -> TasksPage:
    """The tasks of the project, those with most trials first."""
    start = whole(query.get("from", "")) or 0
    rows = task_rows(project=place.project, start=start, most=PAGE_SIZE + 1)
    without = Trace.objects.filter(project=place.project, task=None).count()
    return TasksPage(
        place=place,
        rows=rows[:PAGE_SIZE],
        sources={str(source): words for source, words in SOURCE_WORDS.items()},
        without_task=without,
        next_url=f"?from={start + PAGE_SIZE}" if len(rows) > PAGE_SIZE else "",
    )


def task_page(place: Place, task: Task, undo: Any = None) -> TaskPage:
    """One task: its trials in order, and the tasks it may be joined with.

    `undo` is what the session keeps of the last joining.
    """
    trials = Trace.objects.filter(task=task).order_by("trial", "id")
    return TaskPage(
        place=place,
        row=task_row(task),
        source_words=SOURCE_WORDS[TaskSource(task.source)],
        may_part=isinstance(undo, dict) and undo.get("into") == task.pk,
        trials=list(trials.select_related("upload")[:MOST_TRIALS]),
        others=suggested_tasks(project=place.project, but=task),
        refusal=place.refusal(Permission.REVIEW),
    )


def placing(place: Place, trace: Trace, undo: Any) -> dict[str, Any]:
    """What the form on a trace needs to say by hand of which task it is."""
    return {
        "refusal": place.refusal(Permission.REVIEW),
        "task": str(trace.task) if trace.task else "",
        "trial": trace.trial,
        "source": (
            (SOURCE_WORDS[TaskSource.HAND] if trace.task else "none, set by hand")
            if trace.is_task_set
            else SOURCE_WORDS[TaskSource(trace.task.source)]
            if trace.task
            else ""
        ),
        "suggestions": suggested_tasks(project=place.project),
        "may_undo": isinstance(undo, dict) and str(trace.pk) in undo,
    }
