"""The trials in files, each scored as soon as it is read, and the tasks that they are of.

Of a trace nothing but its score is kept. Tasks are found as the application finds them:
named by the file, else by the same first input.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from apps.engine.bodies.texts import said_in
from apps.engine.branching import Compare, packed, points_of
from apps.engine.root_input import root_input, root_input_hash
from apps.engine.trace import Outcome, Trace
from apps.engine.trials import Asked, TraceScore, Trial, score_trace
from evalsite.offline.reading import Complaint, ReadTrace, traces_at
from evalsite.offline.sentences import plain

_LONGEST_TITLE: Final = 120
_NUMBERS: Final = re.compile(r"(\d+)")


class TaskSource(StrEnum):
    """What says that traces are trials of one task: the file, their input, or nothing."""

    FILE = "file"
    INPUT = "input"
    NOTHING = "nothing"


class ReadTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One trace of a file with its score. `place` is its number in the file, from 1."""

    file: str
    member: str
    place: int
    name: str
    task: str
    trial: int | None
    native_id: str
    session: str
    input: str
    title: str
    content: str
    steps: int
    outcome: Outcome
    score: TraceScore


class FoundTrial(msgspec.Struct, frozen=True):
    """A trial by its id, which no other trial of the call has."""

    id: str
    read: ReadTrial

    @property
    def trial(self) -> Trial:
        """The trial as tasks are scored."""
        read = self.read
        label = read.name if read.trial is None else f"trial {read.trial}"
        return Trial(id=self.id, label=label, score=read.score)


class FoundTask(msgspec.Struct, frozen=True):
    """The trials of one task in order. Without a source it is one trace alone."""

    key: str
    name: str
    source: TaskSource
    trials: tuple[FoundTrial, ...]


class HowToScore(msgspec.Struct, frozen=True):
    """What is asked, what forks are compared by, and which tasks are taken."""

    asked: Asked
    compare: Compare = "decisions"
    takes: Callable[[str], bool] | None = None


def read_trials(
    paths: Iterable[Path], how: HowToScore, *, slug: str = ""
) -> Iterator[ReadTrial | Complaint]:
    """Read and score the traces of files and folders, one at a time."""
    for path in paths:
        for item in traces_at(path, slug=slug):
            if isinstance(item, Complaint):
                yield item
            elif _is_taken(item.trace, how):
                yield _scored(item, how)


def _is_taken(trace: Trace, how: HowToScore) -> bool:
    """A task that a file names is known before anything is scored."""
    return how.takes is None or not trace.task or how.takes(trace.task)


def _scored(read: ReadTrace, how: HowToScore) -> ReadTrial | Complaint:
    trace = read.trace
    try:
        score = score_trace(trace, how.asked)
        if how.compare == "text":
            points = packed(points_of(trace, compare="text"))
            score = msgspec.structs.replace(score, points=points)
    except Exception as broken:  # noqa: BLE001 - the other traces can still be scored
        return Complaint(
            read.file,
            f"This trace could not be scored ({type(broken).__name__}). That is our "
            "fault, and a bug worth reporting.",
            f"trace {trace.name}",
            is_incomplete=True,
        )
    return ReadTrial(
        file=read.file,
        member=read.member,
        place=read.number,
        name=trace.name,
        task=trace.task or "",
        trial=trace.trial,
        native_id=trace.native_id or "",
        session=trace.session or "",
        input="" if trace.task else root_input_hash(trace) or "",
        title="" if trace.task else _title(trace),
        content=_content(trace) if trace.native_id else "",
        steps=len(trace.steps),
        outcome=trace.outcome,
        score=score,
    )


def _title(trace: Trace) -> str:
    words = " ".join(said_in(root_input(trace)).split())
    return words if len(words) <= _LONGEST_TITLE else f"{words[: _LONGEST_TITLE - 1]}…"


def _content(trace: Trace) -> str:
    return hashlib.blake2b(msgspec.msgpack.encode(trace), digest_size=16).hexdigest()


def found_tasks(
    read: Sequence[ReadTrial], how: HowToScore
) -> tuple[list[FoundTask], list[Complaint]]:
    """The tasks of trials in the order of their names, and what is left out and why.

    A trace that stands in two files counts once, and a session that grew counts as
    read last in it. Traces of which no other is of the same task come as tasks of one.
    """
    said: list[Complaint] = []
    kept = _once(sorted(read, key=lambda one: (one.file, one.place)), said)
    trials = _with_ids(kept)
    by_key: dict[tuple[TaskSource, str], list[FoundTrial]] = defaultdict(list)
    for trial in trials:
        by_key[_key(trial)].append(trial)
    found: list[FoundTask] = []
    for (source, key), group in by_key.items():
        if source is TaskSource.INPUT:
            group, others = _one_per_run(group, said)
            found += [_task(TaskSource.NOTHING, one.id, [one]) for one in others]
        found.append(_task(source, key, group))
    takes = how.takes
    return (
        sorted(
            [one for one in found if takes is None or _takes(one, takes)],
            key=lambda one: (natural(one.name), one.key),
        ),
        said,
    )


