"""What several checks derive from one trace is derived once, and forgotten with it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from apps.engine.trace import Trace

T = TypeVar("T")


def once_per_trace(derive: Callable[[Trace], T]) -> Callable[[Trace], T]:
    """Keep what `derive` returns for as long as the trace lives.

    The trace is known by its identity: it is frozen, and hashing its content would
    cost more than most derivations. What comes back is shared: nobody may change it.
    """
    kept: dict[int, tuple[weakref.ref[Trace], T]] = {}

    @wraps(derive)
    def derived(trace: Trace) -> T:
        key = id(trace)
        found = kept.get(key)
        if found is not None and found[0]() is trace:
            return found[1]
        value = derive(trace)
        kept[key] = (weakref.ref(trace, lambda _: kept.pop(key, None)), value)
        return value

    return derived
