"""Rates in words and as small marks, and the sentences that a calibration begins with.

No sentence says that a check earns its keep without the interval that it rests on.
"""

from __future__ import annotations

from typing import Final

import msgspec

from apps.engine.calibration import Rate
from apps.engine.check import Level
from apps.engine.nulls import Interval
from apps.review.calibration import Said
from apps.review.misses import Misses
from apps.review.transitions import DismissalReason
from apps.web.words import number_in_words

MARK_WIDTH: Final = 120
_EDGE: Final = 4
FEWEST: Final = 5
"""Groups with fewer answers are shown, and nothing is concluded from them."""

_REASON_WORDS: Final = {
    DismissalReason.CONVERGED: "as normal convergence",
    DismissalReason.CAPPED: "as response caps",
    DismissalReason.RETRIED: "because retries or branches were grouped in",
    DismissalReason.MODEL_CHANGED: "because the model changed",
    DismissalReason.USAGE_MISSING: "because usage was missing",
    DismissalReason.TOO_SENSITIVE: "because the check is too sensitive",
    DismissalReason.DUPLICATE: "as duplicates",
    DismissalReason.OTHER: "for other reasons",
}


class RangeMark(msgspec.Struct, frozen=True):
    """An interval on a line from 0 to 100 %, in the units of a small drawing."""

    low: float
    high: float
    value: float
    label: str


def range_mark(of: Rate) -> RangeMark | None:
    """The mark of a rate; None for 0 of 0."""
    if of.value is None or of.interval is None:
        return None
    return RangeMark(
        low=_place(of.interval.low),
        high=_place(of.interval.high),
        value=_place(of.value),
        label=rate_in_words(of),
    )


def _place(share: float) -> float:
    return round(_EDGE + share * (MARK_WIDTH - 2 * _EDGE), 1)


def whole_percent(share: float) -> str:
    """`7`, `36`, `under 1`, `over 99`: a share in whole percent, without the sign."""
    value = round(share * 100)
    if value == 0 and share > 0:
        return "under 1"
    if value == 100 and share < 1:
        return "over 99"
    return str(value)


def interval_in_words(interval: Interval) -> str:
    """`interval 1 to 31 %`."""
    low, high = whole_percent(interval.low), whole_percent(interval.high)
    return f"interval {low} to {high}\u202f%"


def share_in_words(of: Rate) -> str:
    """`7 %, interval 1 to 31 %`, or that there is nothing."""
    if of.value is None or of.interval is None:
        return of.nothing
    return f"{whole_percent(of.value)}\u202f%, {interval_in_words(of.interval)}"


def rate_in_words(of: Rate) -> str:
    """`1 of 14 (7 %, interval 1 to 31 %)`, or that there is nothing."""
    if of.value is None:
        return of.nothing
    return f"{number_in_words(of.k)} of {number_in_words(of.n)} ({share_in_words(of)})"


def points_in_words(value: float, interval: Interval | None) -> str:
    """A difference of two shares: `+12 points (-3 to +26)`."""
    low_high = ""
    if interval is not None:
        low_high = f" ({_signed(interval.low)} to {_signed(interval.high)})"
    return f"{_signed(value)} points{low_high}"


def _signed(share: float) -> str:
    value = round(share * 100)
    return f"{value:+d}".replace("-", "\u2212") if value else "0"


def verdict_on_precision(said: Said, precision: Rate, queued: int, level: str) -> str:
    """What reviewers think of what a check queues, in one sentence with its interval."""
    if level == Level.TELEMETRY:
        return (
            "It gives telemetry only: its signals stand on the pages of traces and are "
            "never queued, so nobody decides them one by one."
        )
    if not queued:
        return "This variant queues nothing here, so there is nothing to decide."
    if precision.interval is None:
        waiting = number_in_words(queued)
        signals = "review signal" if queued == 1 else "review signals"
        return f"No decisions yet on the {waiting} {signals} that it gives here."
    start = f"Reviewers confirmed {rate_in_words(precision)}"
    if precision.interval.high < 0.5:
        return f"{start}: most of what it queues is dismissed{_mainly(said)}."
    if precision.interval.low > 0.5:
        return f"{start}: more than half of what it queues is confirmed."
    return f"{start}: too few to say whether more than half of it is worth a look."


def _mainly(said: Said) -> str:
    """Why most are dismissed, where one reason stands for half of them or more."""
    reason = max(sorted(said.reasons), key=said.reasons.__getitem__, default="")
    if not reason or said.reasons[reason] * 2 < said.dismissed:
        return ""
    return f", mainly {_REASON_WORDS[DismissalReason(reason)]}"


def verdict_on_misses(misses: Misses) -> str:
    """What blind looks found where the check stayed quiet, in one sentence."""
    if not misses.quiet.n:
        return (
            "What it misses is not known: nobody has looked blindly at a trace on which "
            "it stayed quiet."
        )
    return (
        f"Where it stayed quiet, blind looks found a failure in "
        f"{rate_in_words(misses.quiet)}."
    )
