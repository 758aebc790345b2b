"""The gate through which all JSON enters: records out of a stream, one at a time.

It reads a list element by element, JSON lines, documents one after another, or a
single document, with memory for about two records. A bad record is rejected with its
place and the good ones around it are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Final

from apps.engine.format import (
    Item,
    Note,
    Progress,
    Rejected,
    Source,
    UnreadableTrace,
)
from apps.engine.reading.json_parts import Level, Parts, parts_of
from apps.engine.reading.json_reader import Record, Stop, ValueReader
from apps.engine.reading.json_words import excerpt
from apps.engine.trace import Trace

__all__ = [
    "Level",
    "Parts",
    "Record",
    "RefusedRecord",
    "demand_a_trace",
    "make_each",
    "read_each",
    "records",
    "refused_part",
]

PROGRESS_EVERY: Final = 64
_NEXT_LINE: Final = re.compile(r"[\r\n](?=[\[{])")


class RefusedRecord(Exception):
    """What a reader raises for a record that it cannot take, as a sentence.

    `path` is the JSON path of the value at fault.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


class _Reader(ValueReader):
    """Reads the records of one source."""

    def __init__(self, source: Source, *, unroll: bool, parts: Parts | None) -> None:
        super().__init__(source)
        self.unroll = unroll
        self.parts = parts

    def read(self) -> Iterator[Record | Rejected]:
        window = self.window
        try:
            while mark := window.skip_blank():
                if mark == "[" and self.unroll:
                    yield from self._elements()
                    continue
                self.number += 1
                if (yield from self._one()):
                    self._to_next_line()
        except Stop:
            return

    def _one(self) -> Generator[Record | Rejected, None, bool]:
        """Yield the record here; returns whether it is bad and stands here still."""
        if self.parts is not None:
            return (yield from parts_of(self, self.parts))
        item = self.value()
        yield item
        return isinstance(item, Rejected)

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
                    yield self.no_comma()
                    raise Stop
                window.advance(window.at + 1)
                window.skip_blank()
            is_first = False
            self.number += 1
            if (yield from self._one()):
                self.past_bad_element()
        yield Rejected(
            place=window.place(window.at),
            reason="The list is not closed: the file was cut off.",
        )

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


def records(
    source: Source, *, unroll: bool, parts: Parts | None = None
) -> Iterator[Record | Rejected | Note | Progress]:
    """Yield the records of a text source, with notes and progress between them.

    With `unroll` the elements of a top-level list are the records, else the list is
    one. With `parts` a record of more than some megabytes comes in several, see there.
    Safe only once: the stream is read to its end.
    """
    yield from source.notes
    reader = _Reader(source, unroll=unroll, parts=parts)
    for count, item in enumerate(reader.read(), start=1):
        yield item
        if count % PROGRESS_EVERY == 0:
            yield Progress(reader.window.bytes_read, source.size)
    yield Progress(reader.window.bytes_read, source.size)
    yield from reader.decoder.notes()
    yield from source.remarks()


Make = Callable[[Record], Iterable[Item]]


def read_each(
    source: Source, make: Make, *, unroll: bool, parts: Parts | None = None
) -> Iterator[Item]:
    """Yield what `make` makes of each record; a `RefusedRecord` becomes `Rejected`."""
    return make_each(records(source, unroll=unroll, parts=parts), make, _shown)


def make_each(
    items: Iterable[Record | Item], make: Make, shown: Callable[[Any], str]
) -> Iterator[Item]:
    """Yield what `make` makes of the records among `items`, and the others as they are.

    `shown` gives the text of which the excerpt of a refused record is taken.
    """
    for item in items:
        if not isinstance(item, Record):
            yield item
            continue
        try:
            yield from make(item)
        except RefusedRecord as refusal:
            place = f"{item.place}, {refusal.path}" if refusal.path else item.place
            yield Rejected(place, refusal.reason, excerpt(shown(item.value)))


def refused_part(place: str, refusal: RefusedRecord, value: Any) -> Rejected:
    """Return the rejection of a part of a record whose other parts are kept."""
    return Rejected(place, refusal.reason, excerpt(_shown(value)))


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
