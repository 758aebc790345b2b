"""The whole analysis of the files of a call: trials, tasks, agents, masking, patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from apps.engine.trials import score_task
from apps.engine.trials.project import ScoredTask, score_project
from apps.engine.trials.runs import Target, patterns_of
from evalsite.offline.document import Compared
from evalsite.offline.named_files import once_each
from evalsite.offline.reading import Complaint
from evalsite.offline.trials import (
    FoundTask,
    HowToScore,
    ReadTrial,
    TaskSource,
    found_tasks,
    read_trials,
)


class Wanted(msgspec.Struct, frozen=True):
    """What is compared and how; `names` are how a file of contracts calls agents."""

    how: HowToScore
    names: Mapping[str, str] = {}
    slug: str = ""


def compared(
    paths: Sequence[Path], wanted: Wanted, *, hear: Callable[[Complaint], None]
) -> Compared:
    """Compare the trials in files and folders; `hear` gets what is not read at once.

    Nothing is kept of a trace but its score. The order of `paths` is no matter.
    """
    said: list[Complaint] = []
    read: list[ReadTrial] = []
    files, twice = once_each(paths)
    for one in twice:
        _note(one, said, hear)
    for item in read_trials(files, wanted.how, slug=wanted.slug):
        if isinstance(item, Complaint):
            _note(item, said, hear)
        else:
            read.append(item)
    tasks, left_out = found_tasks(read, wanted.how)
    for one in left_out:
        _note(one, said, hear)
    if not tasks and not any(one.is_incomplete for one in said):
        nothing = Complaint("", _why_nothing(wanted.how), is_incomplete=True)
        _note(nothing, said, hear)
    return _settled(tasks, wanted, said)


def _note(
    one: Complaint, said: list[Complaint], hear: Callable[[Complaint], None]
) -> None:
    said.append(one)
    hear(one)


def _why_nothing(how: HowToScore) -> str:
    if how.takes is None:
        return "There is nothing to compare."
    return "There is nothing to compare: no task has such a name."


def _settled(
    tasks: Sequence[FoundTask], wanted: Wanted, said: Sequence[Complaint]
) -> Compared:
    trials = [tuple([one.trial for one in task.trials]) for task in tasks]
    scores = [score_task(group) for group in trials]
    scored = [
        ScoredTask(task.key, group, score)
        for task, group, score in zip(tasks, trials, scores, strict=True)
        if task.source is not TaskSource.NOTHING
    ]
    alone = [
        group[0]
        for task, group in zip(tasks, trials, strict=True)
        if task.source is TaskSource.NOTHING
    ]
    return Compared(
        tasks=tasks,
        scores=scores,
        project=score_project(
            scored, alone, asked=wanted.how.asked, names=wanted.names
        ),
        patterns={
            target.value: patterns_of(target, scored, alone) for target in Target
        },
        said=said,
        compare=wanted.how.compare,
    )
