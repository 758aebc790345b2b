"""Opening an upload: unpacked, decoded to UTF-8, with a head to look at.

Bytes that are not valid text are replaced by U+FFFD and counted; nothing is dropped
silently. Nothing here decides what format the content has.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from apps.engine.format import Note, Source, UnreadableTrace
from apps.engine.reading.members import looks_like_tar, looks_like_zip
from apps.engine.reading.unpack import CHUNK, UNPACKERS, Meter, Notes, raw_chunks
from apps.engine.reading.wire import looks_like_otlp_traces

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD_BYTES: Final = 64 * 1024
MAX_UNPACKED_BYTES: Final = 2 * 1024**3
REPLACEMENT: Final = "\ufffd"
MAX_BROKEN_SHARE: Final = 0.3

_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class ChunkStream(io.RawIOBase):
    """A readable stream over chunks that are made while one reads."""

    def __init__(
        self, chunks: Iterator[bytes], close: Callable[[], None] | None = None
    ) -> None:
        self._chunks = chunks
        self._rest = b""
        self._close = close

    def readable(self) -> bool:
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        view = memoryview(target).cast("B")
        while not self._rest:
            following = next(self._chunks, None)
            if following is None:
                return 0
            self._rest = following
        size = min(len(view), len(self._rest))
        view[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        if not self.closed and self._close:
            self._close()
        super().close()


def open_source(
    file: BinaryIO | str | Path,
    *,
    name: str = "",
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
) -> Source:
    """Return the `Source` of an uploaded file, read lazily from where `file` stands.

    gzip and zstd are known by their first bytes, whatever the name says. Raises
    `UnreadableTrace` for an empty file and for archives; reading `stream` raises
    `TooLarge` when more than `max_unpacked_bytes` come out. `file` is closed with
    the stream only when a path was given.
    """
    if isinstance(file, str | Path):
        return _open_path(Path(file), name, Meter(max_unpacked_bytes))
    return _open(file, name, Meter(max_unpacked_bytes))


def open_member(stream: BinaryIO, *, name: str, meter: Meter) -> Source:
    """Return the `Source` of a member of an archive, whose own bytes are counted.

    What gzip and zstd inside it unpack to counts against `meter` too. Raises as
    `open_source` does.
    """
    return _open(stream, name, meter, close=stream.close, is_counted=True)


def _open_path(path: Path, name: str, meter: Meter) -> Source:
    with ExitStack() as stack:
        stream = stack.enter_context(path.open("rb"))
        source = _open(stream, name or path.name, meter, close=stream.close)
        stack.pop_all()
        return source


def _open(
    stream: BinaryIO,
    name: str,
    meter: Meter,
    *,
    close: Callable[[], None] | None = None,
    is_counted: bool = False,
) -> Source:
    late: Notes = []
    size = _size(stream)
    chunks, packing = _unpacked(stream, meter, late, is_counted=is_counted)
    head, chunks = _head(chunks)
    if not head:
        raise UnreadableTrace("The file is empty: it has no bytes.")
    _refuse_archives(head)
    if packing and any(head.startswith(magic) for _, magic, _ in UNPACKERS):
        raise UnreadableTrace("The file is packed twice; unpack it once and try again.")
    is_text = not looks_like_otlp_traces(head) and not _is_binary(head)
    notes = [_packing_note(packing)] if packing else []
    if is_text:
        chunks = _text_chunks(chunks, head, notes, late)
        head, chunks = _head(chunks)
        if len(head) < HEAD_BYTES and not head.strip():
            raise UnreadableTrace("The file holds nothing but blanks.")
    return Source(
        stream=cast(
            "BinaryIO",
            io.BufferedReader(ChunkStream(chunks, close), CHUNK),
        ),
        head=head,
        is_text=is_text,
        name=name,
        notes=tuple(notes),
        size=None if packing else size,
        remarks=lambda: tuple(late),
    )


def _size(stream: BinaryIO) -> int | None:
    try:
        here = stream.tell()
        size = stream.seek(0, io.SEEK_END) - here
        stream.seek(here)
    except (OSError, AttributeError):
        return None
    return size


def _unpacked(
    stream: BinaryIO, meter: Meter, late: Notes, *, is_counted: bool
) -> tuple[Iterator[bytes], str | None]:
    first = stream.read(CHUNK)
    whole = _Replayed(first, stream)
    for kind, magic, unpacker in UNPACKERS:
        if first.startswith(magic):
            return unpacker(cast("BinaryIO", whole), meter, late), kind
    return raw_chunks(cast("BinaryIO", whole), None if is_counted else meter), None


class _Replayed:
    """A stream whose first bytes were already taken."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        self._first = first
        self._stream = stream

    def read(self, size: int) -> bytes:
        if self._first:
            taken, self._first = self._first[:size], self._first[size:]
            return taken
        return self._stream.read(size)


