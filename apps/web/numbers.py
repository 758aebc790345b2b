"""Whole numbers out of addresses: what a person or a script may have typed."""

from __future__ import annotations

# Every number of 18 digits fits into a bigint of the database.
MOST_DIGITS = 18


def whole(value: str) -> int | None:
    """The number that `value` writes in at most 18 ASCII digits; None for all else.

    Stricter than `str.isdigit`, which also lets through signs that `int` refuses.
    """
    if not (value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS):
        return None
    return int(value)
