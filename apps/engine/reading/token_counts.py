"""Token counts as files write them, made into a `Usage` with its state.

Missing is never zero: a sentinel is not recorded, and counts that are all zero are a
suspect, because every vendor that writes them means "not recorded".
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from apps.engine.trace import MISSING, ZERO_SUSPECT, Usage, UsageState

LARGEST: Final = 2**63 - 1
_LONGEST_TEXT: Final = 24


class Counts(msgspec.Struct):
    """The counts of one model call as read; `None` is not recorded."""

    input_total: int | None = None
    input_cached: int | None = None
    input_cache_write: int | None = None
    output_total: int | None = None
    output_reasoning: int | None = None
    total: int | None = None
    source: str | None = None


def whole_number(value: Any) -> int | None:
    """Return a count that was written as integer, text or float; `None` if it is none.

    "112", 112.0 and "112.0" are 112; 7.5, -1, true, NaN and numbers above 2^63-1 are
    not counts.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = _number_in(value)
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) and value.is_integer() else None
    if not isinstance(value, int) or not 0 <= value <= LARGEST:
        return None
    return value


def _number_in(text: str) -> int | float | None:
    if len(text) > _LONGEST_TEXT or not text.isascii():
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def with_cache(given: int | None, *beside: int | None) -> int | None:
    """Return the whole input where a vendor counts what the cache holds beside it.

    `None` stays `None`: without the rest of the input the cache alone is no input.
    """
    if given is None:
        return None
    return min(given + sum(count or 0 for count in beside), LARGEST)


def usage_of(counts: Counts, marked: UsageState | None = None) -> Usage:
    """Return the `Usage` of these counts, with the state that they deserve.

    `marked` is what the file says of the counts themselves (a vendor's estimate); it
    holds only where there are counts.
    """
    recorded = [
        count
        for count in (
            counts.input_total,
            counts.output_total,
            counts.total,
            counts.output_reasoning,
            counts.input_cached,
            counts.input_cache_write,
        )
        if count is not None
    ]
    if not recorded:
        return MISSING
    if not any(recorded):
        return ZERO_SUSPECT
    is_whole = counts.input_total is not None and counts.output_total is not None
    return Usage(
        state=marked or (UsageState.REPORTED if is_whole else UsageState.PARTIAL),
        input_total=counts.input_total,
        input_cached=counts.input_cached,
        input_cache_write=counts.input_cache_write,
        output_total=counts.output_total,
        output_reasoning=counts.output_reasoning,
        total=counts.total,
        source=counts.source,
    )