def _head(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    taken: list[bytes] = []
    size = 0
    for chunk in chunks:
        taken.append(chunk)
        size += len(chunk)
        if size >= HEAD_BYTES:
            break
    return b"".join(taken)[:HEAD_BYTES], chain(taken, chunks)


def _packing_note(packing: str) -> Note:
    return Note(code="unpacked", sentence=f"The file was packed with {packing}.")


def _refuse_archives(head: bytes) -> None:
    kind = ".zip" if looks_like_zip(head) else ".tar" if looks_like_tar(head) else ""
    if kind:
        raise UnreadableTrace(
            f"This is a {kind} archive inside another file, which is not opened; "
            "upload the archive itself, or the files inside it."
        )


def _is_binary(head: bytes) -> bool:
    if any(head.startswith(bom) for bom, _ in _BOMS):
        return False
    if b"\0" in head:
        return True
    broken = head.decode("utf-8", "replace").count(REPLACEMENT)
    known = head.count(REPLACEMENT.encode())
    return (broken - known) > MAX_BROKEN_SHARE * len(head)


def _text_chunks(
    chunks: Iterator[bytes], head: bytes, notes: Notes, late: Notes
) -> Iterator[bytes]:
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            notes.append(
                Note(
                    code="decoded",
                    sentence=f"The text was {encoding.upper()} and read as such.",
                )
            )
            return _recoded(chunks, encoding)
    return _checked_utf8(chunks, late)


def _recoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _checked_utf8(chunks: Iterator[bytes], late: Notes) -> Iterator[bytes]:
    """Yield valid UTF-8 without a byte order mark; count what had to be replaced."""
    pending, offset, first, count = b"", 0, -1, 0
    for index, chunk in enumerate(chain(chunks, [b""])):
        data = pending + chunk
        if index == 0:
            bare = data.removeprefix(codecs.BOM_UTF8)
            offset, data = len(data) - len(bare), bare
        valid, used, broken_at = _valid_part(data, final=not chunk)
        if broken_at is not None:
            first = offset + broken_at if first < 0 else first
            mark = REPLACEMENT.encode()
            count += valid.count(mark) - data[:used].count(mark)
        offset += used
        pending = data[used:]
        if valid:
            yield valid
    if count:
        late.append(_broken_note(count, first))


def _valid_part(data: bytes, *, final: bool) -> tuple[bytes, int, int | None]:
    """Return valid UTF-8, the bytes of `data` it stands for, and the first bad byte."""
    try:
        _, used = codecs.utf_8_decode(data, "strict", final)
    except UnicodeDecodeError as error:
        text, used = codecs.utf_8_decode(data, "replace", final)
        return text.encode(), used, error.start
    return data[:used], used, None


def _broken_note(count: int, first: int) -> Note:
    return Note(
        code="not_utf8",
        sentence=(
            "Bytes that are not valid UTF-8 are shown as \ufffd; the first one is byte "
            f"{first:,}. The file may be in another encoding, such as Latin-1."
        ),
        count=count,
    )
