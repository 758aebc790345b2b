"""The gate for what targets answer: JSON that can be stored, or a sentence why not.

The same rules as for uploads: at most 128 levels, no integers of thousands of digits,
NaN and Infinity are not recorded, NUL and lone surrogates are shown as U+FFFD, and of
keys that stand twice the last value counts. Beyond them the number of values is bound,
because a short text can unfold into much memory.
"""

from __future__ import annotations

import json
from typing import Any, Final

from apps.engine.reading.json_values import Decoder, RefusedValue
from apps.engine.reading.json_words import why_not_json

MOST_VALUES: Final = 500_000
_BLANKS: Final = " \t\r\n"


class BadAnswer(Exception):
    """What came back cannot be taken; the message is a sentence for a person."""


class AnswerGate:
    """Reads JSON texts; `notes()` says what had to be replaced in them."""

    def __init__(self) -> None:
        self._decoder = Decoder()

    def value(self, text: str) -> Any:
        """The JSON value of a whole text; raises `BadAnswer`."""
        text = text.removeprefix("\ufeff").strip(_BLANKS)
        if not text:
            raise BadAnswer("The answer is empty.")
        if text.count(",") + text.count("[") + text.count("{") > MOST_VALUES:
            raise BadAnswer(f"The answer holds more than {MOST_VALUES:,} values.")
        try:
            value, end = self._decoder.decode(text, 0, 1)
        except RefusedValue as refusal:
            sentence = str(refusal).replace("The record", "The answer")
            raise BadAnswer(sentence) from None
        except json.JSONDecodeError as error:
            at_end = error.pos >= len(text)
            said = why_not_json(error, at_end=at_end).replace("this record", "it")
            raise BadAnswer(f"The answer cannot be read. {said}") from None
        if text[end:].strip(_BLANKS):
            raise BadAnswer("Something stands behind the JSON of the answer.")
        return value

    def notes(self) -> tuple[str, ...]:
        """A sentence for each kind of replacement, with how often it was made."""
        return tuple(
            f"{note.sentence} In all: {note.count:,}." for note in self._decoder.notes()
        )


def text_of(body: bytes) -> str:
    """The UTF-8 text of a body; raises `BadAnswer` with the place of the first fault."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadAnswer(
            f"The answer is not UTF-8 (byte {error.start:,} is at fault)."
        ) from None
