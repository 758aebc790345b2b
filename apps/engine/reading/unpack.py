"""Unpacking of gzip and zstd behind caps, chunk by chunk.

Memory stays at a few chunks whatever the packed file claims. A file that unpacks to
more than the cap, or grows by a ratio that only a bomb reaches, is refused with a
sentence. Damage after good data is a note, because what came before can be read.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

import zstandard

from apps.engine.format import Note, UnreadableTrace

CHUNK: Final = 64 * 1024
GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
MAX_ZSTD_WINDOW: Final = 8 * 1024 * 1024
MAX_RATIO: Final = 400
RATIO_FROM: Final = 32 * 1024 * 1024

Notes = list[Note]


class TooLarge(UnreadableTrace):
    """The file holds more bytes than may be read; nothing of it should be kept."""


class Meter:
    """Counts packed and unpacked bytes and refuses what passes the caps."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.packed = 0
        self.unpacked = 0

    def add(self, size: int) -> None:
        """Count `size` unpacked bytes; raise `TooLarge` past the cap or the ratio."""
        self.unpacked += size
        if self.unpacked > self.cap:
            raise TooLarge(
                f"The file holds more than {self.cap:,} bytes when unpacked, which is "
                "the limit. Upload it in parts."
            )
        if self.packed and self.unpacked > max(RATIO_FROM, self.packed * MAX_RATIO):
            raise TooLarge(
                f"The packed file grows more than {MAX_RATIO} times when unpacked, "
                "which trace files do not; it was refused. Upload it unpacked."
            )


def raw_chunks(stream: BinaryIO, meter: Meter | None) -> Iterator[bytes]:
    """Yield the bytes of a file that is not packed, in chunks, up to the cap.

    Without a meter the bytes were counted before.
    """
    while chunk := stream.read(CHUNK):
        if meter is not None:
            meter.add(len(chunk))
        yield chunk


def _read(stream: BinaryIO, meter: Meter) -> bytes:
    data = stream.read(CHUNK)
    meter.packed += len(data)
    return data


def stored_chunks(stream: BinaryIO, meter: Meter, _notes: Notes) -> Iterator[bytes]:
    """Yield what an archive holds as it is, in chunks; they count as packed too."""
    while chunk := _read(stream, meter):
        meter.add(len(chunk))
        yield chunk


def deflate_chunks(stream: BinaryIO, meter: Meter, notes: Notes) -> Iterator[bytes]:
    """Yield what raw deflate data hold, in chunks; damage as in `gzip_chunks`."""
    unpacked = 0
    packed = zlib.decompressobj(wbits=-15)
    try:
        for chunk in _member_chunks(packed, _read(stream, meter), stream, meter):
            meter.add(len(chunk))
            unpacked += len(chunk)
            yield chunk
    except zlib.error as error:
        _damage(unpacked, notes, "deflate", str(error))
        return
    if not packed.eof:
        _damage(unpacked, notes, "deflate", "the end is missing")


def gzip_chunks(stream: BinaryIO, meter: Meter, notes: Notes) -> Iterator[bytes]:
    """Yield what a gzip file of any number of members holds, in chunks.

    Damage before the first byte raises `UnreadableTrace`; damage later ends the data
    and leaves a note.
    """
    unpacked = 0
    data = _read(stream, meter)
    while data:
        member = zlib.decompressobj(wbits=31)
        try:
            for chunk in _member_chunks(member, data, stream, meter):
                meter.add(len(chunk))
                unpacked += len(chunk)
                yield chunk
        except zlib.error as error:
            _damage(unpacked, notes, "gzip", str(error))
            return
        if not member.eof:
            _damage(unpacked, notes, "gzip", "the end is missing")
            return
        data = member.unused_data or _read(stream, meter)
        if data and not data.startswith(GZIP_MAGIC[: len(data)]):
            if data.strip(b"\0"):
                notes.append(_trailing_note())
            return


def _trailing_note() -> Note:
    return Note(
        code="packed_trailing_bytes",
        sentence="Bytes after the end of the gzip data were not read.",
    )


def _member_chunks(
    member: zlib._Decompress, data: bytes, stream: BinaryIO, meter: Meter
) -> Iterator[bytes]:
    while data and not member.eof:
        chunk = member.decompress(data, CHUNK)
        if chunk:
            yield chunk
        data = member.unconsumed_tail
        if not data and not member.eof:
            data = _read(stream, meter)


def _damage(unpacked: int, notes: Notes, kind: str, why: str) -> None:
    if not unpacked:
        raise UnreadableTrace(f"The {kind} data cannot be unpacked: {why}.")
    notes.append(
        Note(
            code="packed_data_damaged",
            sentence=(
                f"The {kind} data are damaged ({why}); only the first "
                f"{unpacked:,} unpacked bytes were read."
            ),
        )
    )


class _Counted:
    """The packed bytes of a stream, counted as they are taken."""

    def __init__(self, stream: BinaryIO, meter: Meter) -> None:
        self._stream = stream
        self._meter = meter

    def read(self, _size: int = -1) -> bytes:
        return _read(self._stream, self._meter)


def zstd_chunks(stream: BinaryIO, meter: Meter, notes: Notes) -> Iterator[bytes]:
    """Yield what a zstd file holds, in chunks; windows above 8 MiB are refused."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW)
    reader = unpacker.stream_reader(
        _Counted(stream, meter),  # type: ignore[arg-type]
        read_across_frames=True,
    )
    unpacked = 0
    while True:
        try:
            chunk = reader.read(CHUNK)
        except zstandard.ZstdError as error:
            _damage(unpacked, notes, "zstd", _zstd_reason(error))
            return
        if not chunk:
            return
        meter.add(len(chunk))
        unpacked += len(chunk)
        yield chunk


def _zstd_reason(error: zstandard.ZstdError) -> str:
    if "memory" in str(error):
        return f"it needs a window of more than {MAX_ZSTD_WINDOW // 1024**2} MiB"
    return str(error)


Unpacker = Callable[[BinaryIO, Meter, Notes], Iterator[bytes]]
UNPACKERS: Final[tuple[tuple[str, bytes, Unpacker], ...]] = (
    ("gzip", GZIP_MAGIC, gzip_chunks),
    ("zstd", ZSTD_MAGIC, zstd_chunks),
)
