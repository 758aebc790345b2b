"""The table twin of a fork drawing: what happens column by column, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from apps.engine.branching import Branch, Branching, Fork, ForkKind, Lane, Track
from apps.engine.check import percent

_MOST_IDS: Final = 20
_MOST_NAMED: Final = 4
_WORDS: Final = {
    ForkKind.PARTED: "trials part and do not come back together",
    ForkKind.ENDED: "some end here while others go on",
    ForkKind.DIFFERENCE: "trials differ and come back together",
    ForkKind.DETOUR: "some do more and come back",
}


class BranchRow(msgspec.Struct, frozen=True):
    """One way: what, who, and how those ended ("2 of 3 passed", with its interval)."""

    label: str
    trials: str
    count: int
    outcome: str
    interval: str
    writes: tuple[str, ...] = ()


class TableRow(msgspec.Struct, frozen=True):
    """One thing that happens: `kind` is a kind of fork, or `equal`.

    `number` counts forks and differences from 1, as the marks of the drawing do; `None`
    for detours and what is equal. `where` names the places, which count from 1.
    """

    kind: str
    number: int | None
    where: str
    text: str
    branches: tuple[BranchRow, ...] = ()
    is_decisive: bool = False


def rows_of(branching: Branching) -> tuple[TableRow, ...]:
    """The rows in the order of the columns; equal stretches of each track between."""
    numbers = {id(fork): at for at, fork in enumerate(branching.in_order, start=1)}
    placed = [
        (fork.after, 1, 0, _fork_row(fork, numbers.get(id(fork))))
        for fork in branching.forks + branching.differences + branching.detours
    ]
    for track in branching.tracks:
        placed += [
            (first, 0, -len(track.trials), row)
            for first, row in _equal(branching, track)
        ]
    placed.sort(key=lambda entry: entry[:3])
    return tuple([row for *_, row in placed])


def outcome_words(lanes: Sequence[Lane]) -> str:
    """How some trials ended: a word for one, "k of n passed" for several."""
    known = [lane.passed for lane in lanes if lane.passed is not None]
    if not known:
        return "outcome unknown"
    if len(lanes) == 1:
        return "passed" if known[0] else "failed"
    unknown = len(lanes) - len(known)
    more = f", {unknown} unknown" if unknown else ""
    return f"{sum(known)} of {len(known)} passed{more}"


def _fork_row(fork: Fork, number: int | None) -> TableRow:
    name = f"Fork {number}: " if number else ""
    words = _WORDS[fork.kind]
    return TableRow(
        kind=str(fork.kind),
        number=number,
        where="at the start" if fork.after < 0 else f"after place {fork.after + 1}",
        text=f"{name}{words if name else words[:1].upper() + words[1:]}. {fork.sentence}",
        branches=tuple([_branch_row(branch) for branch in fork.branches]),
        is_decisive=fork.is_decisive,
    )


def _branch_row(branch: Branch) -> BranchRow:
    shown = ", ".join(branch.trial_ids[:_MOST_IDS])
    more = branch.n - _MOST_IDS
    outcome = (
        f"{branch.passed} of {branch.known} passed"
        if branch.known
        else "outcome unknown"
    )
    return BranchRow(
        label=f"{branch.label} (and others)" if branch.is_various else branch.label,
        trials=f"{shown} and {more} more" if more > 0 else shown,
        count=branch.n,
        outcome=outcome,
        interval=(
            ""
            if branch.interval is None
            else f"{percent(branch.interval.low)} to {percent(branch.interval.high)}"
        ),
        writes=branch.writes,
    )


def _equal(branching: Branching, track: Track) -> Iterator[tuple[int, TableRow]]:
    """Yield the stretches in which all trials of a track do the same."""
    columns = sorted(
        {
            node.column
            for node in branching.nodes
            if node.trials == track.trials and track.born < node.column <= track.until
        }
    )
    start = 0
    for at in range(1, len(columns) + 1):
        if at < len(columns) and columns[at] == columns[at - 1] + 1:
            continue
        yield columns[start], _equal_row(branching, track, columns[start:at])
        start = at


def _equal_row(branching: Branching, track: Track, columns: Sequence[int]) -> TableRow:
    count, trials = len(columns), len(track.trials)
    steps = "1 step" if count == 1 else f"{count} steps"
    if trials == 1:
        who = f"{branching.lanes[track.trials[0]].trial_id} goes {steps} alone."
    elif trials == len(branching.lanes):
        who = f"All {trials} trials are equal for {steps}."
    else:
        who = f"{_names(branching, track)} are equal for {steps}."
    first, last = columns[0] + 1, columns[-1] + 1
    where = f"place {first}" if first == last else f"places {first} to {last}"
    return TableRow(kind="equal", number=None, where=where, text=who)


def _names(branching: Branching, track: Track) -> str:
    ids = [branching.lanes[trial].trial_id for trial in track.trials]
    if len(ids) <= _MOST_NAMED:
        return ", ".join(ids)
    return f"{', '.join(ids[: _MOST_NAMED - 1])} and {len(ids) - _MOST_NAMED + 1} more"
