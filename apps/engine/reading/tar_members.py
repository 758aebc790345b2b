"""The members of a tar archive: ustar, GNU and pax, walked header by header.

Layouts are those of POSIX.1-2008 (pax) and of the GNU tar manual. Links and devices
are named and never followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

import msgspec

from apps.engine.format import Note
from apps.engine.reading.members import (
    BLOCK,
    Index,
    Member,
    Region,
    check_count,
    has_tar_checksum,
    label,
    read_at,
    size_of,
)
from apps.engine.reading.unpack import Meter, Notes, stored_chunks

_FILES: Final = frozenset({b"0", b"\0", b"7"})
_LONG_NAME, _PAX, _FOLDER, _SPARSE = b"L", b"x", b"5", b"S"
_SILENT: Final = frozenset({b"g", b"K", b"V", b"M", b"N", b"D"})
# A member has up to three extended headers (pax, long name, long link) before its own.
_MOST_HEADERS: Final = 4
_LONGEST_EXTRA: Final = 1024 * 1024
_PAX_RECORD: Final = re.compile(rb"(\d{1,7}) (path|size|GNU\.sparse[^=]*)=")


class _Pending(msgspec.Struct):
    """What extended headers say of the member that follows them."""

    name: str | None = None
    size: int | None = None
    is_sparse: bool = False


def index_tar(file: BinaryIO) -> Index:
    """Return what a tar archive holds; raises `TooLarge` for too many members."""
    index = Index()
    end, at, headers, taken = size_of(file), 0, 0, 0
    pending = _Pending()
    while at < end:
        header = read_at(file, at, BLOCK)
        if not header.strip(b"\0"):
            return index
        if len(header) < BLOCK or not has_tar_checksum(header):
            index.notes.append(_broken(at))
            return index
        headers += 1
        kind = header[156:157]
        size = _number(header[124:136])
        if kind in {_LONG_NAME, _PAX}:
            data = read_at(file, at + BLOCK, min(size, _LONGEST_EXTRA))
            _extend(pending, kind, data)
        elif kind not in _SILENT:
            size = size if pending.size is None else pending.size
            _take(header, at + BLOCK, size, pending, index)
            pending = _Pending()
            taken += 1
        check_count(max(taken, headers // _MOST_HEADERS))
        at += BLOCK + -(-size // BLOCK) * BLOCK
    return index


def tar_chunks(
    file: BinaryIO, member: Member, meter: Meter, notes: Notes
) -> Iterator[bytes]:
    """Yield the bytes of a member; a note says when the archive ends before it does."""
    size = 0
    region = cast("BinaryIO", Region(file, member.start, member.packed))
    for chunk in stored_chunks(region, meter, notes):
        size += len(chunk)
        yield chunk
    if size < member.size:
        notes.append(
            Note(
                code="member_differs",
                sentence=(
                    f"The archive is cut off: only {size:,} of the member's "
                    f"{member.size:,} bytes are there."
                ),
            )
        )


def _take(
    header: bytes, start: int, size: int, pending: _Pending, index: Index
) -> None:
    kind = header[156:157]
    name = pending.name or _name(header)
    if kind == _FOLDER or (kind in _FILES and name.endswith("/")):
        return
    if kind == _SPARSE or pending.is_sparse:
        index.reject(name, "It is stored as a sparse file, which is not read.")
    elif kind in _FILES:
        index.members.append(Member(name=name, start=start, packed=size, size=size))
    else:
        index.others.append(name)


def _broken(at: int) -> Note:
    return Note(
        code="archive_damaged",
        sentence=(
            f"The archive is cut off or damaged at byte {at:,}; what follows was not "
            "read."
        ),
    )


def _number(field: bytes) -> int:
    """Return a size in octal digits or, with the first bit set, in base 256."""
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big") if field[0] == 0x80 else 0
    digits = field.strip(b" \0")
    return int(digits, 8) if digits and not digits.strip(b"01234567") else 0


def _name(header: bytes) -> str:
    name = header[:100].split(b"\0", 1)[0]
    if header[257:263] == b"ustar\0":
        prefix = header[345:500].split(b"\0", 1)[0]
        name = prefix + b"/" + name if prefix else name
    return label(name.decode("utf-8", "replace"))


def _extend(pending: _Pending, kind: bytes, data: bytes) -> None:
    if kind == _LONG_NAME:
        pending.name = label(data.split(b"\0", 1)[0].decode("utf-8", "replace"))
        return
    for keyword, value in _pax_records(data):
        if keyword == b"path":
            pending.name = label(value.decode("utf-8", "replace"))
        elif keyword == b"size" and value.isdigit():
            pending.size = int(value[:20])
        elif keyword.startswith(b"GNU.sparse"):
            pending.is_sparse = True


def _pax_records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keyword and value of the pax records that matter here."""
    at = 0
    while at < len(data):
        number = data[at : at + 8].split(b" ", 1)[0]
        if not number.isdigit() or int(number) < len(number) + 3:
            return
        record = data[at : at + int(number)]
        found = _PAX_RECORD.match(record)
        if found:
            yield found[2], record[found.end() : -1]
        at += int(number)
