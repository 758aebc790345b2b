"""Token counts as files write them, made into a `Usage` with its state.

Missing is never zero: a sentinel is not recorded, and counts that are all zero are a
suspect, because every vendor that writes them means "not recorded".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import msgspec

from apps.engine.trace import MISSING, ZERO_SUSPECT, Usage, UsageState

LARGEST: Final = 2**63 - 1
_LONGEST_TEXT: Final = 24
_LONGEST_DIGITS: Final = 4_000
_NOT_RECORDED: Final = -1
_SHOWN: Final = 20


class Counts(msgspec.Struct):
    """The counts of one model call as read; `None` is not recorded."""

    input_total: int | None = None
    input_cached: int | None = None
    input_cache_write: int | None = None
    output_total: int | None = None
    output_reasoning: int | None = None
    total: int | None = None
    source: str | None = None


class OutOfRange:
    """Which whole numbers were read as not recorded because no count is so large.

    `count` are those of all traces, each once a trace; `first` is the first in words.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        self._of_trace: set[str] = set()

    def add(self, digits: str) -> None:
        """Count one more; a reader may look at the same number several times."""
        if digits in self._of_trace:
            return
        self._of_trace.add(digits)
        self.count += 1
        self.first = self.first or _shortly(digits)

    def end_trace(self) -> None:
        """Forget what was seen in one trace: the next one counts anew."""
        self._of_trace.clear()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Hear of every number that is refused inside the block."""
        token = _WATCHING.set(self)
        try:
            yield
        finally:
            _WATCHING.reset(token)


# Numbers are read deep inside of every reader, far from where notes are made.
_WATCHING: ContextVar[OutOfRange | None] = ContextVar("out_of_range", default=None)


def whole_number(value: Any) -> int | None:
    """Return a count that was written as integer, text or float; `None` if it is none.

    "112", 112.0 and "112.0" are 112; 7.5, -1, true, NaN and numbers above 2^63-1 are
    not counts. An `OutOfRange` that watches hears of whole numbers outside of the range
    but for -1, which says that nothing was recorded.
    """
    found = as_whole(value)
    if found is None or 0 <= found <= LARGEST:
        return found
    watching = _WATCHING.get()
    if watching is not None and found != _NOT_RECORDED:
        watching.add(_digits(found))
    return None


def as_whole(value: Any) -> int | None:
    """Return a whole number of any size as `whole_number` reads it, `None` if none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = _number_in(value)
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) and value.is_integer() else None
    return value if isinstance(value, int) else None


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:
        # Python writes no number of more than 4,300 digits.
        return f"a number of {number.bit_length():,} bits"


def _shortly(digits: str) -> str:
    if len(digits) <= _LONGEST_TEXT:
        return digits
    return f"{digits[:_SHOWN]}… ({len(digits):,} characters)"


def _number_in(text: str) -> int | float | None:
    if len(text) > _LONGEST_TEXT or not text.isascii():
        return _long_number_in(text)
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _long_number_in(text: str) -> int | None:
    """Return a number of more digits than any count has, so that it can be told."""
    if len(text) > _LONGEST_DIGITS or not (text.isascii() and text.isdecimal()):
        return None
    return int(text)


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
