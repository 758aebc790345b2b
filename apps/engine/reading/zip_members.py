"""The members of a zip archive, found without trusting what it says of itself.

Layouts are those of PKWARE's APPNOTE 6.3. The directory is walked one entry at a
time, so an archive of a million members is refused before it fills the memory. An
archive whose directory is gone is walked from its start, member by member.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

import msgspec

from apps.engine.format import Note, UnreadableTrace
from apps.engine.reading.members import (
    STORED,
    Index,
    Member,
    Region,
    check_count,
    label,
    read_at,
    size_of,
)
from apps.engine.reading.unpack import (
    Meter,
    Notes,
    Unpacker,
    deflate_chunks,
    stored_chunks,
    zstd_chunks,
)

_LOCAL: Final = struct.Struct("<4s5H3L2H")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_END: Final = struct.Struct("<4s4H2LH")
_LOCATOR: Final = struct.Struct("<4sLQL")
_END64: Final = struct.Struct("<4sQ2H2L4Q")
_LONGEST_END: Final = _END.size + 0xFFFF
_FULL: Final = 0xFFFFFFFF
_ENCRYPTED, _SIZES_FOLLOW, _IS_UTF8 = 1, 8, 0x800
_KIND_MASK, _LINK = 0o170000, 0o120000
_METHODS: Final[dict[int, Unpacker]] = {
    STORED: stored_chunks,
    8: deflate_chunks,
    93: zstd_chunks,
}
_METHOD_NAMES: Final = {
    6: "implode", 9: "Deflate64", 12: "bzip2", 14: "LZMA", 95: "XZ", 98: "PPMd",
    99: "AES encryption",
}  # fmt: skip


class _Entry(msgspec.Struct, frozen=True):
    """What the directory, or the header of a member, says of one member."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    start: int
    is_link: bool = False


class _NoDirectory(Exception):
    """The directory cannot be read to its end."""


def index_zip(file: BinaryIO) -> Index:
    """Return what a zip archive holds; raises `TooLarge` for too many members."""
    index = Index()
    try:
        entries = list(_counted(_directory(file)))
    except _NoDirectory:
        entries = list(_counted(_walk(file, index)))
        index.notes.append(
            Note(
                code="archive_directory_damaged",
                sentence=(
                    "The archive is cut off or its directory is damaged; its members "
                    "were found one after another."
                ),
            )
        )
    _sort_out(entries, index)
    return index


def zip_chunks(
    file: BinaryIO, member: Member, meter: Meter, notes: Notes
) -> Iterator[bytes]:
    """Yield the unpacked bytes of a member; damage as in `unpack.gzip_chunks`."""
    header = read_at(file, member.start, _LOCAL.size)
    if len(header) < _LOCAL.size or not header.startswith(b"PK\x03\x04"):
        raise UnreadableTrace("No member begins where the archive's directory says.")
    fields = _LOCAL.unpack(header)
    start = member.start + _LOCAL.size + fields[9] + fields[10]
    region = cast("BinaryIO", Region(file, start, member.packed))
    crc = size = 0
    before = len(notes)
    for chunk in _METHODS[member.method](region, meter, notes):
        crc = zlib.crc32(chunk, crc)
        size += len(chunk)
        yield chunk
    if len(notes) == before and (crc, size) != (member.crc, member.size):
        notes.append(_mismatch(size, member))


def _mismatch(size: int, member: Member) -> Note:
    what = (
        f"its size is given as {member.size:,} bytes, and {size:,} were there"
        if size != member.size
        else "its checksum is another one"
    )
    return Note(
        code="member_differs",
        sentence=f"The member is not what the archive says: {what}. It was read as it is.",
    )


def _counted(entries: Iterator[_Entry]) -> Iterator[_Entry]:
    for number, entry in enumerate(entries, start=1):
        check_count(number)
        yield entry


def _sort_out(entries: list[_Entry], index: Index) -> None:
    """Keep the members that can be read, and say of each other one why not."""
    end = -1
    for entry in sorted(entries, key=lambda one: one.start):
        if entry.name.endswith("/"):
            continue
        if entry.is_link:
            index.others.append(entry.name)
            continue
        overlaps = entry.start < end
        end = max(end, entry.start + _LOCAL.size + entry.packed)
        reason = _OVERLAP if overlaps else _why_not(entry)
        if reason:
            index.reject(entry.name, reason)
            continue
        index.members.append(
            Member(
                name=entry.name,
                start=entry.start,
                packed=entry.packed,
                size=entry.size,
                method=entry.method,
                crc=entry.crc,
            )
        )


