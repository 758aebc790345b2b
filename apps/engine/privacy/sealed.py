"""Sealed files: encrypted in chunks, so that they stream and can be read from anywhere.

A file is a header (mark, name of the key, salt) and chunks of 64 KiB under
AES-256-GCM, with a key of its own from HKDF-SHA-256 (RFC 5869). The nonce holds the
number of the chunk and whether it is the last one, so chunks that were swapped, taken
from another file or cut off are noticed (the STREAM construction of Hoang, Reyhanitabar,
Rogaway and Vizar, 2015). It hides neither the length nor the time of a file.
"""

from __future__ import annotations

import hashlib
import io
import secrets
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

MARK: Final = b"EVSEAL1\n"
KEY_BYTES: Final = 32
CHUNK: Final = 64 * 1024
_TAG: Final = 16
_PIECE: Final = 16 * 1024  # of a scratch file, which is read here and there
_NAME: Final = 8
_SALT: Final = 16
_HEADER: Final = len(MARK) + _NAME + _SALT
_INFO: Final = b"evalsite sealed file 1"


class CannotOpen(Exception):
    """The sealed bytes cannot be read; the message is a sentence for a person."""


class WrongKey(CannotOpen):
    """None of the keys at hand has sealed these bytes."""


class Damaged(CannotOpen):
    """The bytes are not what was sealed: changed, swapped or cut off."""


def new_key() -> bytes:
    """A fresh key of 32 random bytes."""
    return secrets.token_bytes(KEY_BYTES)


def name_of(key: bytes) -> bytes:
    """Eight bytes that tell keys apart and say nothing about them."""
    return hashlib.sha256(b"evalsite key name\0" + key).digest()[:_NAME]


def _cipher(key: bytes, salt: bytes) -> AESGCM:
    derived = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=_INFO)
    return AESGCM(derived.derive(key))


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


class SealedWriter:
    """Seals what is written into `file`; `finish` must be called once at the end."""

    def __init__(self, file: BinaryIO, key: bytes) -> None:
        self._file = file
        self._header = MARK + name_of(key) + secrets.token_bytes(_SALT)
        self._cipher = _cipher(key, self._header[-_SALT:])
        self._waiting = bytearray()
        self._number = 0
        file.write(self._header)

    def write(self, data: bytes) -> int:
        """Take `data`; whole chunks go to the file. Returns how many bytes."""
        self._waiting += data
        while len(self._waiting) > CHUNK:
            self._seal(bytes(self._waiting[:CHUNK]), is_last=False)
            del self._waiting[:CHUNK]
        return len(data)

    def finish(self) -> None:
        """Write the last chunk. The file is the caller's to flush and close."""
        self._seal(bytes(self._waiting), is_last=True)
        self._waiting.clear()

    def _seal(self, chunk: bytes, *, is_last: bool) -> None:
        nonce = _nonce(self._number, is_last=is_last)
        self._file.write(self._cipher.encrypt(nonce, chunk, self._header))
        self._number += 1


