"""What the fork view of a task needs: lanes, forks, branches, two steps side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from apps.engine.branching import (
    Branch,
    Branching,
    Compare,
    Fork,
    ForkKind,
)
from apps.scoring.models import TaskScore
from apps.traces.models import Task
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.decisive_forks import caveat_of
from apps.web.pages.forks_drawing import ForkPicture, picture_of
from apps.web.pages.forks_steps import PartPair, pairs_of, texts_at
from apps.web.pages.forks_trials import Compared, ComparedTrial, compared_trials
from apps.web.pages.replay_place import ReplayPlace, replay_of_task
from apps.web.pages.scoring_state import ScoringState, scoring_state

MOST_LISTED: Final = 20
MOST_CHOICES: Final = 60
MOST_SKETCHED: Final = 6
KIND_WORDS: Final = {
    ForkKind.PARTED.value: "the trials part and do not come back together",
    ForkKind.ENDED.value: "some trials end here while others go on",
    ForkKind.DIFFERENCE.value: "the trials differ and come back together",
}


class ForkChoice(msgspec.Struct, frozen=True):
    """One fork to choose, with its number from 1."""

    number: int
    url: str
    where: str
    kind: str
    is_decisive: bool
    is_the_decisive_one: bool
    is_end: bool
    is_current: bool


class BranchLine(msgspec.Struct, frozen=True):
    """One way at the fork: who took it and how they ended.

    `first_url` and `second_url` put it on the left or the right below.
    """

    branch: Branch
    trials: list[ComparedTrial]
    more: int
    first_url: str
    second_url: str
    is_first: bool
    is_second: bool


class StepSide(msgspec.Struct, frozen=True):
    """One side of the comparison: a trial at its step (from 0), and what to show of it.

    `others` are the trials of the same branch that may stand here instead.
    """

    trial: ComparedTrial
    way: str
    step: int | None
    place: str
    kind: str
    is_kept: bool
    others: list[tuple[str, str]]


class CurrentFork(msgspec.Struct, frozen=True):
    """The chosen fork with its branches, and two of their steps side by side."""

    number: int
    fork: Fork
    kind: str
    branches: list[BranchLine]
    caveat: str
    where: str
    trials: int
    is_the_decisive_one: bool
    sides: list[StepSide | None]
    parts: list[PartPair]


class ForksPage(msgspec.Struct, frozen=True):
    """The fork view of one task; `current` is `None` where no trials fork."""

    place: Place
    task: Task
    compare: Compare
    scoring: ScoringState
    compared: Compared
    picture: ForkPicture | None
    forks: int
    choices: list[ForkChoice]
    more_choices: int
    current: CurrentFork | None
    previous_url: str
    next_url: str
    decisions_url: str
    text_url: str
    said: list[str]
    replay: ReplayPlace | None


class ForkSketch(msgspec.Struct, frozen=True):
    """The stored forks of a task in short: the first ones, and how many more."""

    forks: list[tuple[int, dict[str, Any], str]]
    more: int
    statements: list[str]


class _Asked(msgspec.Struct, frozen=True):
    """What the address asks for."""

    compare: Compare
    fork: int | None
    first: int | None
    second: int | None


def forks_page(place: Place, task: Task, query: Mapping[str, str]) -> ForksPage:
    """The fork view that the address asks for; without a fork the decisive one."""
    asked = _Asked(
        compare="text" if query.get("compare") == "text" else "decisions",
        fork=whole(query.get("fork", "")),
        first=whole(query.get("left", "")),
        second=whole(query.get("right", "")),
    )
    compared = compared_trials(task, asked.compare)
    forks = compared.branching.in_order
    number = _number(compared.branching, forks, asked.fork)
    return ForksPage(
        place=place,
        task=task,
        compare=asked.compare,
        scoring=scoring_state(place.project.pk),
        compared=compared,
        picture=picture_of(compared.branching, compared.trials),
        forks=len(forks),
        choices=_choices(compared.branching, forks, asked, number),
        more_choices=max(0, len(forks) - MOST_CHOICES),
        current=_current(compared, forks[number - 1], asked, number)
        if number
        else None,
        previous_url=_url(asked, fork=number - 1) if number and number > 1 else "",
        next_url=_url(asked, fork=number + 1) if 0 < number < len(forks) else "",
        decisions_url="?",
        text_url="?compare=text",
        said=[
            *compared.said,
            *(one.sentence for one in compared.branching.statements),
        ],
        replay=replay_of_task(task),
    )


def sketch_of(score: TaskScore) -> ForkSketch:
    """The stored forks, each with its number and a word for its kind."""
    found = score.detail["branching"]
    forks = [
        (number, fork, KIND_WORDS[fork["kind"]])
        for number, fork in enumerate(found["forks"], start=1)
    ]
    decisive = [one for one in forks if one[1]["is_the_decisive_one"]]
    shown = forks[:MOST_SKETCHED]
    if decisive and decisive[0] not in shown:
        shown = [*shown[:-1], decisive[0]]
    return ForkSketch(
        forks=shown,
        more=score.fork_count - len(shown),
        statements=[one["sentence"] for one in found["statements"]],
    )


def _number(branching: Branching, forks: Sequence[Fork], asked: int | None) -> int:
    """The fork to show, from 1: the one asked for, the decisive one, the first; or 0."""
    if asked is not None and 1 <= asked <= len(forks):
        return asked
    decisive = branching.decisive_fork
    for number, fork in enumerate(forks, start=1):
        if fork is decisive:
            return number
    return 1 if forks else 0


def _url(asked: _Asked, **more: object) -> str:
    fields: dict[str, object] = {}
    if asked.compare == "text":
        fields["compare"] = "text"
    return "?" + urlencode({**fields, **more})


def _choices(
    branching: Branching, forks: Sequence[Fork], asked: _Asked, current: int
) -> list[ForkChoice]:
    """The forks around the current one, so many as can be listed."""
    start = max(0, min(current - MOST_CHOICES // 2, len(forks) - MOST_CHOICES))
    shown = list(enumerate(forks, start=1))[start : start + MOST_CHOICES]
    return [
        ForkChoice(
            number=number,
            url=_url(asked, fork=number),
            where=where_of(fork),
            kind=KIND_WORDS[fork.kind],
            is_decisive=fork.is_decisive,
            is_the_decisive_one=fork is branching.decisive_fork,
            is_end=fork.kind is ForkKind.ENDED,
            is_current=number == current,
        )
        for number, fork in shown
    ]


def where_of(fork: Fork) -> str:
    """At which steps (from 1) the trials are at a fork: `step 6`, `steps 6 to 12`."""
    steps = sorted({one.step + 1 for one in fork.places if one.step is not None})
    if not steps:
        return "at the end"
    if len(steps) == 1:
        return f"step {steps[0]:,}"
    return f"steps {steps[0]:,} to {steps[-1]:,}"


def _current(compared: Compared, fork: Fork, asked: _Asked, number: int) -> CurrentFork:
    chosen = _two_trials(compared, fork, asked)
    sides = [
        _side(compared, fork, one, _Where(asked, number, chosen)) for one in (0, 1)
    ]
    texts = [
        texts_at(side.trial.pk, side.step) if side and side.step is not None else None
        for side in sides
    ]
    kept = [
        msgspec.structs.replace(side, kind=text.kind, is_kept=text.is_kept)
        if side and text
        else side
        for side, text in zip(sides, texts, strict=True)
    ]
    return CurrentFork(
        number=number,
        fork=fork,
        kind=KIND_WORDS[fork.kind],
        branches=_branches(compared, fork, asked, number=number, chosen=chosen),
        caveat=caveat_of(compared.branching, fork),
        where=where_of(fork),
        trials=sum(branch.n for branch in fork.branches),
        is_the_decisive_one=fork is compared.branching.decisive_fork,
        sides=kept,
        parts=pairs_of(texts[0], texts[1]) if texts[0] and texts[1] else [],
    )


class _Where(msgspec.Struct, frozen=True):
    """The address of a comparison: what was asked, the fork, and both trials."""

    asked: _Asked
    number: int
    chosen: tuple[str | None, str | None]


def _two_trials(
    compared: Compared, fork: Fork, asked: _Asked
) -> tuple[str | None, str | None]:
    """The trials to compare: those asked for, else one of each of the two main ways.

    Where the branches end differently, one that passed and one that failed.
    """
    by_pk = {one.pk: label for label, one in compared.trials.items()}
    there = {place.trial_id for place in fork.places}
    first = by_pk.get(asked.first or 0)
    second = by_pk.get(asked.second or 0)
    ways = _two_ways(fork.branches)
    found = [
        given if given in there else _first_of(compared, ways, at)
        for at, given in enumerate((first, second))
    ]
    return found[0], found[1]


def _first_of(compared: Compared, ways: Sequence[Branch], at: int) -> str | None:
    if at >= len(ways):
        return None
    return _in_order(compared, ways[at].trial_ids)[0]


def _two_ways(branches: Sequence[Branch]) -> list[Branch]:
    first = branches[0]
    for other in branches[1:]:
        if _share(first) != _share(other):
            return [first, other]
    return list(branches[:2])


def _share(branch: Branch) -> float | None:
    return branch.passed / branch.known if branch.known else None


def _side(compared: Compared, fork: Fork, at: int, where: _Where) -> StepSide | None:
    label = where.chosen[at]
    if label is None:
        return None
    trial = compared.trials[label]
    branch = next(one for one in fork.branches if label in one.trial_ids)
    step = fork.step_of.get(label)
    place = "" if step is None else f"step {step + 1:,}"
    if step is None:
        step = _step_beside(compared.branching, fork, label)
        if branch.is_straight:
            place = "goes straight on" + (
                f" to step {step + 1:,}" if step is not None else ""
            )
        else:
            step = trial.step_count - 1 if trial.step_count else None
            place = "ended here" + (
                f"; its last step is {step + 1:,}" if step is not None else ""
            )
    return StepSide(
        trial=trial,
        way="various" if branch.is_various else branch.label,
        step=step,
        place=place,
        kind="",
        is_kept=False,
        others=[
            (one, _compare_url(compared, where, at, one))
            for one in _in_order(compared, branch.trial_ids)
            if one != label
        ][:MOST_LISTED],
    )


def _step_beside(branching: Branching, fork: Fork, label: str) -> int | None:
    """The step with which a trial goes on that has nothing of its own at a fork."""
    lane = next((one for one in branching.lanes if one.trial_id == label), None)
    if lane is None:
        return None
    for node, step in zip(lane.nodes, lane.steps, strict=True):
        if branching.nodes[node].column >= fork.column:
            return step
    return None


def _compare_url(compared: Compared, where: _Where, at: int, label: str) -> str:
    """The address with a trial on one side; the two are swapped if it is on the other."""
    chosen = [*where.chosen]
    if chosen[1 - at] == label:
        chosen[1 - at] = chosen[at]
    chosen[at] = label
    pks = [compared.trials[one].pk if one else "" for one in chosen]
    return _url(where.asked, fork=where.number, left=pks[0], right=pks[1]) + "#steps"


def _branches(
    compared: Compared,
    fork: Fork,
    asked: _Asked,
    *,
    number: int,
    chosen: tuple[str | None, str | None],
) -> list[BranchLine]:
    where = _Where(asked, number, chosen)
    lines = []
    for branch in fork.branches:
        labels = _in_order(compared, branch.trial_ids)
        lines.append(
            BranchLine(
                branch=branch,
                trials=[compared.trials[one] for one in labels[:MOST_LISTED]],
                more=max(0, len(labels) - MOST_LISTED),
                first_url=_compare_url(compared, where, 0, labels[0]),
                second_url=_compare_url(compared, where, 1, labels[0]),
                is_first=chosen[0] in branch.trial_ids,
                is_second=chosen[1] in branch.trial_ids,
            )
        )
    return lines


def _in_order(compared: Compared, labels: Sequence[str]) -> list[str]:
    """Trials in the order of the task, not of their names."""
    wanted = set(labels)
    return [label for label in compared.trials if label in wanted]
