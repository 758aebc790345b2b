"""The traces of the files that a command names, one at a time, and what was not read."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final, cast

import msgspec

from apps.engine.format import Item, Note, Opened, Rejected
from apps.engine.formats import read_file
from apps.engine.trace import Trace
from evalsite.reading_paths import items_of, nothing_found, why_not_read
from evalsite.walking import name_in_words

# A file of nothing but broken lines would otherwise be printed as complaints.
MOST_REJECTED = 1_000
STANDARD_INPUT: Final = Path("-")
_CHUNK: Final = 1024 * 1024


class Complaint(msgspec.Struct, frozen=True):
    """What could not be read or answered, or was decided while reading.

    `place` is where in the file, "" for the whole of it. `is_rejected` is set for
    records that were not read, `is_incomplete` when a file was not read (to its end) or
    a trace got no answer.
    """

    file: str
    sentence: str
    place: str = ""
    is_incomplete: bool = False
    is_rejected: bool = False


class ReadTrace(msgspec.Struct, frozen=True):
    """A trace of a file, by its number in the order of reading from 1.

    `trace_id` is unique in the file: the trace's own id where its format has one, else
    its number ("3"). `member` is "" for a file that is no archive.
    """

    file: str
    member: str
    format: str
    number: int
    trace_id: str
    trace: Trace


def traces_at(
    path: Path, *, slug: str = ""
) -> Generator[ReadTrace | Complaint, None, None]:
    """Yield the traces of a file or folder, and what went wrong; `-` is standard input.

    A folder is read as its zip would be. `slug` names the format to read it as. Never
    raises for what is in the file: traces before a break are there.
    """
    reading = _Reading(name_in_words(path))
    error = ""
    try:
        with closing(_items(path, slug=slug)) as items:
            for item in items:
                yield from reading.take(item)
    except Exception as broken:  # noqa: BLE001 - the next file is to be read all the same
        error = why_not_read(path, broken)
    if not error and not reading.traces:
        error = nothing_found(reading.first_rejected, reading.rejected)
    yield from reading.remarks()
    if error:
        yield Complaint(reading.file, error, is_incomplete=True)


def _items(path: Path, *, slug: str) -> Generator[Item, None, None]:
    if path != STANDARD_INPUT:
        yield from items_of(path, slug=slug)
        return
    # Archives are read from their end, which a pipe does not have.
    with cast("BinaryIO", tempfile.TemporaryFile()) as held:
        while chunk := sys.stdin.buffer.read(_CHUNK):
            held.write(chunk)
        held.seek(0)
        yield from read_file(held, name="standard input", format_override=slug)


class _Reading:
    """One reading of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.opened = Opened("", "", 0)
        self.traces = 0
        self.rejected = 0
        self.first_rejected: Rejected | None = None
        self.notes: dict[str, Note] = {}
        self.ids: set[str] = set()

    def take(self, item: Item) -> Generator[ReadTrace | Complaint, None, None]:
        """Yield what follows from what was read."""
        if isinstance(item, Trace):
            yield self._read(item)
        elif isinstance(item, Rejected):
            self.rejected += 1
            self.first_rejected = self.first_rejected or item
            if self.rejected <= MOST_REJECTED:
                yield Complaint(self.file, item.reason, item.place, is_rejected=True)
        elif isinstance(item, Note):
            earlier = self.notes.get(item.code, Note(item.code, item.sentence, 0))
            count = earlier.count + item.count
            self.notes[item.code] = Note(item.code, earlier.sentence, count)
        elif isinstance(item, Opened):
            self.opened = item

    def remarks(self) -> Generator[Complaint, None, None]:
        """Yield what is to be said once about the whole file."""
        if self.rejected > MOST_REJECTED:
            more = self.rejected - MOST_REJECTED
            sentence = f"{more:,} more records were not read."
            yield Complaint(self.file, sentence, is_rejected=True)
        for note in self.notes.values():
            times = f" ({note.count:,} times)" if note.count > 1 else ""
            yield Complaint(self.file, f"{note.sentence}{times}")

    def _read(self, trace: Trace) -> ReadTrace:
        self.traces += 1
        return ReadTrace(
            file=self.file,
            member=self.opened.member,
            format=self.opened.format,
            number=self.traces,
            trace_id=self._id_of(trace),
            trace=trace,
        )

    def _id_of(self, trace: Trace) -> str:
        native = trace.native_id
        if native is None:
            return str(self.traces)
        own_id = native if native not in self.ids else f"{native} ({self.traces})"
        self.ids.add(native)
        return own_id
