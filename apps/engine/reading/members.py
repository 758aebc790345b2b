"""What the members of zip and tar archives have in common.

The name of a member is a label for people and readers. Nothing is ever written under
it, so names that climb out of a folder or begin at the root do no harm.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from apps.engine.format import Note, Rejected
from apps.engine.reading.json_words import visible
from apps.engine.reading.unpack import TooLarge

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_MEMBERS: Final = 100_000
BLOCK: Final = 512
STORED: Final = 0
_ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")
_CHECKSUM: Final = slice(148, 156)
_FARTHEST: Final = 2**40
_LONGEST_NAME: Final = 500
_LONGEST_PLACE: Final = 80
# Controls, and the marks that turn the direction of the text around them.
_UNSHOWN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


class Member(msgspec.Struct, frozen=True):
    """A regular file in an archive.

    `start` is the offset of its header (zip) or of its data (tar), `packed` the bytes
    it takes there, `size` the bytes it is said to unpack to.
    """

    name: str
    start: int
    packed: int
    size: int
    method: int = STORED
    crc: int | None = None


class Index(msgspec.Struct):
    """What an archive says it holds, and what of it cannot be read."""

    members: list[Member] = []
    rejected: list[Rejected] = []
    notes: list[Note] = []
    others: list[str] = []

    def reject(self, name: str, reason: str) -> None:
        """List a member that is not read."""
        self.rejected.append(Rejected(place_of(name), reason))


class Region(io.RawIOBase):
    """A part of a seekable file as a stream; several of one file may be read in turn."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file = file
        self._at = start
        self._end = start + size

    def readable(self) -> bool:
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        view = memoryview(target).cast("B")
        data = read_at(self._file, self._at, min(len(view), self._end - self._at))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


def read_at(file: BinaryIO, start: int, size: int) -> bytes:
    """Return up to `size` bytes from `start`, none from where no file reaches."""
    if not 0 <= start < _FARTHEST:
        return b""
    file.seek(start)
    return file.read(size)


def size_of(file: BinaryIO) -> int:
    """Return the size of a seekable file in bytes."""
    return file.seek(0, io.SEEK_END)


def label(name: str) -> str:
    """Return a name that is safe to show: one line, one direction, `/` between parts."""
    shown = _UNSHOWN.sub("\ufffd", visible(name)).replace("\\", "/")
    shown = shown.removeprefix("./")
    return shown if len(shown) <= _LONGEST_NAME else f"…{shown[-_LONGEST_NAME:]}"


def place_of(name: str) -> str:
    """Return the name of a member, as long as a place may be; its end says most."""
    return name if len(name) <= _LONGEST_PLACE else f"…{name[-_LONGEST_PLACE:]}"


def check_count(count: int) -> None:
    """Raise `TooLarge` for more members than an archive may have."""
    if count > MAX_MEMBERS:
        raise TooLarge(
            f"The archive has more than {MAX_MEMBERS:,} members, which is the limit. "
            "Upload it in parts."
        )


def looks_like_zip(head: bytes) -> bool:
    """Whether the bytes begin a zip archive, which may be empty."""
    return head.startswith(_ZIP_MAGICS)


def looks_like_tar(head: bytes) -> bool:
    """Whether the first 512 bytes are the header of a tar archive of any kind."""
    return len(head) >= BLOCK and has_tar_checksum(head[:BLOCK])


def has_tar_checksum(header: bytes) -> bool:
    """Whether the sum of a header's bytes is the one that it states (POSIX ustar)."""
    stated = header[_CHECKSUM].strip(b" \0")
    if not stated or stated.strip(b"01234567"):
        return False
    blank = header[: _CHECKSUM.start] + b" " * 8 + header[_CHECKSUM.stop :]
    return int(stated, 8) == sum(blank)
