"""Reading one JSON value after another out of a window, whatever surrounds them."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from apps.engine.format import Rejected, Source
from apps.engine.reading.json_values import Decoder, RefusedValue, end_of_value
from apps.engine.reading.json_window import Window
from apps.engine.reading.json_words import excerpt, why_not_json

MAX_RECORD: Final = 256 * 1024 * 1024
_NEAR_END: Final = 16


class Record(msgspec.Struct, frozen=True):
    """One value: its number in the file from 1, and the line it begins on.

    Of a record that comes in parts, `starts` tells at which element of each list this
    part begins; see `json_parts.Parts`.
    """

    value: Any
    number: int
    line: int
    starts: tuple[int, ...] = ()

    @property
    def place(self) -> str:
        """Words for where the record stands."""
        return f"record {self.number} (line {self.line})"

    def start(self, depth: int) -> int:
        """Return the index, in the file, of this part's first element of a list."""
        return self.starts[depth] if depth < len(self.starts) else 0


class Stop(Exception):
    """Nothing after this place can be read."""


class ValueReader:
    """Reads values where the window stands, and says of bad ones what is wrong."""

    def __init__(self, source: Source) -> None:
        self.decoder = Decoder()
        self.window = Window(source)
        self.number = 0

    def no_comma(self) -> Rejected:
        """Return the refusal of what stands where an element should have ended."""
        window = self.window
        return Rejected(
            place=window.place(window.at),
            reason="A comma or the end of the list was expected; the rest was not read.",
            excerpt=excerpt(window.text, window.at),
        )

    def value(self) -> Record | Rejected:
        """Return the value that begins here, as the record of the present number."""
        found = self.value_up_to(MAX_RECORD)
        if found is None:
            raise Stop
        return found

    def value_up_to(self, limit: int) -> Record | Rejected | None:
        """Return the value that begins here, or `None` for one above `limit`.

        The limit is in characters; one of `MAX_RECORD` is a refusal instead.
        """
        window = self.window
        while True:
            try:
                value, end = self.decoder.decode(window.text, window.at, window.line)
            except RefusedValue as refusal:
                return self.rejected(window.at, str(refusal))
            except json.JSONDecodeError as error:
                if self._may_be_cut(error):
                    if len(window.text) - window.at > limit:
                        return None
                    window.grow()
                    continue
                at_end = window.ended and error.pos >= len(window.text.rstrip())
                unclosed = error.msg.startswith("Unterminated") and window.ended
                reason = why_not_json(error, at_end=at_end or unclosed)
                return self.rejected(error.pos, reason)
            if (
                end == len(window.text)
                and not window.ended
                and type(value) not in {dict, list}
            ):
                window.grow()
                continue
            record = Record(value, self.number, window.line)
            window.advance(end)
            return record

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        window = self.window
        if window.ended or len(window.text) - window.at > MAX_RECORD:
            return False
        near_end = error.pos >= len(window.text) - _NEAR_END
        return near_end or error.msg.startswith("Unterminated string")

    def rejected(self, at: int, reason: str) -> Rejected:
        """Return the refusal of the record here, whose error shows at `at`."""
        window = self.window
        place = window.place(at)
        if window.text.find("\n", window.at, at) >= 0:
            reason, place = f"{reason} It shows at {place}.", f"line {window.line}"
        return Rejected(place, reason, excerpt(window.text, window.at))

    def past_bad_element(self) -> None:
        """Go on after a bad element of a list where its brackets say it ends."""
        window = self.window
        while True:
            end = end_of_value(window.text, window.at)
            if end is not None:
                window.advance(end)
                return
            if window.ended or window.text[window.at] not in "[{":
                raise Stop
            window.grow()
