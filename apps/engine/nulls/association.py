"""Whether what a check saw goes with how a trace ended: a 2 x 2 table and its test."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from typing import Final, TypeAlias

import msgspec

_TOLERANCE: Final = 1e-7

Outcomes: TypeAlias = tuple[int, int]
"""How many traces passed and how many failed."""


class Association(msgspec.Struct, frozen=True):
    """Of the traces that fired and of those that did not, how many passed.

    `p` is the two-sided p of Fisher's exact test; None where a margin of the table is
    empty. It assumes that traces are independent, which trials of one task are not:
    `tasks` distinct tasks are among them, and `without_task` traces name none.
    """

    fired: int
    fired_passed: int
    not_fired: int
    not_fired_passed: int
    tasks: int
    without_task: int
    p: float | None

    @property
    def traces(self) -> int:
        """All traces of the table."""
        return self.fired + self.not_fired


def association(
    *, fired: Outcomes, not_fired: Outcomes, tasks: int, without_task: int
) -> Association:
    """The table with its p; raises `ValueError` for a count below 0."""
    p = fisher_exact(*fired, *not_fired)
    margins = (
        sum(fired),
        sum(not_fired),
        *map(sum, zip(fired, not_fired, strict=True)),
    )
    return Association(
        fired=sum(fired),
        fired_passed=fired[0],
        not_fired=sum(not_fired),
        not_fired_passed=not_fired[0],
        tasks=tasks,
        without_task=without_task,
        p=p if all(margins) else None,
    )


def fisher_exact(a: int, b: int, c: int, d: int) -> float:
    """The two-sided p of the table [[a, b], [c, d]] with its margins held fixed.

    Sums the hypergeometric probabilities of all tables that are at most as likely as
    the observed one (Fisher 1935, The Design of Experiments, chapter 2; two-sided by
    the order of probabilities, Freeman and Halton 1951). Two that differ by less than
    1 part in 10**7 count as equally likely, as in `scipy.stats.fisher_exact`, against
    which it is tested. Assumes independent observations. An empty margin gives 1; a
    p under the smallest float gives 0. Takes time in proportion to the smallest
    margin. Raises `ValueError` for a count below 0.
    """
    if min(a, b, c, d) < 0:
        raise ValueError("Each count of a table must be at least 0.")
    lowest = max(0, a - d)
    weights = list(hypergeometric_weights(row=a + b, column=a + c, total=a + b + c + d))
    bound = weights[a - lowest] * (1 + _TOLERANCE)
    extreme = fsum([weight for weight in weights if weight <= bound])
    return min(1.0, extreme / fsum(weights))


def hypergeometric_weights(*, row: int, column: int, total: int) -> Iterator[float]:
    """How likely each first cell of a table is beside the likeliest, smallest first.

    The first cell is `row` draws from `total` things of which `column` count; it goes
    from max(0, row + column - total) to min(row, column).
    """
    low, high = max(0, row + column - total), min(row, column)
    mode = min(high, max(low, (row + 1) * (column + 1) // (total + 2)))
    rest = total - row - column
    below, weight = [], 1.0
    for cell in range(mode, low, -1):
        weight *= cell * (rest + cell) / ((row - cell + 1) * (column - cell + 1))
        below.append(weight)
    yield from reversed(below)
    weight = 1.0
    yield weight
    for cell in range(mode, high):
        weight *= (row - cell) * (column - cell) / ((cell + 1) * (rest + cell + 1))
        yield weight
