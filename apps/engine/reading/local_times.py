"""Times that were written without a zone: read as UTC, and said so once."""

from __future__ import annotations

import re
from typing import Any, Final

from apps.engine.reading.clock import any_time_ns, later_ns
from apps.engine.reading.text_limits import Remarks

_ZONE: Final = re.compile(r"(?:Z|UTC|[+-]\d{2}:?\d{2})\s*\Z", re.IGNORECASE)
_NO_ZONE: Final = "Times without a time zone, read as UTC: {n}."


def told_ns(value: Any, remarks: Remarks) -> int | None:
    """Return the nanoseconds of a recorded time; a text without a zone is remarked on.

    What is no time gives `None`.
    """
    moment = any_time_ns(value)
    if moment is None:
        return None
    is_clock_text = isinstance(value, str) and ":" in value
    if is_clock_text and not _ZONE.search(value):
        remarks.add(_NO_ZONE)
    return moment


def before_ns(moment: int | None, seconds: Any) -> int | None:
    """Return the time `seconds` before `moment`; `None` where either is not recorded."""
    if moment is None or isinstance(seconds, bool):
        return None
    if not isinstance(seconds, int | float) or not 0 <= seconds < 10**7:
        return None
    return later_ns(moment, -round(seconds * 10**9))
