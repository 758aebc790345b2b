"""Values that wait in a temporary file without a name until they are asked for.

The file is sealed with a key of this process, so what passes through it is in clear
nowhere but in memory.

They are packed with MessagePack, which holds integers of 64 bits; larger ones travel as
their digits, so what comes back equals what was written.
"""

from __future__ import annotations

import weakref
from typing import Any, Final, Generic, TypeVar

import msgspec

from apps.engine.privacy.sealed import ScratchFile, scratch_file

IN_MEMORY: Final = 8 * 1024 * 1024
_BIG_INTEGER: Final = 1
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1

T = TypeVar("T")


class SpillFile(Generic[T]):
    """A file of packed values of one type; the first 8 MiB stay in memory.

    It is closed when nothing refers to it any more.
    """

    def __init__(self, kind: type[T]) -> None:
        self._file: ScratchFile | None = None
        self._end = 0
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(kind, ext_hook=_integer)

    def write(self, value: T) -> tuple[int, int]:
        """Keep a value; returns its place for `read`."""
        try:
            data = self._encoder.encode(value)
        except OverflowError:
            data = self._encoder.encode(_packable(msgspec.to_builtins(value)))
        file = self._opened()
        file.seek(self._end)
        file.write(data)
        place = (self._end, len(data))
        self._end += len(data)
        return place

    def read(self, place: tuple[int, int]) -> T:
        """Return a value that equals the one that was written there."""
        start, size = place
        file = self._opened()
        file.seek(start)
        return self._decoder.decode(file.read(size))

    def _opened(self) -> ScratchFile:
        if self._file is None:
            file = scratch_file(IN_MEMORY)
            weakref.finalize(self, file.close)
            self._file = file
        return self._file


def _packable(value: Any) -> Any:
    """Return plain values with integers beyond 64 bits as extensions."""
    if isinstance(value, dict):
        return {key: _packable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_packable(item) for item in value]
    if isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        return msgspec.msgpack.Ext(
            _BIG_INTEGER, value.to_bytes(_bytes_of(value), "big", signed=True)
        )
    return value


def _bytes_of(number: int) -> int:
    return number.bit_length() // 8 + 1


def _integer(_code: int, data: memoryview) -> int:
    return int.from_bytes(data, "big", signed=True)
