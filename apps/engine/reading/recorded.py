"""Small steps that many readers share: texts by the first known key, times of steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apps.engine.reading.text_limits import Remarks, clip
from apps.engine.trace import Step


def first_text(
    facts: dict[str, Any], keys: tuple[str, ...], limit: int, remarks: Remarks
) -> str | None:
    """Return the first value among `keys` that is a text or a number, cut to `limit`."""
    texts = (clip(facts.get(key), limit, remarks) for key in keys)
    return next((text for text in texts if text), None)


def span_of(steps: Iterable[Step]) -> tuple[int | None, int | None]:
    """Return the earliest and the latest recorded time of `steps`, in nanoseconds."""
    times = [
        time
        for step in steps
        for time in (step.start_ns, step.end_ns)
        if time is not None
    ]
    return min(times, default=None), max(times, default=None)


def mapping(value: Any) -> dict[str, Any]:
    """Return `value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def either(value: Any, snake: str, camel: str) -> Any:
    """Return what an object holds at `snake`, or at `camel` where that is absent."""
    held = mapping(value)
    return held.get(snake, held.get(camel))


def listed(value: Any) -> list[Any]:
    """Return `value` where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def word(value: Any) -> str:
    """Return `value` where it is a text, else "": safe to look up in a set of words."""
    return value if isinstance(value, str) else ""
