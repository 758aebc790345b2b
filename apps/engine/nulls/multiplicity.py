"""What many tests at once do to the small chances among them."""

from __future__ import annotations

from collections.abc import Sequence


def benjamini_hochberg(
    chances: Sequence[float], *, tests: int | None = None
) -> tuple[float, ...]:
    """The q-value of each chance, in the given order.

    A q is the smallest false discovery rate at which this test would still be kept:
    the smallest m * p / rank over its own rank and all later ones, at most 1
    (Benjamini and Hochberg 1995). `tests` is m, how many were made, if more than
    those listed: the others count as chance 1. Assumes tests that are independent or
    positively dependent (Benjamini and Yekutieli 2001). Checked against statsmodels.
    Raises `ValueError` for a chance outside [0, 1] or fewer tests than chances.
    """
    made = len(chances) if tests is None else tests
    if made < len(chances):
        raise ValueError("No fewer tests can have been made than there are chances.")
    if not all(0 <= chance <= 1 for chance in chances):
        raise ValueError("A chance lies between 0 and 1.")
    order = sorted(range(len(chances)), key=chances.__getitem__)
    q_values = [1.0] * len(chances)
    smallest = 1.0
    for rank in range(len(order), 0, -1):
        place = order[rank - 1]
        smallest = min(smallest, chances[place] * made / rank)
        q_values[place] = smallest
    return tuple(q_values)