_OVERLAP: Final = (
    "It shares its bytes with another member, as only archives do that were built to "
    "grow without end."
)


def _why_not(entry: _Entry) -> str:
    if entry.flags & _ENCRYPTED:
        return "It is encrypted. Unpack the archive with its password first."
    if entry.method not in _METHODS:
        name = _METHOD_NAMES.get(entry.method, f"method {entry.method}")
        return (
            f"It is packed with {name}, which is not read. Pack it with deflate or "
            "Zstandard."
        )
    return ""


def _directory(file: BinaryIO) -> Iterator[_Entry]:
    """Yield the entries of the directory; raise `_NoDirectory` where it breaks."""
    at, end, shift = _end_of_archive(file)
    while at < end:
        head = read_at(file, at, _ENTRY.size)
        if len(head) < _ENTRY.size or not head.startswith(b"PK\x01\x02"):
            raise _NoDirectory
        (_, made_by, _, flags, method, _, _, crc, packed, size, name_size, extra_size,
         comment_size, _, _, attributes, start) = _ENTRY.unpack(head)  # fmt: skip
        rest = file.read(name_size + extra_size)
        size, packed, start = _wide(rest[name_size:], (size, packed, start))
        yield _Entry(
            name=_name(rest[:name_size], flags),
            flags=flags,
            method=method,
            crc=crc,
            packed=packed,
            size=size,
            start=start + shift,
            is_link=made_by >> 8 == 3 and (attributes >> 16) & _KIND_MASK == _LINK,
        )
        at += _ENTRY.size + name_size + extra_size + comment_size


def _end_of_archive(file: BinaryIO) -> tuple[int, int, int]:
    """Return where the directory begins and ends, and the size of what is before all."""
    whole = size_of(file)
    tail_at = max(0, whole - _LONGEST_END)
    tail = read_at(file, tail_at, _LONGEST_END)
    found = tail.rfind(b"PK\x05\x06")
    if found < 0 or len(tail) - found < _END.size:
        raise _NoDirectory
    _, _, _, _, count, size, offset, _ = _END.unpack_from(tail, found)
    end_at = tail_at + found
    locator = read_at(file, end_at - _LOCATOR.size, _LOCATOR.size)
    if end_at >= _LOCATOR.size and locator.startswith(b"PK\x06\x07"):
        end_at = _LOCATOR.unpack(locator)[2]
        wide = read_at(file, end_at, _END64.size)
        if len(wide) < _END64.size or not wide.startswith(b"PK\x06\x06"):
            raise _NoDirectory
        count, size, offset = _END64.unpack(wide)[7:]
    shift = end_at - size - offset
    if shift < 0:
        raise _NoDirectory
    check_count(count)
    return end_at - size, end_at, shift


def _wide(extra: bytes, fields: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return size, packed size and start, from the zip64 field where they are full."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            numbers = _numbers(extra[at + 4 : at + 4 + length])
            size, packed, start = (
                next(numbers, field) if field == _FULL else field for field in fields
            )
            return size, packed, start
        at += 4 + length
    return fields


def _numbers(data: bytes) -> Iterator[int]:
    for at in range(0, len(data) - 7, 8):
        yield int.from_bytes(data[at : at + 8], "little")


def _name(raw: bytes, flags: int) -> str:
    """Return the label of a name, which may be in UTF-8 without saying so."""
    try:
        return label(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return label(raw.decode("utf-8" if flags & _IS_UTF8 else "cp437", "replace"))


def _walk(file: BinaryIO, index: Index) -> Iterator[_Entry]:
    """Yield members from the start of the file, as far as each says where it ends."""
    at = 0
    while True:
        head = read_at(file, at, _LOCAL.size)
        if len(head) < _LOCAL.size or not head.startswith(b"PK\x03\x04"):
            return
        (_, _, flags, method, _, _, crc, packed, size, name_size,
         extra_size) = _LOCAL.unpack(head)  # fmt: skip
        rest = file.read(name_size + extra_size)
        size, packed, _ = _wide(rest[name_size:], (size, packed, 0))
        name = _name(rest[:name_size], flags)
        if flags & _SIZES_FOLLOW:
            index.reject(
                name,
                "The archive is cut off or damaged, and this member does not say how "
                "long it is; it and what follows it were not read.",
            )
            return
        yield _Entry(name, flags, method, crc, packed, size, at)
        at += _LOCAL.size + name_size + extra_size + packed
