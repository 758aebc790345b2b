"""The facts of one answer of a model, in one shape for all providers."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.engine.reading.token_counts import Counts


class Asked(msgspec.Struct):
    """A tool call that an answer asks for."""

    name: Any
    call_id: Any
    arguments: Any


class Answer(msgspec.Struct, kw_only=True):
    """The facts of one answer, as recorded. `text` is what a person reads.

    `choices` is how many answers the provider gave to the one request.
    """

    text: Any = None
    reasoning: Any = None
    asked: list[Asked] = []
    finish: Any = None
    model: Any = None
    response_id: Any = None
    conversation: Any = None
    counts: Counts = msgspec.field(default_factory=Counts)
    start_ns: int | None = None
    error_type: Any = None
    error_message: Any = None
    role: Any = None
    choices: int = 1


def joined(before: Any, after: Any) -> Any:
    """Return two pieces of an answer as one; texts are joined by a line break."""
    if before is None or after is None:
        return after if before is None else before
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n{after}"
    whole = before if isinstance(before, list) else [before]
    return [*whole, *(after if isinstance(after, list) else [after])]
