"""Reading one upload, a plain file or an archive of many, with the readers given.

A member that breaks is listed and the others are read. The order of the members is
that of their names, so two readings of the same bytes count the traces alike.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import BinaryIO, Final

import msgspec

from apps.engine.format import (
    Folder,
    FolderFormat,
    Format,
    Item,
    Note,
    Opened,
    Progress,
    Rejected,
    Source,
    UnreadableTrace,
)
from apps.engine.reading.archive import Archive, Unclaimed, is_archive, open_archive
from apps.engine.reading.bytestream import open_source
from apps.engine.reading.companions import why_beside
from apps.engine.reading.json_words import excerpt
from apps.engine.reading.members import place_of
from apps.engine.reading.token_counts import OutOfRange
from apps.engine.reading.unpack import Meter, TooLarge
from apps.engine.trace import Trace

logger = logging.getLogger(__name__)

_NAMED: Final = 5
_TRACE_ENDINGS: Final = (".json", ".jsonl", ".ndjson")
_PACKED_ENDINGS: Final = (".gz", ".zst")

# The machine failed, not the file: whoever reads may try again.
_FAULTS_OF_THE_MACHINE: Final = (OSError, MemoryError)


class Readers(msgspec.Struct, frozen=True):
    """How a file finds its reader.

    `choose` returns the reader of a file, or `None`; `why_none` has the sentence for
    that. `folders` are the readers of files that belong together, the first first.
    """

    choose: Callable[[Source], Format | None]
    why_none: Callable[[Source], str]
    folders: Sequence[FolderFormat] = ()


def read_with(
    readers: Readers, file: BinaryIO, *, name: str, max_unpacked_bytes: int
) -> Generator[Item, None, None]:
    """Yield what a file holds: `Opened` and then its items, for each member.

    Raises `TooLarge` beyond the limits, and `UnreadableTrace` when nothing at all can
    be read.
    """
    if is_archive(file):
        yield from read_members(readers, open_archive(file, Meter(max_unpacked_bytes)))
    else:
        source = open_source(file, name=name, max_unpacked_bytes=max_unpacked_bytes)
        reader = readers.choose(source)
        if reader is None:
            raise UnreadableTrace(readers.why_none(source))
        yield Opened("", reader.slug, reader.version)
        yield from _with_numbers(reader.read(source))


def read_members(readers: Readers, archive: Archive) -> Generator[Item, None, None]:
    """Yield what the files of an opened archive hold, and close it; else `read_with`."""
    with closing(archive):
        yield from _with_numbers(_Members(archive, readers).items())


def _with_numbers(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items, and at the end a note on numbers that were out of range."""
    found = OutOfRange()
    while True:
        # Watched only while a reader works: between items the caller's code runs.
        with found.watched():
            item = next(items, None)
        if item is None:
            break
        if isinstance(item, Trace):
            found.end_trace()
        yield item
    if found.count:
        yield Note(
            code="out_of_range",
            sentence="Whole numbers outside of 0 to 2^63-1 where a count belongs were "
            f"read as not recorded. First: {found.first}.",
            count=found.count,
        )


class _NotATrace(Exception):
    """A file that nobody would miss: a text, a picture, a log, a count of trials.

    The message says what it is, where that is known.
    """


class _Found(msgspec.Struct):
    """How much of a member was read."""

    traces: int = 0
    rejected: int = 0

    def count(self, item: Item) -> None:
        self.traces += isinstance(item, Trace)
        self.rejected += isinstance(item, Rejected)

    @property
    def has_said_why(self) -> bool:
        """Whether rejected records tell already why there is no trace."""
        return self.rejected > 0 and not self.traces


class _Unit(msgspec.Struct, frozen=True):
    """What is read in one go: one file, or a group with its reader."""

    names: tuple[str, ...]
    reader: FolderFormat | None = None

    @property
    def member(self) -> str:
        """The file's name; of a group the folder its files share ("" for the whole)."""
        if len(self.names) == 1:
            return self.names[0]
        first, last = min(self.names), max(self.names)
        same = 0
        while same < len(first) and first[same : same + 1] == last[same : same + 1]:
            same += 1
        return first[:same].rpartition("/")[0]

    @property
    def place(self) -> str:
        """Words for where the unit stands in the archive."""
        return place_of(self.member) or "the archive"


