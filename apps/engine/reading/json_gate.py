"""The gate through which all JSON enters: records out of a stream, one at a time.

It reads a list element by element, JSON lines, documents one after another, or a
single document, with memory for about two records. A bad record is rejected with its
place and the good ones around it are kept.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from apps.engine.format import (
    Item,
    Note,
    Progress,
    Rejected,
    Source,
    UnreadableTrace,
)
from apps.engine.reading.json_values import Decoder, RefusedValue, end_of_value
from apps.engine.reading.json_words import excerpt, why_not_json
from apps.engine.trace import Trace

WINDOW: Final = 256 * 1024
MAX_RECORD: Final = 256 * 1024 * 1024
PROGRESS_EVERY: Final = 64
_NEAR_END: Final = 16
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_NEXT_LINE: Final = re.compile(r"[\r\n](?=[\[{])")


class Record(msgspec.Struct, frozen=True):
    """One value: its number in the file from 1, and the line it begins on."""

    value: Any
    number: int
    line: int

    @property
    def place(self) -> str:
        """Words for where the record stands."""
        return f"record {self.number} (line {self.line})"


class RefusedRecord(Exception):
    """What a reader raises for a record that it cannot take, as a sentence.

    `path` is the JSON path of the value at fault.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


class _Window:
    """The part of the text that is being read, with the line and column of `at`."""

    def __init__(self, source: Source) -> None:
        self._stream = source.stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.text = ""
        self.at = 0
        self.line = 1
        self.column = 1
        self.bytes_read = 0
        self.ended = False

    def grow(self) -> None:
        """Read on: as much again as is being held, so that growing stays linear."""
        size = max(WINDOW, len(self.text) - self.at)
        data = self._stream.read(size)
        self.bytes_read += len(data)
        self.ended = not data
        more = self._decoder.decode(data, final=self.ended)
        self.text = self.text[self.at :] + more
        self.at = 0

    def advance(self, to: int) -> None:
        """Move to position `to`, keeping line and column right."""
        newlines = self.text.count("\n", self.at, to)
        if newlines:
            self.line += newlines
            self.column = to - self.text.rfind("\n", self.at, to)
        else:
            self.column += to - self.at
        self.at = to

    def skip_blank(self) -> str:
        """Move to the next character that is not blank and return it; "" at the end."""
        while True:
            blank = _BLANK.match(self.text, self.at)
            self.advance(blank.end() if blank else self.at)
            if self.at < len(self.text):
                return self.text[self.at]
            if self.ended:
                return ""
            self.grow()

    def place(self, at: int) -> str:
        """Return "line n, column m" of position `at`."""
        newlines = self.text.count("\n", self.at, at)
        if newlines:
            column = at - self.text.rfind("\n", self.at, at)
        else:
            column = self.column + at - self.at
        return f"line {self.line + newlines}, column {column}"


class _Stop(Exception):
    """Nothing after this place can be read."""


