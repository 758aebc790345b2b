"""What a reader of a trace format is, and how it reports what it could not read.

A reader never guesses silently: what it had to decide is a note, what it could not
read is a rejected record with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

import msgspec

from apps.engine.trace import Trace


class UnreadableTrace(Exception):
    """Nothing can be read from these bytes; the message is a sentence for a person."""


class Rejected(msgspec.Struct, frozen=True):
    """A record that was not read: where it stands, why, and how it begins.

    `place` is words for a person ("line 3", "record 12", "line 1, column 40").
    """

    place: str
    reason: str
    excerpt: str = ""


class Note(msgspec.Struct, frozen=True):
    """A remark about the whole file; equal `code`s are counted together."""

    code: str
    sentence: str
    count: int = 1


class Progress(msgspec.Struct, frozen=True):
    """How far the reader is, in bytes of the (unpacked) input."""

    bytes_read: int
    bytes_total: int | None


class Opened(msgspec.Struct, frozen=True):
    """What follows was read by this reader from this member of an archive.

    `member` is "" for a file that is no archive, `format` and `version` are the slug
    and the version of the reader, `files` how many files it has claimed for one group.
    """

    member: str
    format: str
    version: int
    files: int = 1


Item = Trace | Rejected | Note | Progress | Opened


@dataclass(kw_only=True, eq=False)
class Source:
    """The bytes of one upload as a reader sees them: unpacked, decoded to UTF-8.

    Built by `apps.engine.formats.open_source`. `head` is the first 64 KiB (UTF-8 for
    text, raw for binary), `stream` a binary stream from the start, `is_text` whether
    the bytes decode, `notes` what unpacking and decoding had to say, `name` the file
    name the user gave (a hint for words, never for detection). `remarks()` returns
    the notes that are known only once the stream has been read to its end, and
    `memo` lets readers share what they learnt from the head.
    """

    stream: BinaryIO
    head: bytes
    is_text: bool
    name: str = ""
    notes: tuple[Note, ...] = ()
    size: int | None = None
    remarks: Callable[[], tuple[Note, ...]] = tuple
    memo: dict[str, Any] = field(default_factory=dict)


class Format(Protocol):
    """A reader: one per file in `apps.engine.formats`, registered in an ordered tuple.

    `recognises` answers yes or no from the content alone. `read` yields traces as
    soon as each is complete, and rejected records and notes as it meets them; it
    raises `UnreadableTrace` only when nothing can be read at all.
    """

    @property
    def slug(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def description(self) -> str: ...

    def recognises(self, source: Source) -> bool: ...

    def read(self, source: Source) -> Iterator[Item]: ...


class Folder(Protocol):
    """The files of an archive, by names that are labels and lead nowhere on a disk.

    `names` are sorted; directories, links and what cannot be unpacked are not among
    them. All that is read counts against the limits of the whole archive.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    def size(self, name: str) -> int:
        """Return the unpacked size in bytes as the archive claims it."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Return the unpacked bytes as a stream; several may be open at once."""
        ...

    def source(self, name: str) -> Source:
        """Return the file as a reader of files sees it: gzip and zstd are taken off."""
        ...


class FolderFormat(Protocol):
    """A reader of files that belong together, such as one run with its subagents.

    `groups` yields the names of each group; a group with a name that was claimed
    before is not read. `read_group` yields what a `Format` yields; the places of its
    rejected records begin with the name of the file.
    """

    @property
    def slug(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def description(self) -> str: ...

    def groups(self, folder: Folder) -> Iterator[tuple[str, ...]]: ...

    def read_group(self, folder: Folder, names: tuple[str, ...]) -> Iterator[Item]: ...
