"""The five operators over steps that are, are not, or cannot be said to be chosen.

Plain values in, plain values out: nothing here knows traces or conditions.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

Known = bool | None
"""True, false, or neither: a condition that could not be decided."""


class Tally(msgspec.Struct, frozen=True):
    """Places in the sequence that was looked at, by what can be said of them.

    `breaking` break the contract; `holding` do what it asks; `undecided` could be
    either.
    """

    breaking: tuple[int, ...] = ()
    holding: tuple[int, ...] = ()
    undecided: tuple[int, ...] = ()


def always(chosen: Sequence[Known], then: Sequence[Known]) -> Tally:
    """Every chosen step must be one of `then`."""
    return _sorted_out(chosen, then)


def precedes(chosen: Sequence[Known], before: Sequence[Known]) -> Tally:
    """Before every chosen step there must be an earlier one of `before`."""
    seen: Known = False
    earlier: list[Known] = []
    for known in before:
        earlier.append(seen)
        if seen is not True and known is not False:
            seen = known
    return _sorted_out(chosen, earlier)


def never(chosen: Sequence[Known]) -> Tally:
    """No step may be chosen."""
    return Tally(
        breaking=_places(chosen, value=True), undecided=_places(chosen, value=None)
    )


def at_most(chosen: Sequence[Known], n: int) -> Tally:
    """At most `n` steps may be chosen; those after the first `n` break it."""
    found = _places(chosen, value=True)
    return Tally(
        breaking=found[n:], holding=found[:n], undecided=_places(chosen, value=None)
    )


def eventually(chosen: Sequence[Known]) -> Tally:
    """At least one step must be chosen. That none was is no place in the sequence."""
    return Tally(
        holding=_places(chosen, value=True), undecided=_places(chosen, value=None)
    )


def _sorted_out(chosen: Sequence[Known], asked: Sequence[Known]) -> Tally:
    """What each chosen step does; one that may not be chosen is undecided."""
    verdicts = [
        other if one is True else one for one, other in zip(chosen, asked, strict=True)
    ]
    is_chosen = [one is True for one in chosen]
    return Tally(
        breaking=tuple(
            [n for n, known in enumerate(verdicts) if known is False and is_chosen[n]]
        ),
        holding=_places(verdicts, value=True),
        undecided=_places(verdicts, value=None),
    )


def _places(values: Sequence[Known], *, value: Known) -> tuple[int, ...]:
    return tuple([place for place, found in enumerate(values) if found is value])