class _Reader:
    """Reads the records of one source."""

    def __init__(self, source: Source, *, unroll: bool) -> None:
        self.decoder = Decoder()
        self.window = _Window(source)
        self.unroll = unroll
        self.number = 0

    def read(self) -> Iterator[Record | Rejected]:
        window = self.window
        try:
            while mark := window.skip_blank():
                if mark == "[" and self.unroll:
                    yield from self._elements()
                    continue
                item = self._value()
                yield item
                if isinstance(item, Rejected):
                    self._to_next_line()
        except _Stop:
            return

    def _elements(self) -> Iterator[Record | Rejected]:
        window = self.window
        window.advance(window.at + 1)
        is_first = True
        while mark := window.skip_blank():
            if mark == "]":
                window.advance(window.at + 1)
                return
            if not is_first:
                if mark != ",":
                    yield self._no_comma()
                    raise _Stop
                window.advance(window.at + 1)
                window.skip_blank()
            is_first = False
            item = self._value()
            yield item
            if isinstance(item, Rejected):
                self._past_bad_element()
        yield Rejected(
            place=window.place(window.at),
            reason="The list is not closed: the file was cut off.",
        )

    def _no_comma(self) -> Rejected:
        window = self.window
        return Rejected(
            place=window.place(window.at),
            reason="A comma or the end of the list was expected; the rest was not read.",
            excerpt=excerpt(window.text, window.at),
        )

    def _value(self) -> Record | Rejected:
        window = self.window
        self.number += 1
        while True:
            try:
                value, end = self.decoder.decode(window.text, window.at, window.line)
            except RefusedValue as refusal:
                return self._rejected(window.at, str(refusal))
            except json.JSONDecodeError as error:
                if self._may_be_cut(error):
                    window.grow()
                    continue
                at_end = window.ended and error.pos >= len(window.text.rstrip())
                unclosed = error.msg.startswith("Unterminated") and window.ended
                reason = why_not_json(error, at_end=at_end or unclosed)
                return self._rejected(error.pos, reason)
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

    def _rejected(self, at: int, reason: str) -> Rejected:
        """Return the refusal of the record here, whose error shows at `at`."""
        window = self.window
        place = window.place(at)
        if window.text.find("\n", window.at, at) >= 0:
            reason, place = f"{reason} It shows at {place}.", f"line {window.line}"
        return Rejected(place, reason, excerpt(window.text, window.at))

    def _to_next_line(self) -> None:
        """Go on at the next line that begins like a record, or to the end."""
        window = self.window
        while True:
            found = _NEXT_LINE.search(window.text, window.at)
            if found:
                window.advance(found.end())
                return
            if window.ended:
                window.advance(len(window.text))
                return
            window.advance(max(window.at, len(window.text) - 1))
            window.grow()

    def _past_bad_element(self) -> None:
        """Go on after a bad element of a list where its brackets say it ends."""
        window = self.window
        while True:
            end = end_of_value(window.text, window.at)
            if end is not None:
                window.advance(end)
                return
            if window.ended or window.text[window.at] not in "[{":
                raise _Stop
            window.grow()


def records(
    source: Source, *, unroll: bool
) -> Iterator[Record | Rejected | Note | Progress]:
    """Yield the records of a text source, with notes and progress between them.

    With `unroll` the elements of a top-level list are the records, else the list is
    one. Safe only once: the stream is read to its end.
    """
    yield from source.notes
    reader = _Reader(source, unroll=unroll)
    for item in reader.read():
        yield item
        if reader.number % PROGRESS_EVERY == 0:
            yield Progress(reader.window.bytes_read, source.size)
    yield Progress(reader.window.bytes_read, source.size)
    yield from reader.decoder.notes()
    yield from source.remarks()


Make = Callable[[Record], Iterable[Item]]


def read_each(source: Source, make: Make, *, unroll: bool) -> Iterator[Item]:
    """Yield what `make` makes of each record; a `RefusedRecord` becomes `Rejected`."""
    for item in records(source, unroll=unroll):
        if not isinstance(item, Record):
            yield item
            continue
        try:
            yield from make(item)
        except RefusedRecord as refusal:
            place = f"{item.place}, {refusal.path}" if refusal.path else item.place
            yield Rejected(place, refusal.reason, excerpt(_shown(item.value)))


def _shown(value: Any) -> str:
    head = (
        {key: value[key] for key in list(value)[:3]} if type(value) is dict else value
    )
    return json.dumps(head, ensure_ascii=False)[:1000] if head else str(head)


def demand_a_trace(items: Iterable[Item], *, nothing: str) -> Iterator[Item]:
    """Pass `items` on; raise `UnreadableTrace` at the end when no trace was among them.

    The sentence names the first rejected record, or is `nothing` without one.
    """
    first: Rejected | None = None
    found = False
    for item in items:
        found = found or isinstance(item, Trace)
        if first is None and isinstance(item, Rejected):
            first = item
        yield item
    if not found:
        raise UnreadableTrace(
            f"Nothing could be read. {first.place}: {first.reason}"
            if first
            else nothing
        )
