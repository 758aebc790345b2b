"""Decision points as bytes, small enough to keep with every trace."""

from __future__ import annotations

from typing import Final

import msgspec
import zstandard

from apps.engine.branching.points import Point

_VERSION: Final = b"\x01"
_LEVEL: Final = 6
_MOST_BYTES: Final = 64 * 1024 * 1024
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[Point, ...]).decode


def packed(points: tuple[Point, ...]) -> bytes:
    """The points as bytes: a version, then MessagePack under Zstandard.

    The same points give the same bytes. About 50 bytes a point.
    """
    return _VERSION + zstandard.ZstdCompressor(level=_LEVEL).compress(_encode(points))


def unpacked(data: bytes) -> tuple[Point, ...]:
    """The points that `packed` was given.

    Raises `ValueError` with a sentence for bytes that it did not write.
    """
    if data[:1] != _VERSION:
        raise ValueError("These bytes hold no decision points of a known version.")
    try:
        whole = zstandard.ZstdDecompressor().decompress(
            data[1:], max_output_size=_MOST_BYTES
        )
        return _decode(whole)
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        raise ValueError("The stored decision points cannot be read.") from error