def _takes(task: FoundTask, takes: Callable[[str], bool]) -> bool:
    return task.source is not TaskSource.NOTHING and takes(task.name)


def _once(read: Iterable[ReadTrial], said: list[Complaint]) -> list[ReadTrial]:
    """Each trace with an id of its own once: the first by file and place."""
    known: dict[str, ReadTrial] = {}
    kept = []
    for one in read:
        earlier = known.setdefault(one.native_id, one) if one.native_id else one
        if earlier is one:
            kept.append(one)
            continue
        is_same = earlier.content == one.content
        said.append(
            Complaint(
                one.file,
                f"This trace is counted once, as {earlier.file} has it"
                + ("." if is_same else "; here its content is another one."),
                f"trace {one.name}",
            )
        )
    return kept


def _with_ids(read: Iterable[ReadTrial]) -> list[FoundTrial]:
    """An id for each: file, name and number of the trial, and a count where that is not enough."""
    taken: set[str] = set()
    found = []
    for one in read:
        name = plain(_words(one))
        number, unique = 1, name
        while unique in taken:
            number += 1
            unique = f"{name} ({number})"
        taken.add(unique)
        found.append(FoundTrial(unique, one))
    return found


def _words(one: ReadTrial) -> str:
    where = f"{one.file}/{one.member}" if one.member else one.file
    number = "" if one.trial is None else f"trial {one.trial}"
    said = one.name.endswith(number)
    return f"{where}: {one.name}" if said else f"{where}: {one.name}, {number}"


def _key(one: FoundTrial) -> tuple[TaskSource, str]:
    if one.read.task:
        return TaskSource.FILE, one.read.task
    if one.read.input:
        return TaskSource.INPUT, one.read.input
    return TaskSource.NOTHING, one.id


def _one_per_run(
    group: Sequence[FoundTrial], said: list[Complaint]
) -> tuple[list[FoundTrial], list[FoundTrial]]:
    """Of traces of one session the longest: the log grew, and it is no other trial.

    Shorter ones of its own file are something else of that session and come second.
    """
    runs: dict[str, FoundTrial] = {}
    for one in group:
        known = runs.get(_run(one))
        if known is None or _length(one) > _length(known):
            runs[_run(one)] = one
    kept = {one.id for one in runs.values()}
    others = []
    for one in group:
        if one.id in kept:
            continue
        if one.read.file == runs[_run(one)].read.file:
            others.append(one)
            continue
        said.append(
            Complaint(
                one.read.file,
                f"{runs[_run(one)].read.file} has more of the same session: this is not "
                "another trial of it, and is left out.",
                f"trace {one.read.name}",
            )
        )
    return list(runs.values()), others


def _run(one: FoundTrial) -> str:
    grows = one.read.session and not one.read.native_id
    return f"session {one.read.session}" if grows else f"id {one.id}"


def _length(one: FoundTrial) -> tuple[int, str]:
    return one.read.steps, one.id


def _task(source: TaskSource, key: str, group: Sequence[FoundTrial]) -> FoundTask:
    if source is TaskSource.INPUT and len(group) == 1:
        source, key = TaskSource.NOTHING, group[0].id
    ordered = sorted(group, key=_in_order)
    first = ordered[0].read
    if source is TaskSource.INPUT:
        titles = sorted([one.read.title for one in ordered if one.read.title])
        return FoundTask(
            f"same input {key}",
            titles[0] if titles else f"same input {key}",
            source,
            tuple(ordered),
        )
    name = first.name if source is TaskSource.NOTHING else key
    return FoundTask(f"{source} {key}", name, source, tuple(ordered))


def _in_order(one: FoundTrial) -> tuple[bool, int, str, int]:
    read = one.read
    return (read.trial is None, read.trial or 0, read.file, read.place)


def natural(text: str) -> list[tuple[int, str]]:
    """A key by which "task 2" comes before "task 10"."""
    return [
        (int(part), "") if part.isdecimal() and len(part) < 19 else (-1, part)
        for part in _NUMBERS.split(text)
    ]
