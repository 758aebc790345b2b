"""An opened archive as a folder: its members by name, unpacked behind one meter.

A packed tar is unpacked once into a temporary file without a name, so that its members
can be read in any order; zip and plain tar are read where they lie.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final, cast

from apps.engine.format import Note, Rejected, Source, UnreadableTrace
from apps.engine.privacy.sealed import scratch_file
from apps.engine.reading.bytestream import ChunkStream, open_member
from apps.engine.reading.members import (
    BLOCK,
    Index,
    Member,
    check_count,
    label,
    looks_like_tar,
    looks_like_zip,
    place_of,
)
from apps.engine.reading.tar_members import index_tar, tar_chunks
from apps.engine.reading.unpack import (
    CHUNK,
    UNPACKERS,
    Meter,
    Notes,
    Unpacker,
    stored_chunks,
)
from apps.engine.reading.zip_members import index_zip, zip_chunks

_Chunks = Callable[[BinaryIO, Member, Meter, Notes], Iterator[bytes]]
_JUNK_FOLDERS: Final = frozenset({"__MACOSX", "__pycache__"})
_JUNK_NAMES: Final = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})


class Archive:
    """The files of an archive; a `Folder`.

    What a system leaves beside its files (`__MACOSX`, `.DS_Store`) is not among
    `names` but in `others`, with links and devices. `found` tells what was wrong with
    the members read since it was last asked.
    """

    def __init__(
        self, file: BinaryIO, index: Index, chunks: _Chunks, meter: Meter
    ) -> None:
        self._file = file
        self._chunks = chunks
        self._meter = meter
        self._own_meter = meter
        self._is_temporary = False
        self._members: dict[str, Member] = {}
        self._problems: list[Rejected] = list(index.rejected)
        self._told: set[Rejected] = set()
        self.notes = list(index.notes)
        self.others = list(index.others)
        for member in sorted(index.members, key=lambda one: (one.name, one.start)):
            if _is_junk(member.name):
                self.others.append(member.name)
            else:
                self._members[self._unused(member.name)] = member

    def own_temporary_file(self) -> None:
        """Close the file with the archive, and count its bytes not a second time."""
        self._is_temporary = True
        self._own_meter = Meter(sys.maxsize)

    def close(self) -> None:
        """Drop the temporary file, if there is one; the uploader's file stays open."""
        if self._is_temporary:
            self._file.close()

    def _unused(self, name: str) -> str:
        number, unused = 1, name
        while unused in self._members:
            number += 1
            unused = f"{name} (number {number})"
        return unused

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files, sorted."""
        return tuple(sorted(self._members))

    def size(self, name: str) -> int:
        """Return the unpacked size in bytes as the archive claims it."""
        return self._members[name].size

    def open(self, name: str) -> BinaryIO:
        """Return the unpacked bytes as a stream; several may be open at once."""
        return self._stream(name, self._own_meter)

    def source(self, name: str) -> Source:
        """Return the file as a reader of files sees it; raises `UnreadableTrace`."""
        return open_member(self.open(name), name=name, meter=self._meter)

    def peek(self, name: str) -> Source:
        """Return the file for a look at its head, which counts against no limit.

        What cannot be opened looks like an empty text.
        """
        meter = Meter(self._meter.cap)
        try:
            return open_member(self._stream(name, meter), name=name, meter=meter)
        except UnreadableTrace:
            stream = cast("BinaryIO", io.BytesIO())
            return Source(stream=stream, head=b"", is_text=True, name=name)

    def found(self) -> list[Rejected]:
        """Return what was wrong with members since the last call."""
        problems, self._problems = self._problems, []
        return problems

    def _stream(self, name: str, meter: Meter) -> BinaryIO:
        stream = ChunkStream(self._unpacked(name, meter))
        return cast("BinaryIO", io.BufferedReader(stream, CHUNK))

    def _unpacked(self, name: str, meter: Meter) -> Iterator[bytes]:
        notes: Notes = []
        try:
            yield from self._chunks(self._file, self._members[name], meter, notes)
        finally:
            for note in notes:
                self._note_problem(Rejected(place_of(name), note.sentence))

    def _note_problem(self, problem: Rejected) -> None:
        """Keep what is wrong with a member, once however often it is opened."""
        if problem not in self._told:
            self._told.add(problem)
            self._problems.append(problem)


class Unclaimed:
    """The files of an archive that no reader has claimed, to look at; a `Folder`."""

    def __init__(self, archive: Archive, names: Iterable[str]) -> None:
        self.names = tuple(sorted(names))
        self.size = archive.size
        self.open = archive.open
        self.source = archive.peek


def is_archive(file: BinaryIO) -> bool:
    """Whether a file is a zip, or a tar that may be packed; it stays where it stands."""
    return _kind(file) is not None


def open_archive(file: BinaryIO, meter: Meter) -> Archive:
    """Return the archive in a seekable file that `is_archive`.

    Raises `TooLarge` for too many members and for a packed tar beyond the limits.
    """
    kind = _kind(file)
    if kind == "zip":
        return Archive(file, index_zip(file), zip_chunks, meter)
    if kind == "tar":
        return Archive(file, index_tar(file), tar_chunks, meter)
    return _open_packed_tar(file, dict(_unpackers())[str(kind)], meter)


def open_folder(files: Sequence[tuple[str, Path]], meter: Meter) -> Archive:
    """Return files of a disk, by the names they would have in a zip, as that zip.

    Raises `TooLarge` for too many, and `OSError` where a file is not there; reading
    them raises `OSError` too.
    """
    check_count(len(files))
    paths = [path for _, path in files]
    sizes = [path.stat().st_size for path in paths]

    def chunks(
        _file: BinaryIO, member: Member, meter: Meter, notes: Notes
    ) -> Iterator[bytes]:
        with paths[member.start].open("rb") as stream:
            yield from stored_chunks(stream, meter, notes)

    members = [
        Member(name=label(name), start=number, packed=size, size=size)
        for number, ((name, _), size) in enumerate(zip(files, sizes, strict=True))
    ]
    return Archive(io.BytesIO(), Index(members=members), chunks, meter)


def _open_packed_tar(file: BinaryIO, unpack: Unpacker, meter: Meter) -> Archive:
    notes: list[Note] = []
    with ExitStack() as stack:
        whole = cast("BinaryIO", stack.enter_context(scratch_file()))
        for chunk in unpack(file, meter, notes):
            whole.write(chunk)
        index = index_tar(whole)
        stack.pop_all()
    index.notes = [*notes, *index.notes]
    archive = Archive(whole, index, tar_chunks, meter)
    archive.own_temporary_file()
    return archive


def _unpackers() -> Iterator[tuple[str, Unpacker]]:
    for kind, _, unpack in UNPACKERS:
        yield kind, unpack


def _kind(file: BinaryIO) -> str | None:
    """Return zip, tar, or how a tar is packed; `None` for what is no archive."""
    try:
        here = file.tell()
        head = file.read(BLOCK)
        file.seek(here)
    except (OSError, AttributeError):
        return None
    if looks_like_zip(head):
        return "zip"
    if looks_like_tar(head):
        return "tar"
    for kind, magic, unpack in UNPACKERS:
        if head.startswith(magic):
            is_tar = looks_like_tar(_first_block(file, unpack))
            file.seek(here)
            return kind if is_tar else None
    return None


def _first_block(file: BinaryIO, unpack: Unpacker) -> bytes:
    block = b""
    try:
        for chunk in unpack(file, Meter(sys.maxsize), []):
            block += chunk
            if len(block) >= BLOCK:
                break
    except UnreadableTrace:
        return b""
    return block


def _is_junk(name: str) -> bool:
    *folders, last = name.split("/")
    return (
        last in _JUNK_NAMES
        or last.startswith("._")
        or not _JUNK_FOLDERS.isdisjoint(folders)
    )
