"""The facts of one answer of a model, in one shape for all providers."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.token_counts import Counts
from apps.engine.trace import FinishReason

_ENDED: Final = frozenset({FinishReason.STOP, FinishReason.LENGTH})


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


def note_emptiness(answer: Answer) -> None:
    """Set the text of an answer that came to its end and holds nothing to "".

    Call it where the content was recorded: what is not recorded stays `None`, and so
    does the text of an answer that asks for tools instead.
    """
    if answer.text is None:
        answer.text = text_of_nothing(answer.finish, asks=bool(answer.asked))


def text_of_nothing(finish: Any, *, asks: bool) -> str | None:
    """The text of an answer whose recorded content has none, by why it ended.

    "" where it came to its end and asks for no tool, else `None`.
    """
    return "" if not asks and finish_of(finish)[0] in _ENDED else None


def joined(before: Any, after: Any) -> Any:
    """Return two pieces of an answer as one; texts are joined by a line break."""
    if before is None or after is None or before == "":
        return before if after is None else after
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n{after}"
    whole = before if isinstance(before, list) else [before]
    return [*whole, *(after if isinstance(after, list) else [after])]
