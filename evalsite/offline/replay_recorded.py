"""Recorded traces in files: cases frozen out of them, and what agents decided there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from apps.engine.agent_names import agent_key
from apps.engine.conduct import conducts_of
from apps.engine.replay.beside import ContractCounts, contract_counts
from apps.engine.replay.case import Case, case_hash, hash_of
from apps.engine.replay.freezing import frozen_case
from apps.engine.trials import Asked, Decided
from apps.engine.trials.project import UNNAMED
from evalsite.offline.named_files import once_each
from evalsite.offline.reading import Complaint, ReadTrace, traces_at
from evalsite.offline.trials import FoundTask, HowToScore, found_tasks, read_trials

Hear = Callable[[Complaint], None]
_Place = tuple[str, str, int]


class RecordedSide(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent did in recorded trials with the input of a case.

    `task` names the task whose trials they are. `is_exact`: one of them is the
    invocation that the case was frozen from, by its content; else they only share its
    input.
    """

    task: str
    is_exact: bool
    decided: tuple[Decided, ...]
    contracts: tuple[ContractCounts, ...]


class Recorded:
    """The recorded trials of a call, by what their agents were given."""

    def __init__(self, tasks: Sequence[FoundTask], given: _Given) -> None:
        self._tasks = tasks
        self._given = given

    def side_of(self, case: Case) -> RecordedSide | None:
        """The recorded side of a case; `None` where nothing has its input.

        All trials of a task count where one of them has it, as long as the agent acts
        there.
        """
        agent = agent_key(case.agent)
        for is_exact, mark in ((True, case_hash(case)), (False, _input_hash(case))):
            places = self._given[agent, is_exact, mark]
            for task in self._tasks:
                if not any(_place(one.read) in places for one in task.trials):
                    continue
                found = [
                    conduct
                    for trial in task.trials
                    for conduct in trial.read.score.conducts
                    if conduct.agent == agent
                ]
                return RecordedSide(
                    task=task.name,
                    is_exact=is_exact,
                    decided=tuple(one.decided for one in found),
                    contracts=contract_counts(
                        [judged for one in found for judged in one.judged]
                    ),
                )
        return None


def recorded_in(
    paths: Iterable[Path], asked: Asked, *, agents: Iterable[str], hear: Hear
) -> Recorded:
    """Read the recorded traces of files; `agents` are the names that matter."""
    files, twice = once_each(paths)
    for one in twice:
        hear(one)
    how = HowToScore(asked)
    read = []
    for item in read_trials(files, how):
        if isinstance(item, Complaint):
            hear(item)
        else:
            read.append(item)
    tasks, left_out = found_tasks(read, how)
    for one in left_out:
        hear(one)
    return Recorded(tasks, _given_in(files, {agent_key(name) for name in agents}))


def _no_more(_said: Complaint) -> None:
    """It was said when the files were read the first time."""


_Given = dict[tuple[str, bool, str], set[_Place]]


def _given_in(files: Sequence[Path], agents: set[str]) -> _Given:
    """By agent, and by hash of case or input, the places of traces that have it."""
    found: _Given = defaultdict(set)
    for item in _traces(files, hear=_no_more):
        place = (item.file, item.member, item.number)
        for key, case in _cases_of(item, agents):
            found[key, True, case_hash(case)].add(place)
            found[key, False, _input_hash(case)].add(place)
    return found


def frozen_in(paths: Iterable[Path], *, agent: str, hear: Hear) -> list[Case]:
    """Each input of an agent in the traces of files as a case, equal ones once.

    "" is what no named agent did, and so is "unnamed agent" where none is called that.
    """
    files, twice = once_each(paths)
    for one in twice:
        hear(one)
    wanted = agent_key(agent)
    nameless = {""} if is_nameless(agent) else set()
    found: dict[str, dict[str, Case]] = defaultdict(dict)
    for item in _traces(files, hear=hear):
        for key, case in _cases_of(item, {wanted, *nameless}):
            found[key].setdefault(case_hash(case), case)
    return list((found[wanted] or (found[""] if nameless else {})).values())


def is_nameless(agent: str) -> bool:
    """Whether these words may stand for what no named agent did."""
    return agent_key(agent) in {"", UNNAMED}


def _traces(files: Iterable[Path], *, hear: Hear) -> Iterator[ReadTrace]:
    for path in files:
        for item in traces_at(path):
            if isinstance(item, Complaint):
                hear(item)
            else:
                yield item


def _cases_of(item: ReadTrace, agents: set[str]) -> Iterator[tuple[str, Case]]:
    for conduct in conducts_of(item.trace):
        key = agent_key(conduct.agent)
        if key in agents:
            for one in conduct.invocations:
                yield key, frozen_case(item.trace, one.number)


def _input_hash(case: Case) -> str:
    return hash_of([case.input, list(case.messages)])


def _place(read: Any) -> _Place:
    return read.file, read.member, read.place