class _Members:
    """Reads the members of one archive."""

    def __init__(self, archive: Archive, readers: Readers) -> None:
        self._archive = archive
        self._readers = readers
        self._unread: list[str] = list(archive.others)
        self._first_reason = ""
        self._beside = ""
        self._head = ""
        self._traces = 0

    def items(self) -> Iterator[Item]:
        """Yield what all members hold, in the order of their names."""
        archive = self._archive
        yield from self._listed(archive.found())
        total = sum(map(archive.size, archive.names))
        done = 0
        for unit in self._units():
            size = sum(map(archive.size, unit.names))
            read = 0
            for item in self._read(unit):
                if isinstance(item, Progress):
                    read = item.bytes_read
                    yield Progress(done + read, max(total, done + read))
                else:
                    yield item
            total += max(0, read - size)
            done += max(size, read)
            yield from self._listed(archive.found())
            yield Progress(done, total)
        yield from archive.notes
        if self._unread:
            yield _unread_note(self._unread)
        if not self._traces:
            raise UnreadableTrace(self._nothing())

    def _units(self) -> list[_Unit]:
        free = dict.fromkeys(self._archive.names)
        units: list[_Unit] = []
        for reader in self._readers.folders:
            for names in self._groups(reader, Unclaimed(self._archive, free)):
                if names and all(name in free for name in names):
                    units.append(_Unit(tuple(names), reader))
                    for name in names:
                        free.pop(name, None)
        units += [_Unit((name,)) for name in free]
        return sorted(units, key=lambda unit: min(unit.names))

    def _groups(self, reader: FolderFormat, folder: Folder) -> list[tuple[str, ...]]:
        groups: list[tuple[str, ...]] = []
        try:
            groups.extend(reader.groups(folder))
        except (TooLarge, *_FAULTS_OF_THE_MACHINE):
            raise
        except UnreadableTrace:
            return groups
        except Exception:
            logger.exception("The reader %s broke on the names of files", reader.slug)
        return groups

    def _read(self, unit: _Unit) -> Iterator[Item]:
        """Yield the items of one unit; what breaks it is a rejected record."""
        found = _Found()
        self._head = ""
        try:
            for item in self._items(unit):
                found.count(item)
                yield self._placed(unit, item)
        except (TooLarge, *_FAULTS_OF_THE_MACHINE):
            raise
        except UnreadableTrace as refusal:
            if not found.has_said_why:
                yield from self._refused(unit, str(refusal))
        except _NotATrace as known:
            self._unread.extend(unit.names)
            if str(known):
                self._beside = self._beside or f"{unit.place}: {known}"
        except Exception as error:
            logger.exception("The reader broke on a member of an archive")
            reason = (
                f"Evalsite's reader broke on this member ({type(error).__name__}). "
                "That is our fault; the bytes are kept."
            )
            yield from self._refused(unit, reason)
        self._traces += found.traces

    def _items(self, unit: _Unit) -> Iterator[Item]:
        if unit.reader is not None:
            group, files = unit.reader, len(unit.names)
            yield Opened(unit.member, group.slug, group.version, files)
            yield from group.read_group(self._archive, unit.names)
            return
        [name] = unit.names
        source = self._source(name)
        self._head = _beginning(source)
        with source.stream:
            reader = self._readers.choose(source)
            if reader is None:
                beside = why_beside(source)
                if beside or not _is_meant_as_trace(source):
                    raise _NotATrace(beside or "")
                raise UnreadableTrace(self._readers.why_none(source))
            yield Opened(name, reader.slug, reader.version)
            yield from reader.read(source)

    def _source(self, name: str) -> Source:
        try:
            return self._archive.source(name)
        except TooLarge:
            raise
        except UnreadableTrace:
            if self._archive.size(name) or _has_trace_ending(name):
                raise
            raise _NotATrace from None

    def _placed(self, unit: _Unit, item: Item) -> Item:
        if not isinstance(item, Rejected):
            return item
        if not unit.member or (unit.reader and item.place.startswith(unit.names)):
            return self._note_reason(item)
        return self._note_reason(
            msgspec.structs.replace(
                item, place=f"{place_of(unit.member)}, {item.place}"
            )
        )

    def _refused(self, unit: _Unit, reason: str) -> Iterator[Rejected]:
        yield self._note_reason(Rejected(unit.place, reason, self._head))

    def _listed(self, problems: list[Rejected]) -> Iterator[Rejected]:
        for problem in problems:
            yield self._note_reason(problem)

    def _note_reason(self, item: Rejected) -> Rejected:
        self._first_reason = self._first_reason or f"{item.place}: {item.reason}"
        return item

    def _nothing(self) -> str:
        reason = self._first_reason or self._beside
        if reason:
            return f"No trace could be read from this archive. {reason}"
        if not self._unread:
            damage = " ".join(note.sentence for note in self._archive.notes)
            return damage or "The archive is empty: it holds no files."
        return f"No file of this archive is a trace. It holds {_some(self._unread)}."


def _beginning(source: Source) -> str:
    """Return how a text begins, for a person who looks for it; binary shows nothing."""
    return excerpt(source.head.decode("utf-8", "ignore")) if source.is_text else ""


def _is_meant_as_trace(source: Source) -> bool:
    """Whether somebody would miss this file if it were passed over in silence."""
    is_json = source.is_text and source.head.lstrip()[:1] in {b"{", b"["}
    return is_json or _has_trace_ending(source.name)


def _has_trace_ending(name: str) -> bool:
    bare = name.casefold()
    for ending in _PACKED_ENDINGS:
        bare = bare.removesuffix(ending)
    return bare.endswith(_TRACE_ENDINGS)


def _unread_note(names: list[str]) -> Note:
    files = "file" if len(names) == 1 else "files"
    are = "is no trace and was" if len(names) == 1 else "are no traces and were"
    return Note(
        code="not_traces",
        sentence=f"Of the archive, {len(names):,} {files} {are} not read: {_some(names)}.",
        count=len(names),
    )


def _some(names: list[str]) -> str:
    shown = sorted(names)[:_NAMED]
    rest = len(names) - len(shown)
    more = f" and {rest:,} more" if rest else ""
    return ", ".join(map(place_of, shown)) + more