class _SealedReader(io.RawIOBase):
    """The plain bytes of a sealed file, seekable; one chunk is in memory."""

    def __init__(self, file: BinaryIO, keys: Sequence[bytes]) -> None:
        self._file = file
        self._header = file.read(_HEADER)
        if len(self._header) < _HEADER or not self._header.startswith(MARK):
            raise Damaged("These bytes were never sealed, or their beginning is gone.")
        name = self._header[len(MARK) : len(MARK) + _NAME]
        key = next((one for one in keys if name_of(one) == name), None)
        if key is None:
            raise WrongKey(
                "These bytes are encrypted with a key that is not at hand any more."
            )
        self._cipher = _cipher(key, self._header[-_SALT:])
        sealed = file.seek(0, io.SEEK_END) - _HEADER
        self._chunks = max(1, -(-sealed // (CHUNK + _TAG)))
        self._size = sealed - self._chunks * _TAG
        self._at = 0
        self._held: tuple[int, bytes] = (-1, b"")
        self._chunk(self._chunks - 1)  # a file that was cut off is known at once

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}
        self._at = max(0, start[whence] + offset)
        return self._at

    def readinto(self, target: WriteableBuffer) -> int:
        view = memoryview(target).cast("B")
        if self._at >= self._size:
            return 0
        number, inside = divmod(self._at, CHUNK)
        piece = self._chunk(number)[inside : inside + len(view)]
        view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _chunk(self, number: int) -> bytes:
        if self._held[0] != number:
            self._file.seek(_HEADER + number * (CHUNK + _TAG))
            sealed = self._file.read(CHUNK + _TAG)
            nonce = _nonce(number, is_last=number == self._chunks - 1)
            try:
                plain = self._cipher.decrypt(nonce, sealed, self._header)
            except InvalidTag:
                raise Damaged(
                    "These encrypted bytes were changed or cut off; they cannot be "
                    "trusted, so none of them is used."
                ) from None
            self._held = (number, plain)
        return self._held[1]

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def open_sealed(file: BinaryIO, keys: Sequence[bytes]) -> BinaryIO:
    """The plain bytes of a sealed file as a seekable stream, which closes `file`.

    Raises `WrongKey` when none of `keys` sealed it and `Damaged` (also later, while
    one reads) when the bytes are not the ones that were sealed.
    """
    return cast("BinaryIO", io.BufferedReader(_SealedReader(file, keys), CHUNK))


def is_sealed(head: bytes) -> bool:
    """Whether bytes begin like a sealed file."""
    return head.startswith(MARK)


class ScratchFile(io.RawIOBase):
    """A temporary file without a name, sealed with a key that only this object has.

    `write` always appends; `read` and `seek` go anywhere. What was written last stays
    in memory until a chunk is full. Closing it forgets the key.
    """

    def __init__(self, in_memory: int) -> None:
        self._file = tempfile.SpooledTemporaryFile(in_memory)  # noqa: SIM115
        self._cipher = AESGCM(new_key())
        self._tail = bytearray()
        self._chunks = 0
        self._at = 0
        self._held: tuple[int, bytes] = (-1, b"")

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    @property
    def size(self) -> int:
        """How many bytes were written."""
        return self._chunks * _PIECE + len(self._tail)

    def write(self, data: ReadableBuffer) -> int:
        """Append `data`; returns how many bytes."""
        taken = memoryview(data).nbytes
        self._tail += data
        while len(self._tail) >= _PIECE:
            sealed = self._cipher.encrypt(
                _nonce(self._chunks, is_last=False), bytes(self._tail[:_PIECE]), None
            )
            self._file.seek(self._chunks * (_PIECE + _TAG))
            self._file.write(sealed)
            self._chunks += 1
            del self._tail[:_PIECE]
        return taken

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move where `read` goes on; returns the place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}
        self._at = max(0, start[whence] + offset)
        return self._at

    def tell(self) -> int:
        """Where `read` goes on."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes (all with -1) from where `seek` went."""
        end = self.size if size < 0 else min(self.size, self._at + size)
        pieces = []
        while self._at < end:
            number, inside = divmod(self._at, _PIECE)
            piece = self._chunk(number)[inside : inside + end - self._at]
            pieces.append(bytes(piece))
            self._at += len(piece)
        return b"".join(pieces)

    def _chunk(self, number: int) -> bytes | bytearray:
        if number == self._chunks:
            return self._tail
        if self._held[0] != number:
            self._file.seek(number * (_PIECE + _TAG))
            sealed = self._file.read(_PIECE + _TAG)
            plain = self._cipher.decrypt(_nonce(number, is_last=False), sealed, None)
            self._held = (number, plain)
        return self._held[1]

    def close(self) -> None:
        """Remove the file. Safe to run twice."""
        if not self.closed:
            self._file.close()
            self._tail.clear()
        super().close()


def scratch_file(in_memory: int = 1024 * 1024) -> ScratchFile:
    """A new, empty scratch file, on the disk once it holds more than `in_memory`."""
    return ScratchFile(in_memory)
